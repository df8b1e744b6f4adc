"""The heat map: right cells in the right colours, axes that can be read, one clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.image import imread

from tinyllm.training.errors import TrainingError
from tinyllm.training.plot import CELL_PIXELS, draw_matrix, plot_matrix


@pytest.fixture
def rows() -> npt.NDArray[np.float64]:
    """After "a" certainly "b"; every other row is uniform."""
    matrix = np.full((256, 256), 1 / 256)
    matrix[ord("a")] = 0.0
    matrix[ord("a"), ord("b")] = 1.0
    return matrix


def test_cells_lie_at_row_previous_and_column_next(
    tmp_path: Path, rows: npt.NDArray[np.float64]
) -> None:
    figure = draw_matrix(rows, "title")
    axes = figure.axes[0]
    plot_matrix(rows, "title", tmp_path / "plot.png")
    pixels = imread(tmp_path / "plot.png")[:, :, :3]

    def cell(prev: str, following: str) -> float:
        """The brightness in the middle of a cell, 0 to 1."""
        x, y = axes.transData.transform((ord(following), ord(prev)))
        return float(pixels[pixels.shape[0] - 1 - int(y), int(x)].mean())

    assert cell("a", "b") > 0.8  # certain: the bright end
    assert cell("a", "c") < 0.1  # never: the dark end
    assert cell("b", "a") == pytest.approx(0xD0 / 255, abs=0.01)  # uniform: grey


def test_a_cell_is_a_whole_number_of_pixels(rows: npt.NDArray[np.float64]) -> None:
    axes = draw_matrix(rows, "title").axes[0]
    corner = axes.transData.transform([(-0.5, -0.5), (255.5, 255.5)])
    width, height = np.abs(corner[1] - corner[0])
    assert (width, height) == pytest.approx((256 * CELL_PIXELS, 256 * CELL_PIXELS))


def test_axes_name_the_bytes(rows: npt.NDArray[np.float64]) -> None:
    axes = draw_matrix(rows, "title").axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("next byte", "previous byte")
    for ticks, labels in (
        (axes.get_xticks(), axes.get_xticklabels()),
        (axes.get_yticks(), axes.get_yticklabels()),
    ):
        names = {label.get_text(): int(tick) for tick, label in zip(ticks, labels, strict=True)}
        assert names["a"] == ord("a")
        assert names["space"] == 32
        assert names["0x80"] == 0x80


def test_uniform_rows_are_explained(rows: npt.NDArray[np.float64]) -> None:
    texts = [text.get_text() for text in draw_matrix(rows, "title").texts]
    assert "grey: 255 uniform rows" in texts


def test_a_picture_that_cannot_be_written_is_an_error(
    tmp_path: Path, rows: npt.NDArray[np.float64]
) -> None:
    path = tmp_path / "missing/plot.png"
    with pytest.raises(TrainingError, match=f"^{path}: No such file or directory$"):
        plot_matrix(rows, "title", path)


def test_without_matplotlib_the_error_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tinyllm.__main__ import main\n"
        f"main(['train', 'bigram', '--out', {str(tmp_path / 'model')!r}])\n"
        f"sys.exit(main(['inspect', {str(tmp_path / 'model')!r}, '--plot', 'x.png']))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert run.returncode == 1
    assert run.stderr == (
        "tinyllm inspect: a plot needs matplotlib, which is not installed:"
        " pip install 'tinyllm[plot]'\n"
    )
    assert not (tmp_path / "x.png").exists()
