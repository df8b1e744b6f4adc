"""JSON beyond the corpus: what the library's reader would let through, and what is written."""

from __future__ import annotations

import math
import sys

import pytest

from tinyllm.wire import Json, JsonError, dump_json, json_string, parse_json


def test_json_unicode_escapes_and_surrogate_pairs() -> None:
    assert parse_json(rb'{"text":"\u00e9\ud83d\ude00"}') == {"text": "é😀"}
    assert len(parse_json(rb'"\u00e9\ud83d\ude00"').encode()) == 6


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0", 0),
        ("1.0", 1.0),
        ("1e2", 100.0),
        ("1E-400", 0.0),
        ("-0.0", -0.0),
        ("18446744073709551616", 2**64),
        (" \t\r\n[ ] \n", []),
    ],
)
def test_numbers_keep_their_kind(text: str, value: object) -> None:
    assert repr(parse_json(text)) == repr(value)  # 1 is not 1.0, 0.0 is not -0.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("NaN", "NaN is not JSON", id="nan"),
        pytest.param("[Infinity]", "Infinity is not JSON", id="infinity"),
        pytest.param("-Infinity", "-Infinity is not JSON", id="minus-infinity"),
        pytest.param("1e309", "1e309 is out of range", id="too-large"),
        pytest.param("[-1e400]", "-1e400 is out of range", id="too-small"),
        pytest.param("", "Expecting value at line 1 column 1", id="empty"),
        pytest.param("[1,\n2 3]", "at line 2 column 3", id="comma"),
        pytest.param("1 2", "Extra data at line 1 column 3", id="two-values"),
        pytest.param('{"a":1}}', "Extra data at line 1 column 8", id="one-brace-more"),
        pytest.param('"a\tb"', "Invalid control character at line 1 column 3", id="raw-tab"),
        pytest.param('["a', "Unterminated string starting at line 1 column 2", id="no-quote"),
        pytest.param("\ufeff1", "byte order mark", id="mark-in-text"),
        pytest.param(b"\xef\xbb\xbf1", "byte order mark", id="mark-in-bytes"),
        pytest.param('"\ud800"', "lone surrogate at character 1", id="surrogate-in-text"),
        pytest.param(b'"\xed\xa0\x80"', "not UTF-8: .* at byte 1", id="surrogate-in-bytes"),
        pytest.param(b'"\xff"', "not UTF-8: .* at byte 1", id="not-utf8"),
        pytest.param(b'\xff\xfe"\x00a\x00"\x00', "not UTF-8", id="utf16"),
        pytest.param(r'"\ud800"', "surrogate escape at character 1", id="high-alone"),
        pytest.param(r'"\udc00"', "surrogate escape at character 1", id="low-alone"),
        pytest.param(r'"\udc00\ud800"', "surrogate escape at character 1", id="low-high"),
        pytest.param(r'"\ud800\ud800\udc00"', "surrogate escape at character 1", id="high-pair"),
        pytest.param(r'"\ud83d\ude00\ud800x"', "surrogate escape at character 13", id="pair-high"),
        pytest.param(r'{"\ud800":1,"\ud800":1}', "surrogate escape at character 2", id="in-a-key"),
        pytest.param(r'"\\\ud800"', "surrogate escape at character 3", id="after-a-backslash"),
        pytest.param('{"a":"\\ud800","a":1}', "surrogate escape", id="in-a-value-that-is-lost"),
        pytest.param("9" * 5000, "a number cannot be read", id="int-of-5000-digits"),
        pytest.param("[" * 129 + "]" * 129, "nested over 128 levels", id="arrays"),
        pytest.param('{"a":' * 129 + "1" + "}" * 129, "nested over 128 levels", id="objects"),
        pytest.param('"]]"' + "[" * 100_000, "nested over 128 levels", id="deep-and-broken"),
    ],
)
def test_what_is_no_json_is_refused_with_a_reason(text: str | bytes, said: str) -> None:
    with pytest.raises(JsonError, match=said):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(r'"\\ud800"', id="escaped-backslash"),
        pytest.param(r'"\ud7ff\ue000"', id="neighbours-of-surrogates"),
        pytest.param(r'"\uDBFF\uDFFF"', id="last-pair"),
        pytest.param('["' + "[" * 200 + '","\\"' + "{" * 200 + '"]', id="brackets-in-strings"),
        pytest.param("[" + "[]," * 1000 + "{}]", id="many-but-shallow"),
        pytest.param("[" * 128 + "]" * 128, id="as-deep-as-allowed"),
    ],
)
def test_what_only_looks_like_it_is_read(text: str) -> None:
    assert dump_json(parse_json(text)) == dump_json(parse_json(text.encode()))


