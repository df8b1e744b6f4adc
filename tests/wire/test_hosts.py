"""Host values (RFC 9112, section 3.2, with RFC 3986's grammar), and IPv6 against the library's."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.wire.grammar import HOST, is_host, is_ip_literal


@pytest.mark.parametrize(
    "host",
    [
        "",
        "a",
        "localhost:8000",
        "127.0.0.1",
        "example.com.:80",
        "a_b~c!d$e&f'g(h)i*j+k,l;m=n",
        "caf%C3%A9.example",
        "a:",
        ":80",
        "[::1]",
        "[2001:db8::1]:8000",
        "[::ffff:192.0.2.1]",
        "[v1.fe80:a]",
    ],
)
def test_host_with_an_optional_port_is_taken(host: str) -> None:
    assert is_host(HOST.fullmatch(host.encode()))


@pytest.mark.parametrize(
    "host",
    [
        *("a b", "a/b", "a@b", "a?b", "a#b", "a\\b", "a\tb", "a:b", "a:80:", "a%", "a%zz", "é"),
        *("[]", "[::1", "::1]", "[::1]a", "[::1]:a", "[1.2.3.4]", "[v.a]", "[::1%25e]", "[::1%e]"),
    ],
)
def test_anything_else_is_no_host(host: str) -> None:
    assert not is_host(HOST.fullmatch(host.encode()))


@given(st.ip_addresses(v=6))
def test_every_ipv6_address_may_stand_in_brackets(address: ipaddress.IPv6Address) -> None:
    assert is_ip_literal(str(address).encode())
    assert is_ip_literal(address.exploded.upper().encode())


@given(st.text(alphabet="0fF:.%", max_size=24))
def test_what_is_no_ipv6_address_may_not(text: str) -> None:
    try:
        expected = "%" not in text and bool(ipaddress.IPv6Address(text))
    except ValueError:
        expected = False
    assert is_ip_literal(text.encode()) is expected
