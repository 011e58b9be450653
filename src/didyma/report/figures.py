"""Figures of a few structures with their probabilities, laid out in inches.

Texts are measured before anything is placed, so that nothing overlaps whatever the words are. A
posterior is a `Distribution` or a pair (structures, probabilities).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.polytope.distributions import Distribution
from didyma.report.plots import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    *("ACCENT", "INK", "MARGIN", "PAPER", "QUIET", "SIZE", "SMALL", "TITLE"),
    "Posterior",
    "View",
    "check_shape",
    "indicators",
    "line_width",
    "panel_views",
    "panels_of",
    "patches",
    "percent",
    "read_posterior",
    "text_width",
    "without_padding",
    "write_label",
    "write_text",
    "write_title",
]

Posterior: TypeAlias = Distribution | tuple[ArrayLike, ArrayLike]
Floats = NDArray[np.float64]

PAPER, INK, QUIET, FAINT, ACCENT = "#ffffff", "#1c2430", "#6b7685", "#d5dae1", "#0b6fb8"
OTHERS = "#aab3bf"
SIZE, SMALL = 10.5, 8.5  # of letters, in points
# All lengths are inches: so texts can be measured, and nothing overlaps whatever the names are.
PAGE = 8.4
MARGIN = 0.15
TITLE = 0.35


@dataclass(frozen=True)
class View:
    """What one panel shows: how probable each part is, and which ones all structures share."""

    title: str
    values: Floats
    common: NDArray[np.bool_]
    single: bool

    def colour(self, *part: Any) -> str:
        """Grey where all structures have the part, else the accent."""
        return QUIET if self.common[part] else ACCENT


def panel_views(parts: NDArray[Any], probabilities: Floats, what: str, most: int) -> Iterator[View]:
    """The marginals, unless there is a single structure, then the most probable structures."""
    count = len(parts)
    common = np.logical_and.reduce(parts.astype(bool))
    if count > 1:
        title = f"{count} {what}" + (f", {most} shown" if count > most else "")
        yield View(title, np.tensordot(probabilities, parts.astype(np.float64), 1), common, False)
    for one, probability in zip(parts[: most if count > 1 else 1], probabilities):
        yield View(percent(probability), one.astype(np.float64), common, True)


def read_posterior(posterior: Posterior, *ndim: int) -> tuple[NDArray[Any], Floats]:
    """Structures and their probabilities, most probable first."""
    require_matplotlib("drawing structures")
    if isinstance(posterior, Distribution):
        posterior = posterior.structures, posterior.probabilities
    structures = np.asarray(posterior[0])
    probabilities = np.asarray(posterior[1], dtype=np.float64)
    axes = " or ".join(map(str, ndim))
    check_shape(
        structures.ndim in ndim, f"one structure per row, {axes} axes in all", structures.shape
    )
    if not len(structures) or probabilities.shape != structures.shape[:1]:
        raise DataError(
            f"expected one probability for each of {len(structures)} structures, found shape "
            f"{probabilities.shape}",
            field="probabilities",
        )
    order = np.argsort(-probabilities, kind="stable")
    return structures[order], probabilities[order]


def check_shape(right: bool, expected: str, shape: tuple[int, ...]) -> None:
    """Raise the error for structures of another shape."""
    if not right:
        raise DataError(f"expected {expected}, found shape {shape}", field="structures")


def without_padding(outputs: NDArray[Any], what: str, *shape: int) -> NDArray[Any]:
    """The part of padded outputs that has this shape; nothing may stand in the rest."""
    inner = outputs[(slice(None), *map(slice, shape))]
    used = [np.count_nonzero(a if a.dtype == bool else a >= 0) for a in (inner, outputs)]
    expected = f"{' x '.join(map(str, shape))} {what}"
    check_shape(inner.shape[1:] == shape and used[0] == used[1], expected, outputs.shape)
    return inner


def indicators(
    outputs: NDArray[Any], n: int, what: str, *, none: bool = False
) -> NDArray[np.bool_]:
    """Indices below n as 0/1 arrays along one more axis; −1 may stand for none of them."""
    wrong = outputs[(outputs < (-1 if none else 0)) | (outputs >= n)]
    if len(wrong):
        raise DataError(f"there are {n} {what}, found index {wrong[0]}", field="structures")
    chosen: NDArray[np.bool_] = outputs[..., None] == np.arange(n)
    return chosen


def panels_of(count: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    """A figure with panels side by side and below each other, their units inches."""
    from matplotlib.figure import Figure  # not pyplot, which would look for a screen

    columns = min(count, max(1, int(PAGE / width)))
    rows = -(-count // columns)
    figure = Figure(figsize=(columns * width, rows * height), facecolor=PAPER)
    for place in range(count):
        row, column = divmod(place, columns)
        box = (column / columns, 1 - (row + 1) / rows, 1 / columns, 1 / rows)
        axes = figure.add_axes(box, xlim=(0, width), ylim=(0, height), autoscale_on=False)
        axes.axis("off")
    return figure, figure.axes


def write_title(axes: Any, text: str) -> None:
    """The title of a panel, at its upper left."""
    width, height = axes.get_xlim()[1], np.ptp(axes.get_ylim())
    place = {"x": MARGIN / width, "y": 1 - 0.1 / height, "ha": "left", "va": "top", "pad": 0}
    axes.set_title(text, fontsize=SIZE, fontweight="bold", color=INK, **place)


def write_text(axes: Any, x: float, y: float, text: str, **style: Any) -> None:
    """A text as it is, never a formula."""
    usual = {"ha": "center", "va": "center", "color": INK, "size": SIZE, "parse_math": False}
    axes.text(x, y, text, **usual | style)


def write_label(axes: Any, x: float, y: float, text: str, colour: str) -> None:
    """A text on a line, which it interrupts."""
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}
    write_text(axes, x, y, text, size=SMALL, color=colour, bbox=box, zorder=3)


def text_width(text: str, size: float = SIZE, *, bold: bool = False) -> float:
    """Of a line of text, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / 72


def percent(share: float) -> str:
    """A probability in two or three characters, never rounded to certainty or impossibility."""
    if share <= 0 or share >= 1 - 1e-9:
        return f"{share:.0%}"
    return "<1%" if share < 0.01 else f"{min(share, 0.99):.0%}"


def line_width(share: float) -> float:
    """In points, for a part of this probability."""
    return 0.7 + 1.3 * share


def patches() -> Any:
    """`matplotlib.patches`, imported when something is drawn."""
    from matplotlib import patches

    return patches
