"""Heat maps of latent alignments, and the structures that SparseMAP mixed them from.

The premise stands on the left and the hypothesis above. Of each direction there is a panel with the
weights, in which a frame marks those above 0, and one for each of its most probable structures.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.files import PathName, format_suffix, replace_when_done
from didyma.report.figures import ACCENT, INK, PAPER, QUIET, SIZE, SMALL
from didyma.report.plots import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from didyma.applications.alignment.esim import Alignment, Selected
    from didyma.applications.alignment.reader import Pair

Floats = NDArray[np.float64]

TO_HYPOTHESIS, TO_PREMISE = "premise to hypothesis", "hypothesis to premise"
PATHS = {TO_HYPOTHESIS: "rows", TO_PREMISE: "columns"}  # along which a line joins the cells
NOTHING = "#eef1f5"  # shade of weight 0
CELL, LETTER, TITLE, LEAST = 0.27, 0.085, 0.36, 1.7  # inches, the last of a panel

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Alignments</title>
<style>
body {{ margin: 2rem auto; padding: 0 1.25rem; max-width: 75rem; color: {ink};
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
h2 {{ font-size: 1.1rem; margin: 2.5rem 0 .25rem; padding-top: 1rem;
  border-top: 1px solid #d5dae1; }}
p {{ margin: 0; }}
figure {{ margin: .75rem 0 0; overflow-x: auto; }}
</style>
</head>
<body>
<h1>Alignments</h1>
<p>Shade is weight, a frame marks weights above 0; dots are the structures that were selected, with
their probabilities.</p>
{sections}
</body>
</html>
"""


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
    kind = format_suffix(path)
    if kind == ".html":
        contents: str | bytes = _page(alignments, titles, most)
    elif kind in (".svg", ".png", ".pdf"):
        contents = _picture(heat_maps(alignments, titles, most=most), kind)
    else:
        raise DataError("expected a name that ends in .html, .svg, .png or .pdf", path=path)
    with replace_when_done(path, "w" if isinstance(contents, str) else "wb") as file:
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
    found = [_Panel(f"{name}\n{several}", weights)]
    for cells, probability in zip(selected.structures[:most], selected.probabilities):
        found.append(_Panel(_percent(probability), weights, cells, PATHS.get(name, "")))
    return found


def _size(alignment: Alignment, rows: int, columns: int) -> tuple[float, float]:
    """Inches, roughly: the layout does the rest."""
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


def _percent(share: float) -> str:
    """Never rounded to certainty or impossibility."""
    if share < 0.01:
        return "<1%"
    return f"{share:.0%}" if share <= 0.99 or share > 1 - 1e-9 else ">99%"


def _page(alignments: Sequence[Alignment], titles: Sequence[str], most: int) -> str:
    sections = []
    for one, title in zip(alignments, titles, strict=True):
        svg = _picture(heat_maps([one], most=most), ".svg").decode()
        svg = svg[svg.index("<svg") :]
        sentences = (" ".join(one.premise), " ".join(one.hypothesis))
        lines = "".join(f"<p>{escape(sentence)}</p>\n" for sentence in sentences)
        label = escape(f"Alignment of: {sentences[0]} / {sentences[1]}", quote=True)
        sections.append(
            f"<h2>{escape(title)}</h2>\n{lines}"
            f'<figure role="img" aria-label="{label}">{svg}</figure>'
        )
    return PAGE.format(ink=INK, sections="\n".join(sections))


def _picture(figure: Figure, kind: str) -> bytes:
    import matplotlib

    contents = io.BytesIO()
    date = {"Date": None} if kind == ".svg" else {}
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "didyma"}):
        figure.savefig(contents, format=kind[1:], metadata=date, dpi=150)
    return contents.getvalue()


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
