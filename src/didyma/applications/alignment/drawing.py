"""Heat maps of latent alignments, and the structures that SparseMAP mixed them from.

The premise stands on the left and the hypothesis above. Of each direction there is a panel with the
weights, in which a frame marks those above 0, and one for each of its most probable structures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.networks.pages import page, svg_element
from didyma.files import PathName, replace_when_done
from didyma.report.figures import ACCENT, INK, PAPER, QUIET, SIZE, SMALL, percent
from didyma.report.plots import check_picture, require_matplotlib, write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from didyma.applications.alignment.esim import Alignment, Selected
    from didyma.applications.alignment.reader import Pair

Floats = NDArray[np.float64]

TO_HYPOTHESIS, TO_PREMISE = "premise to hypothesis", "hypothesis to premise"
PATHS = {TO_HYPOTHESIS: "rows", TO_PREMISE: "columns"}  # along which a line joins the cells
NOTHING = "#eef1f5"  # shade of weight 0
CELL, LETTER, TITLE, LEAST = 0.27, 0.085, 0.36, 1.7  # inches, the last of a panel

LEAD = (
    "<p>Shade is weight, a frame marks weights above 0; dots are the structures that were "
    "selected, with their probabilities.</p>"
)


def heat_maps(
    alignments: Sequence[Alignment], titles: Sequence[str] | None = None, *, most: int = 3
) -> Figure:
    """The alignments below each other, each with its ``most`` probable structures side by side.

    >>> from didyma.applications.alignment.esim import Alignment
    >>> weights = np.array([[0.5, 0.5]])
    >>> figure = heat_maps([Alignment(("dogs",), ("dogs", "bark"), weights, np.ones((1, 2)), {})])
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['premise to hypothesis\\nrows sum to 1', 'hypothesis to premise\\ncolumns sum to 1']
    """
    require_matplotlib("drawing alignments")
    from matplotlib.figure import Figure  # not pyplot, which would look for a screen
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not alignments:
        raise DataError("expected one at least, found none", field="alignments")
    blocks = [_rows(one, most) for one in alignments]
    columns = max(len(panels) for rows in blocks for panels in rows)
    sizes = np.array([_size(one, len(rows), columns) for one, rows in zip(alignments, blocks)])
    heights = sizes[:, 1] + (TITLE if titles else 0.0)
    size = (sizes[:, 0].max(), heights.sum())
    figure = Figure(size, facecolor=PAPER, layout=ConstrainedLayoutEngine(w_pad=0.1))
    parts = figure.subfigures(len(blocks), 1, height_ratios=heights, squeeze=False)[:, 0]
    for place, (part, one, rows) in enumerate(zip(parts, alignments, blocks)):
        if titles:
            style = {"size": SIZE, "weight": "bold", "color": INK, "parse_math": False}
            part.suptitle(titles[place], x=0.01, ha="left", **style)
        grid = part.subplots(len(rows), columns, squeeze=False)
        for line, panels in zip(grid, rows):
            for axes, panel in zip_longest(line, panels):
                _draw(axes, panel, one, named=axes is line[0])
    return figure


def write(
    alignments: Sequence[Alignment], titles: Sequence[str], path: PathName, *, most: int = 3
) -> None:
    """Write a page (.html) or a picture (.svg, .png, .pdf), whole or not at all."""
    kind = check_picture(path, (".html", ".svg", ".png", ".pdf"))
    if kind != ".html":
        write_picture(heat_maps(alignments, titles, most=most), path)
        return
    contents = _page(alignments, titles, most)
    with replace_when_done(path) as file:
        file.write(contents)


@dataclass(frozen=True)
class _Panel:
    """Weights, and cells of one structure to mark in them; none means to write the weights."""

    caption: str
    weights: Floats
    cells: NDArray[np.bool_] | None = None
    path: str = ""


def _rows(alignment: Alignment, most: int) -> list[list[_Panel]]:
    """The panels of each direction; softmax has no structures, so both stand side by side."""
    weights = {TO_HYPOTHESIS: alignment.to_hypothesis, TO_PREMISE: alignment.to_premise}
    if not alignment.selected:
        sums = ("rows sum to 1", "columns sum to 1")
        return [[_Panel(f"{name}\n{text}", weights[name]) for name, text in zip(weights, sums)]]
    return [
        _panels(name, weights.get(name, alignment.to_hypothesis), selected, most)
        for name, selected in alignment.selected.items()
    ]


def _panels(name: str, weights: Floats, selected: Selected, most: int) -> list[_Panel]:
    count = len(selected.probabilities)
    several = f"{count} structures" if count > 1 else "1 structure"
    structures = zip(selected.structures[:most], selected.probabilities)
    return [
        _Panel(f"{name}\n{several}", weights),
        *(_Panel(percent(p), weights, cells, PATHS.get(name, "")) for cells, p in structures),
    ]


def _size(alignment: Alignment, rows: int, columns: int) -> tuple[float, float]:
    m, n = alignment.to_premise.shape
    slanted = LETTER * max(map(len, alignment.hypothesis))
    width = columns * max(CELL * n + slanted, LEAST) + LETTER * max(map(len, alignment.premise))
    return width, rows * (CELL * m + slanted + 2 * TITLE)


def _draw(axes: Any, panel: _Panel | None, alignment: Alignment, *, named: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    if panel is None:
        axes.remove()
        return
    shades = LinearSegmentedColormap.from_list("weights", [NOTHING, ACCENT])
    lines = {"edgecolors": PAPER, "linewidth": 1.2}
    axes.pcolormesh(panel.weights, cmap=shades, vmin=0.0, vmax=1.0, **lines)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    style = {"size": SIZE, "color": INK, "parse_math": False}
    above = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("bottom")
    hypothesis, premise = alignment.hypothesis, alignment.premise if named else ()
    axes.set_xticks(np.arange(len(hypothesis)) + 0.5, hypothesis, **style, **above)
    axes.set_yticks(np.arange(len(premise)) + 0.5, premise, **style)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(panel.caption, size=SIZE, loc="left", color=INK)
    if panel.cells is None:
        for i, j in np.argwhere(panel.weights > 0):
            _frame(axes, i, j, float(panel.weights[i, j]))
        return
    i, j = np.nonzero(panel.cells)
    order = np.argsort(j if panel.path == "columns" else i, kind="stable")
    line = {"linestyle": "-" if panel.path else "none", "linewidth": 1.4}
    dot = {"marker": "o", "markersize": 7, "markeredgecolor": PAPER}
    axes.plot(j[order] + 0.5, i[order] + 0.5, color=INK, **line, **dot)


def _frame(axes: Any, i: int, j: int, weight: float) -> None:
    """The border of a weight above 0, and its percentage."""
    from matplotlib.patches import Rectangle

    border = Rectangle((j + 0.04, i + 0.04), 0.92, 0.92, fill=False)
    border.set(edgecolor=QUIET, linewidth=0.6)
    axes.add_patch(border)
    colour = PAPER if weight > 0.85 else INK
    text = f"{100 * weight:.0f}" if weight >= 0.005 else ""
    axes.text(j + 0.5, i + 0.5, text, size=SMALL - 1, color=colour, ha="center", va="center")


def _page(alignments: Sequence[Alignment], titles: Sequence[str], most: int) -> str:
    sections = []
    for one, title in zip(alignments, titles, strict=True):
        picture = svg_element(heat_maps([one], most=most))
        sentences = (" ".join(one.premise), " ".join(one.hypothesis))
        lines = "".join(f"<p>{escape(sentence)}</p>\n" for sentence in sentences)
        label = escape(f"Alignment of: {sentences[0]} / {sentences[1]}", quote=True)
        sections.append(
            f"<h2>{escape(title)}</h2>\n{lines}"
            f'<figure role="img" aria-label="{label}">{picture}</figure>'
        )
    return page("Alignments", "\n".join([LEAD, *sections]))


def write_lines(pairs: Sequence[Pair], alignments: Sequence[Alignment], path: PathName) -> None:
    """Write alignments as data, a line of JSON for each pair."""
    with replace_when_done(path) as file:
        for pair, alignment in zip(pairs, alignments):
            record = {
                **({} if pair.id is None else {"pairID": pair.id}),
                "premise": alignment.premise,
                "hypothesis": alignment.hypothesis,
                "to_hypothesis": alignment.to_hypothesis.round(6).tolist(),
                "to_premise": alignment.to_premise.round(6).tolist(),
                "selected": {
                    name: [
                        {"probability": share, "cells": np.argwhere(cells).tolist()}
                        for cells, share in zip(one.structures, one.probabilities.tolist())
                    ]
                    for name, one in alignment.selected.items()
                },
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
