"""JSONTestSuite's texts, as bytes and as text."""

from __future__ import annotations

import pytest

from support import wiredata
from tinyllm.wire import JsonError, dump_json, parse_json

CASES = wiredata.load("json_parsing.json")
ACCEPTED = [case for case in CASES if case["expect"] == "accept"]
REFUSED = [case for case in CASES if case["expect"] == "reject" or case.get("seed") == "reject"]
# RFC 8259 leaves these to the reader; CONTRACT, point 9, decides.
DECIDED = {
    "i_number_huge_exp": None,
    "i_number_pos_double_huge_exp": None,
    "i_number_real_neg_overflow": None,
    "i_number_real_pos_overflow": None,
    "i_number_real_underflow": [0.0],
    "i_number_too_big_neg_int": [-123123123123123123123123123123],
    "i_number_too_big_pos_int": [100000000000000000000],
    "i_structure_UTF-8_BOM_empty_object": None,
}


@pytest.mark.parametrize("case", wiredata.rows(ACCEPTED))
def test_json_that_must_be_read_is_read(case: wiredata.Case) -> None:
    data = wiredata.raw(case)
    value = parse_json(data)
    assert value == case["python_value"]
    assert type(value) is type(case["python_value"])
    assert parse_json(data.decode()) == value
    assert parse_json(dump_json(value)) == value


@pytest.mark.parametrize("case", wiredata.rows(REFUSED))
def test_json_that_must_be_refused_is_refused(case: wiredata.Case) -> None:
    data = wiredata.raw(case)
    with pytest.raises(JsonError):
        parse_json(data)
    text = data.decode("utf-8", "surrogatepass" if b"\xed\xa0" in data else "surrogateescape")
    with pytest.raises(JsonError):
        parse_json(text)


@pytest.mark.parametrize("name", DECIDED)
def test_json_that_the_rfc_leaves_open_is_decided(name: str) -> None:
    case = next(case for case in CASES if case["name"] == name)
    if DECIDED[name] is None:
        with pytest.raises(JsonError):
            parse_json(wiredata.raw(case))
    else:
        assert parse_json(wiredata.raw(case)) == DECIDED[name]


def test_every_case_is_in_one_group() -> None:
    groups = [*(case["name"] for case in ACCEPTED + REFUSED), *DECIDED]
    assert sorted(groups) == sorted(case["name"] for case in CASES)
    assert len(CASES) == 222
