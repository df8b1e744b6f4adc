r"""The grammar of a request's head, as patterns over bytes, each under the rule it spells.

The names are the ABNF's of RFC 9110, RFC 9112 and RFC 3986. Two habits keep every pattern linear
in its input: repetitions that must not give bytes back are possessive (`*+`, `++`), and the
patterns are written so that no two of their parts can start on the same byte.

Bytes and never text: on text, `\d` and `\s` know other scripts, and a Kelvin sign is a K.
"""

from __future__ import annotations

import re

# RFC 9110, section 5.6.2: token = 1*tchar
_TCHAR = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
TOKEN = re.compile(_TCHAR + rb"++")

# RFC 9110, section 5.5: field-value = *field-content; VCHAR, obs-text, and SP and HTAB inside.
_FIELD_BYTE = rb"[\t\x20-\x7e\x80-\xff]"
FIELD_VALUE = re.compile(_FIELD_BYTE + rb"*+")
NOT_FIELD_BYTE = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")

# RFC 9112, section 2.2: a line ends with CRLF. A CR that is the last byte may still get its LF.
BARE_LINE_END = re.compile(rb"(?<!\r)\n|\r[^\n]")
EMPTY_LINES = re.compile(rb"(?:\r\n)++")

# RFC 9112, section 3: request-line = method SP request-target SP HTTP-version. The target is taken
# as any visible ASCII: browsers send `|`, `"` and `^` raw, which RFC 3986 would have them escape.
REQUEST_LINE = re.compile(rb"(" + _TCHAR + rb"++) ([!-~]++) HTTP/(1\.[01])\r\n")
VISIBLE = re.compile(rb"[!-~]++")

# RFC 9112, section 5: field-line = field-name ":" OWS field-value OWS, with its CRLF. `findall` on
# the fields of a head gives their (name, value) pairs in one pass. What is no field line comes out,
# with all that follows it, as one pair with an empty name, which no field line can have.
# The value takes the whole line, then gives back its trailing white space.
FIELD_LINES = re.compile(
    rb"(" + _TCHAR + rb"++):[ \t]*+((?:" + _FIELD_BYTE + rb"*(?<![ \t]))?)[ \t]*+\r\n|[\s\S]++"
)

# RFC 3986, section 3.2.2: host = IP-literal / IPv4address / reg-name (which spells IPv4 as well).
_PCT = rb"%[0-9A-Fa-f]{2}"
_REG_NAME = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=]++|" + _PCT + rb")"
_H16 = rb"[0-9A-Fa-f]{1,4}"
_OCTET = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LS32 = rb"(?:%b:%b|%b(?:\.%b){3})" % (_H16, _H16, _OCTET, _OCTET)


def _ipv6_address() -> bytes:
    """Return RFC 3986's nine alternatives: 6 to 0 groups after an optional `::`."""
    forms = [rb"(?:%b:){6}%b" % (_H16, _LS32)]
    for before in range(8):  # groups that may stand before the `::`; 7 - before stand after it
        left = rb"(?:(?:%b:){0,%d}%b)?" % (_H16, before - 1, _H16) if before else b""
        groups = 5 - before
        if groups >= 0:
            right = rb"(?:%b:){%d}%b" % (_H16, groups, _LS32)
        else:
            right = _H16 if groups == -1 else b""
        forms.append(left + b"::" + right)
    return b"|".join(forms)


_IP_LITERAL = rb"\[(?:" + _ipv6_address() + rb"|[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]"

# RFC 9112, section 3.2: Host = uri-host [ ":" port ]; both may be empty.
HOST = re.compile(rb"(?:" + _IP_LITERAL + rb"|" + _REG_NAME + rb"*+)(?::[0-9]*+)?")

# RFC 9112, section 3.2.3: authority-form = uri-host ":" port, "There is no default port".
AUTHORITY_FORM = re.compile(rb"(?:" + _IP_LITERAL + rb"|" + _REG_NAME + rb"++):[0-9]++")

# RFC 9112, section 3.2.2: absolute-form, here of a scheme that has an authority. The host must not
# be empty (RFC 9110, section 4.2.1). Group 1 is the path, 2 the query with its question mark.
ABSOLUTE_FORM = re.compile(
    rb"[A-Za-z][A-Za-z0-9+\-.]*+://"
    rb"(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|" + _PCT + rb")*@)?"
    rb"(?:" + _IP_LITERAL + rb"|" + _REG_NAME + rb"++)(?::[0-9]*+)?"
    rb"((?:/[^?]*+)?)((?:\?.*+)?)"
)
