"""Dependency trees with their probabilities, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.report.figures import (
    MARGIN,
    SMALL,
    TITLE,
    Posterior,
    indicators,
    line_width,
    panel_views,
    panels_of,
    patches,
    percent,
    read_posterior,
    text_width,
    without_padding,
    write_label,
    write_text,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def draw_trees(posterior: Posterior, words: Sequence[str], *, most: int = 3) -> Figure:
    """Arcs from heads to words over the sentence, one panel per tree; outputs (k, n + 1) are heads.

    ``heads[0]`` is ignored, as the root has none; head 0 is an arrow from above.

    >>> figure = draw_trees(([[-1, 2, 0], [-1, 0, 1]], [0.7, 0.3]), ["dogs", "bark"])
    >>> [axes.get_title() for axes in figure.axes]
    ['2 trees', '70%', '30%']
    """
    heads, probabilities = read_posterior(posterior, 2)
    heads = without_padding(heads, "words and the root", len(words) + 1)[:, 1:]
    arcs = indicators(heads, len(words) + 1, "words and the root")
    views = list(panel_views(arcs, probabilities, "trees", most))
    widths = np.array([max(text_width(word), 0.32) for word in words])
    xs = MARGIN + np.cumsum(widths + 0.22) - widths / 2 - 0.22
    base = MARGIN + 0.3
    spans = np.abs(np.arange(1, len(words) + 1)[:, None] - np.arange(len(words) + 1))
    used = views[0].values > 0
    top = base + _rise(spans[:, 1:].max(initial=1, where=used[:, 1:])) + 0.3
    crown = 0.2 if len(views) == 1 or used[:, 0].sum() == 1 else 0.34
    figure, panels = panels_of(len(views), xs[-1] + widths[-1] / 2 + MARGIN, top + crown + TITLE)
    for axes, view in zip(panels, views):
        write_title(axes, view.title)
        for x, word in zip(xs, words):
            write_text(axes, x, base - 0.17, word)
        for m in np.flatnonzero(view.values[:, 0]).tolist():
            share, colour = view.values[m, 0], view.colour(m, 0)
            _arrow(axes, [(xs[m], top), (xs[m], base)], share, colour)
            note = "root" if view.single or view.common[m, 0] else f"root\n{percent(share)}"
            write_text(axes, xs[m], top + 0.03, note, size=SMALL, color=colour, va="bottom")
        taken: list[Floats] = []
        for m, h, start, end, rise in _arcs(view.values[:, 1:] > 0, xs):
            share, colour = view.values[m, h + 1], view.colour(m, h + 1)
            bend = base + rise * 4 / 3  # a cubic curve with its ends at 0 rises to 3/4 of this
            curve = np.array([(start, base), (start, bend), (end, bend), (end, base)])
            _arrow(axes, curve, share, colour)
            if not view.single and not view.common[m, h + 1]:
                taken.append(_free_spot(curve, taken))
                write_label(axes, taken[-1][0], taken[-1][1], percent(share), colour)
    return figure


def _rise(span: int) -> float:
    return 0.3 * float(span) ** 0.75


def _arcs(chosen: NDArray[np.bool_], xs: Floats) -> Iterator[tuple[int, int, float, float, float]]:
    """Word, head, where the arc starts and ends, and its height; ``chosen`` is [word, head].

    Of the arcs that meet on one side of a word, the higher stand closer to its middle.
    """
    rises = {}
    for m, h in np.argwhere(chosen):
        twin = h > m and chosen[h, m]  # the same two words the other way round
        rises[m, h] = _rise(abs(m - h)) + (0.18 if twin else 0.0)
    feet: dict[tuple[int, bool], int] = {}
    ends = {}
    for m, h in sorted(rises, key=lambda arc: -rises[arc]):
        for word, other in ((m, h), (h, m)):
            side = bool(other > word)
            rank = feet[word, side] = feet.get((word, side), -1) + 1
            away = 0.06 + 0.075 * min(rank, 2)
            ends[m, h, word] = xs[word] + (away if side else -away)
    for (m, h), rise in rises.items():
        yield m, h, ends[m, h, h], ends[m, h, m], rise


def _free_spot(curve: Floats, taken: Sequence[Floats]) -> Floats:
    """A place on a cubic curve where no label stands yet, its middle if it can be."""
    for t in (0.5, 0.4, 0.6, 0.33, 0.67, 0.27, 0.73):
        weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
        spot = weights @ curve
        if all((np.abs(spot - other) > (0.32, 0.14)).any() for other in taken):
            return spot
    return curve[[1, 2]].mean(axis=0) * 0.75 + curve[[0, 3]].mean(axis=0) * 0.25


def _arrow(axes: Any, points: ArrayLike, share: float, colour: str) -> None:
    """A straight line of two points, or a cubic curve of four, with a head."""
    from matplotlib.path import Path

    corners = np.asarray(points)
    codes = [Path.LINETO] if len(corners) == 2 else [Path.CURVE4] * 3
    style = {"arrowstyle": "-|>", "mutation_scale": 9, "linewidth": line_width(share)}
    patch = patches().FancyArrowPatch(
        path=Path(corners, [Path.MOVETO, *codes]), color=colour, **style
    )
    axes.add_patch(patch)
