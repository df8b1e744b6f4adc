"""The 256 x 256 matrix as a picture: which byte follows which, and how surely.

The colour is the logarithm of the probability: on a linear scale all but a few hundred cells
would be black. The axes are marked where ASCII and UTF-8 change their meaning, since that is
what the blocks in the picture are. A uniform row says nothing and is left grey. One cell is
a whole number of pixels, so that no row is drawn thinner than its neighbour.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tinyllm.training.errors import TrainingError, explain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL_PIXELS = 5
DPI = 150
FLOOR = 1e-5  # what is rarer is drawn like this: once in a hundred thousand
GREY = "#d0d0d0"

# Bytes with a label on the axes, and the classes between the lines.
MARKS = {
    0: "0x00", 10: r"\n", 32: "space", 48: "0", 57: "9", 65: "A", 90: "Z", 97: "a", 122: "z",
    128: "0x80", 192: "0xC0", 224: "0xE0", 240: "0xF0", 255: "0xFF",
}  # fmt: skip
CLASSES = ((0, 32, "control"), (32, 128, "ASCII, printable"), (128, 192, "UTF-8 continuation"),
           (192, 256, "UTF-8 lead bytes"))  # fmt: skip


def plot_matrix(rows: npt.NDArray[np.float64], title: str, path: str | os.PathLike[str]) -> None:
    """Draw probabilities [256, 256] as a heat map into a PNG file; raise TrainingError."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise TrainingError(
            "a plot needs matplotlib, which is not installed: pip install 'tinyllm[plot]'"
        ) from error
    figure = draw_matrix(rows, title)
    try:
        FigureCanvasAgg(figure).print_figure(path, format="png", dpi=DPI)
    except OSError as error:
        raise TrainingError(explain(error, os.fspath(path))) from error


def draw_matrix(rows: npt.NDArray[np.float64], title: str) -> Figure:
    """Return the whole picture: matrix, axes, colour bar, and a word on the grey."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    side = len(rows) * CELL_PIXELS / DPI  # inches
    width, height = side + 2.7, side + 1.75
    figure = Figure(figsize=(width, height), dpi=DPI)
    axes = figure.add_axes((1.15 / width, 1.0 / height, side / width, side / height))
    is_uniform = rows.min(axis=1) == rows.max(axis=1)
    shown = np.ma.masked_where(np.broadcast_to(is_uniform[:, None], rows.shape), rows)
    image = axes.imshow(
        np.maximum(shown, FLOOR),
        norm=LogNorm(FLOOR, 1.0),
        cmap="magma",
        interpolation="nearest",
    )
    axes.set_facecolor(GREY)
    _mark_axes(axes)
    figure.suptitle(
        title, x=(1.15 + side / 2) / width, y=1 - 0.2 / height, fontsize=11, parse_math=False
    )
    bar = figure.add_axes(((1.15 + side + 0.55) / width, 1.0 / height, 0.2 / width, side / height))
    figure.colorbar(image, cax=bar, extend="min", extendfrac=0.02, label="probability")
    if is_uniform.any():
        note = f"grey: {is_uniform.sum()} uniform rows"
        figure.text((1.15 + side) / width, 0.12 / height, note, ha="right", fontsize=8)
    return figure


def _mark_axes(axes: Axes) -> None:
    """Label the bytes that begin or end a class, and draw lines between the classes."""
    labels = list(MARKS.values())
    axes.set_xticks(list(MARKS), labels, rotation=90, fontsize=8)
    axes.set_yticks(list(MARKS), labels, fontsize=8)
    axes.set_xlabel("next byte")
    axes.set_ylabel("previous byte")
    for begin, end, name in CLASSES:
        if begin:
            axes.axhline(begin - 0.5, color="#909090", linewidth=0.6)
            axes.axvline(begin - 0.5, color="#909090", linewidth=0.6)
        middle = (begin + end - 1) / 2
        axes.text(middle, -3, name, ha="center", va="bottom", fontsize=8)
        axes.text(258, middle, name, ha="left", va="center", fontsize=8, rotation=270)
