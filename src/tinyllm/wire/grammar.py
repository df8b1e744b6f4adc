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
# RFC 9112, section 2.3: HTTP-version, here one of two.
REQUEST_LINE = re.compile(rb"(" + _TCHAR + rb"++) ([!-~]++) HTTP/(1\.[01])\r\n")
VISIBLE = re.compile(rb"[!-~]++")
HTTP_VERSION = re.compile(rb"HTTP/1\.[01]")

# RFC 9112, section 5: field-line = field-name ":" OWS field-value OWS, with its CRLF. `findall` on
# the fields of a head gives their (name, value) pairs in one pass. What is no field line comes out,
# with all that follows it, as one pair with an empty name, which no field line can have.
# Hardly a client sends white space at the end of a line, so that pattern is tried first; in the
# other one the value takes the whole line and then gives its trailing white space back.
_NAME_COLON = rb"(" + _TCHAR + rb"++):[ \t]*+"
_REST = rb"|[\s\S]++"
TRIM_FIELD_LINES = re.compile(_NAME_COLON + rb"(" + _FIELD_BYTE + rb"*+)(?<![ \t])\r\n" + _REST)
FIELD_LINES = re.compile(
    _NAME_COLON + rb"((?:" + _FIELD_BYTE + rb"*(?<![ \t]))?)[ \t]*+\r\n" + _REST
)

# RFC 3986, section 3.2.2: host = IP-literal / IPv4address / reg-name (which spells IPv4 as well).
# Group 1 is what stands in an IP-literal's brackets, for `is_ip_literal`.
_PCT_ENCODED = rb"%[0-9A-Fa-f]{2}"
_REG_NAME = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=]++|" + _PCT_ENCODED + rb")"
_IP_LITERAL = rb"\[([^\]]*+)\]"

# RFC 9112, section 3.2: Host = uri-host [ ":" port ]; both may be empty.
HOST = re.compile(rb"(?:" + _REG_NAME + rb"*+|" + _IP_LITERAL + rb")(?::[0-9]*+)?")

# RFC 9112, section 3.2.3: authority-form = uri-host ":" port, "There is no default port".
AUTHORITY_FORM = re.compile(rb"(?:" + _REG_NAME + rb"++|" + _IP_LITERAL + rb"):[0-9]++")

# RFC 9112, section 3.2.2: absolute-form, here of a scheme that has an authority. The host must not
# be empty (RFC 9110, section 4.2.1). Group 2 is the path.
ABSOLUTE_FORM = re.compile(
    rb"[A-Za-z][A-Za-z0-9+\-.]*+://"
    rb"(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|" + _PCT_ENCODED + rb")*@)?"
    rb"(?:" + _REG_NAME + rb"++|" + _IP_LITERAL + rb")(?::[0-9]*+)?"
    rb"((?:/[^?]*+)?)(?:\?.*+)?"
)

_IPV_FUTURE = rb"[vV][0-9A-Fa-f]++\.[A-Za-z0-9\-._~!$&'()*+,;=:]++"


def is_host(match: re.Match[bytes] | None) -> bool:
    """Whether one of the three patterns above matched with a valid host."""
    return match is not None and (match[1] is None or is_ip_literal(match[1]))


def is_target(method: bytes, target: bytes) -> bool:
    """RFC 9112, section 3.2: whether the target has the form that its method asks for."""
    if method == b"CONNECT":
        return is_host(AUTHORITY_FORM.fullmatch(target))
    if target == b"*":
        return method == b"OPTIONS"
    return target.startswith(b"/") or is_host(ABSOLUTE_FORM.fullmatch(target))


def is_ip_literal(text: bytes) -> bool:
    """Whether this may stand in brackets: IPv6address / IPvFuture, and no zone."""
    import ipaddress  # here, because hardly a request needs it and every start would pay for it

    if re.fullmatch(_IPV_FUTURE, text) is not None:
        return True
    try:
        return ipaddress.IPv6Address(text.decode("ascii")).scope_id is None
    except ValueError:
        return False
