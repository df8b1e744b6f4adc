"""Bytes as a person sees them, with the offending part underlined."""

from __future__ import annotations

from tinyllm.conformance.render import WIDTH, escaped, show_bytes


def test_every_byte_is_visible() -> None:
    assert escaped(b"a\r\n\t\\\x00\xc3\xa9\x7f~") == r"a\r\n\t\\\x00\xc3\xa9\x7f~"


def test_a_line_of_input_is_a_line_of_output() -> None:
    assert show_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nbody") == [
        r"GET / HTTP/1.1\r\n",
        r"Host: x\r\n",
        r"\r\n",
        "body",
    ]


def test_the_marked_part_is_underlined() -> None:
    assert show_bytes(b"A: b\r\nC: d\r\n", (9, 10)) == [r"A: b\r\n", r"C: d\r\n", "   ^"]


def test_a_mark_over_two_lines_and_over_escapes() -> None:
    assert show_bytes(b"ab\ncd", (1, 4)) == [r"ab\n", " ^^^", "cd", "^"]


def test_an_empty_mark_at_the_end_shows_where_bytes_are_missing() -> None:
    assert show_bytes(b"abc", (3, 3)) == ["abc", "   ^"]


def test_nothing_is_said_to_be_nothing() -> None:
    assert show_bytes(b"") == ["(nothing)"]


def test_long_bytes_are_cut_at_both_ends_and_around_the_mark() -> None:
    data = b"".join(b"line %03d\n" % number for number in range(100))
    lines = show_bytes(data, (450, 458))
    assert lines[0] == r"line 000\n"
    assert lines[-1] == r"line 099\n"
    assert r"line 050\n" in lines
    assert lines[lines.index(r"line 050\n") + 1] == "^^^^^^^^"
    assert any("bytes not shown" in line for line in lines)
    assert len(lines) < 30


def test_a_row_is_never_wider_than_the_page() -> None:
    assert max(len(line) for line in show_bytes(b"\x00" * 5000)) <= WIDTH + 4


def test_of_megabytes_only_a_window_is_laid_out() -> None:
    lines = show_bytes(b"x" * 8_000_000, (7_000_000, 7_000_003))
    assert len(lines) < 40
    assert "^^^" in [line.strip() for line in lines]
    assert lines[-1] == "... 8000000 bytes in all ..."
