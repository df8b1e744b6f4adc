"""The byte tokenizer: ids are the bytes of UTF-8."""

from __future__ import annotations

import pytest

from tinyllm.decoding.tokenizer import ByteTokenizer


def test_ids_are_the_utf8_bytes() -> None:
    tokenizer = ByteTokenizer()
    assert list(tokenizer.encode("aé😀")) == [0x61, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80]
    assert tokenizer.encode("") == b""
    assert tokenizer.vocab_size == 256


def test_ids_of_text_come_back_as_text() -> None:
    tokenizer = ByteTokenizer()
    text = "".join(map(chr, [*range(0x500), 0x20AC, 0xFEFF, 0x1F600, 0x10FFFF]))
    assert tokenizer.decode(list(tokenizer.encode(text))) == text


def test_invalid_ids_are_replaced_one_maximal_subpart_each() -> None:
    assert ByteTokenizer().decode([0xC3, 0xA9, 0xFF, 0xE2, 0x82]) == "é\ufffd\ufffd"


def test_ids_that_are_no_bytes_are_refused() -> None:
    for ids in ([256], [-1]):
        with pytest.raises(ValueError, match="bytes must be in range"):
            ByteTokenizer().decode(ids)


def test_lone_surrogates_have_no_ids() -> None:
    with pytest.raises(UnicodeEncodeError):
        ByteTokenizer().encode("\ud800")