def test_depth_is_the_callers_choice() -> None:
    assert parse_json("[[1]]", max_depth=2) == [[1]]
    with pytest.raises(JsonError, match="nested over 1 levels"):
        parse_json("[[1]]", max_depth=1)
    with pytest.raises(JsonError, match="nested over 0 levels"):
        parse_json("{}", max_depth=0)


def test_depth_beyond_the_stack_is_an_error_too() -> None:
    deep = sys.getrecursionlimit() * 200
    with pytest.raises(JsonError, match="too deep for the stack"):
        parse_json("[" * deep + "]" * deep, max_depth=deep)


def test_last_of_two_equal_keys_wins() -> None:
    assert parse_json('{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


def test_equal_keys_are_refused_where_they_must_be() -> None:
    assert parse_json('{"a":{"b":1},"b":1}', reject_duplicates=True) == {"a": {"b": 1}, "b": 1}
    with pytest.raises(JsonError, match='the key "b" stands twice'):
        parse_json('{"a":[{"b":1,"c":2,"b":1}]}', reject_duplicates=True)
    with pytest.raises(JsonError, match='the key "a" stands twice'):
        parse_json(r'{"a":1,"\u0061":1}', reject_duplicates=True)


def test_equal_keys_are_found_in_linear_time() -> None:
    members = ",".join(f'"{n}":0' for n in range(50_000))
    with pytest.raises(JsonError, match='the key "49999" stands twice'):
        parse_json(f'{{{members},"49999":0}}', reject_duplicates=True)


def test_numbers_too_large_for_a_float_can_be_allowed() -> None:
    assert parse_json("[1e400,-1e400]", allow_overflow=True) == [math.inf, -math.inf]
    with pytest.raises(JsonError, match="Infinity is not JSON"):
        parse_json("Infinity", allow_overflow=True)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'),
        ('he said "hé"', '"he said \\"hé\\""'),
        ("\\", '"\\\\"'),
        ("/", '"/"'),
        ("\n\r\t\b\f", '"\\n\\r\\t\\b\\f"'),
        ("\0\x01\x1f", '"\\u0000\\u0001\\u001f"'),
        ("\x7f\x85\u2028\u2029", '"\\u007f\\u0085\\u2028\\u2029"'),
        (
            "\x80\x84\x86\xa0\u2027\u202a\ufeff\ufffd\uffff",
            '"\x80\x84\x86\xa0\u2027\u202a\ufeff\ufffd\uffff"',
        ),
        ("😀\U0010ffff", '"😀\U0010ffff"'),
    ],
)
def test_json_string_escapes_quotes_and_control_bytes(text: str, written: str) -> None:
    assert json_string(text) == written
    assert dump_json([text, {text: text}]) == f"[{written},{{{written}:{written}}}]"
    assert parse_json(written) == text


def test_string_that_utf8_cannot_carry_is_refused() -> None:
    for text in ("\ud800", "a\udfff", "\udc00\ud800"):
        with pytest.raises(JsonError, match="lone surrogate U\\+D"):
            json_string(text)
        with pytest.raises(JsonError, match="lone surrogate U\\+D"):
            dump_json({text: 1})


def test_values_are_written_without_white_space() -> None:
    value: Json = {"a": [1, -2.5, 1e22, True, False, None], "b": {}, "c": (), "é": "\x7f"}
    written = '{"a":[1,-2.5,1e+22,true,false,null],"b":{},"c":[],"é":"\\u007f"}'
    assert dump_json(value) == written


def test_values_that_are_no_json_are_refused() -> None:
    itself: list[Json] = []
    itself.append(itself)
    deep: list[Json] = []
    for _ in range(sys.getrecursionlimit() * 200):
        deep = [deep]
    for value in (math.nan, math.inf, [-math.inf], itself, deep, 10**5000):
        with pytest.raises(JsonError, match="not a JSON value"):
            dump_json(value)
    with pytest.raises(TypeError):
        dump_json({"a": b"bytes"})


def test_json_parses_nested_values_and_escapes() -> None:
    text = (
        r'{"a":[1,{"b":[null,true,false,-2.5e1]},[]],"c":{"d":{}},'
        r'"e":"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00"}'
    )
    assert parse_json(text) == {
        "a": [1, {"b": [None, True, False, -25.0]}, []],
        "c": {"d": {}},
        "e": '"\\/\b\f\n\r\tA\U0001f600',
    }
    assert [type(number) for number in parse_json("[7,7.0,7e0]")] == [int, float, float]
    for invalid in ("{", "[1,]", "{'a':1}", '"\\x"', "01", "nul"):
        with pytest.raises(JsonError):
            parse_json(invalid)
