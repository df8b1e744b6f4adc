"""The report: figures that can be worked out by hand."""

from __future__ import annotations

import json
import math

import pytest

from tinyllm.training.errors import TrainingError
from tinyllm.training.options import TrainOptions
from tinyllm.training.report import Report, make_report
from tinyllm.training.tally import Tally

TINY = 1e-9  # a smoothing that leaves the shares as they were counted


def report_on(*texts: bytes, holdout: float = 0.5, smoothing: float = TINY) -> Report:
    tally = Tally(holdout)
    for text in texts:
        tally.count_text(text)
    return make_report(tally, TrainOptions(smoothing=smoothing, holdout=holdout), seconds=0.5)


def test_figures_by_hand() -> None:
    # Trained on "abac": after "a" come "b" and "c" alike, 1 bit; after "b" only "a", 0 bits.
    # The tail "abab" is predicted byte by byte, the first after "c", which was never seen: 8 bits.
    report = report_on(b"abacabab")
    assert report.bytes == 8
    assert report.pairs == 7
    assert report.train is not None
    assert report.held_out is not None
    assert (report.train.bytes, report.train.pairs) == (4, 3)
    assert report.train.bits_per_byte == pytest.approx(2 / 3, abs=1e-5)
    assert (report.held_out.bytes, report.held_out.pairs) == (4, 4)
    assert report.held_out.bits_per_byte == pytest.approx((8 + 1 + 0 + 1) / 4, abs=1e-5)
    assert report.held_out.perplexity == pytest.approx(2**2.5, abs=1e-3)


def test_order_0_by_hand() -> None:
    # Predicted in training were b, a, c, each a third; in the tail a, b, a, b: log2(3) each.
    report = report_on(b"abacabab")
    assert report.train is not None
    assert report.held_out is not None
    assert report.train.order0_bits_per_byte == pytest.approx(math.log2(3), abs=1e-5)
    assert report.held_out.order0_bits_per_byte == pytest.approx(math.log2(3), abs=1e-5)
    assert report.held_out.order0_perplexity == pytest.approx(3.0, abs=1e-4)


def test_held_out_figures_do_not_know_the_tail() -> None:
    """A tail of a byte that training never saw costs what smoothing alone gives it."""
    report = report_on(b"aaaazzzz", smoothing=1.0)
    assert report.held_out is not None
    a_z, z_z = math.log2(259 / 1), math.log2(256 / 1)
    assert report.held_out.bits_per_byte == pytest.approx((a_z + 3 * z_z) / 4, abs=1e-5)


def test_nothing_held_out_has_no_figures() -> None:
    report = report_on(b"abab", holdout=0.0)
    assert report.held_out is None
    assert json.loads(report.to_json())["held_out"] is None
    assert "held-out" not in report.to_text()


def test_a_training_part_without_a_pair_has_no_figures() -> None:
    report = report_on(b"ab")  # "a" trains, "b" is held out and predicted by a uniform row
    assert report.train is None
    assert report.held_out is not None
    assert report.held_out.bits_per_byte == pytest.approx(8.0)


def test_json_has_all_figures() -> None:
    report = report_on(b"abacabab")
    assert report.train is not None
    fields = json.loads(report.to_json())
    assert fields["uniform"] == {"bits_per_byte": 8.0, "perplexity": 256.0}
    assert {key: fields[key] for key in ("bytes", "pairs", "smoothing", "holdout", "seconds")} == {
        "bytes": 8, "pairs": 7, "smoothing": TINY, "holdout": 0.5, "seconds": 0.5,
    }  # fmt: skip
    assert fields["train"] == {
        "bytes": 4,
        "pairs": 3,
        "bits_per_byte": report.train.bits_per_byte,
        "perplexity": report.train.perplexity,
        "order0_bits_per_byte": report.train.order0_bits_per_byte,
        "order0_perplexity": report.train.order0_perplexity,
    }


def test_text_is_a_table() -> None:
    assert report_on(b"abacabab" * 1000).to_text() == (
        "8,000 bytes, 7,999 pairs in 0.50 s (16 kB/s)\n"
        "\n"
        "bits per byte (perplexity)\n"
        "                       bytes         uniform         order 0          bigram\n"
        "training               4,000   8.000 (256.0)     1.406 (2.6)     0.406 (1.3)\n"
        "held-out               4,000   8.000 (256.0)     1.406 (2.6)     0.406 (1.3)"
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param([], "the text is empty: there is nothing to learn from", id="no text"),
        pytest.param([b"", b""], "the text is empty: there is nothing to learn from", id="empty"),
        pytest.param(
            [b"x"], "no text has two bytes in a row: there is no pair to learn from", id="a byte"
        ),
        pytest.param(
            [b"x", b"y"],
            "no text has two bytes in a row: there is no pair to learn from",
            id="two texts of a byte",
        ),
    ],
)
def test_a_text_without_a_pair_is_an_error(texts: list[bytes], message: str) -> None:
    with pytest.raises(TrainingError) as raised:
        report_on(*texts)
    assert str(raised.value) == message
