"""The functions of an additive ranker as small pictures, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.estimators.additive import AdditiveSVMRanker
from didyma.features.bins import LEVELS
from didyma.files import PathName, replace_when_done
from didyma.report.plots import require_matplotlib

__all__ = ["SUFFIXES", "write_functions"]

SUFFIXES = (".png", ".svg", ".pdf")
COLUMNS, WIDTH, HEIGHT = 4, 2.9, 2.2  # of the grid, and inches of a picture
LINE, GREY = "#1f5fa8", "#8a8a8a"


def write_functions(
    ranker: AdditiveSVMRanker,
    path: PathName,
    *,
    names: Sequence[str],
    changed: NDArray[np.float64] | None = None,
    top: int = 24,
) -> None:
    """Draw what features and pairs add to a score, ``top`` of them, into a .png, .svg or .pdf.

    Functions are drawn less their means over the training rows. ``changed`` is the share of queries
    whose order each column changes (`AdditiveSVMRanker.changed_orders`).
    """
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise DataError(f"expected a name that ends in {', '.join(SUFFIXES)}", path=path)
    with require_matplotlib("drawing functions").rc_context({"font.size": 8}):
        figure = draw_functions(ranker, names, changed, top)
        with replace_when_done(path, "wb") as file:
            figure.savefig(file, format=suffix[1:], dpi=110)


def draw_functions(
    ranker: AdditiveSVMRanker,
    names: Sequence[str],
    changed: NDArray[np.float64] | None,
    top: int,
) -> Any:
    """The figure of `write_functions`."""
    from matplotlib.figure import Figure  # not pyplot, which would look for a screen

    importance = np.concatenate([ranker.feature_importances_, ranker.pair_importances_])
    order = np.argsort(-importance, kind="stable")[:top]
    order = order[importance[order] > 0]
    n_rows = max(1, -(-len(order) // COLUMNS))
    figure = Figure(figsize=(COLUMNS * WIDTH, n_rows * HEIGHT), layout="constrained")
    cells = figure.subplots(n_rows, COLUMNS, squeeze=False).ravel()
    tables = ranker.tables_ - ranker.means_
    n_features = len(ranker.edges_)
    low, high = tables[:, order].min(initial=0), tables[:, order].max(initial=0)
    for cell, column in zip(cells, order):
        if column < n_features:
            _draw_function(cell, ranker, int(column), tables[:, column])
            title = names[column]
            cell.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        else:
            first, second = ranker.pairs_[column - n_features]
            title = f"{names[first]} × {names[second]}"
            _draw_pair(cell, tables[:, column], names[first], names[second])
        note = "" if changed is None else f"\nchanges {changed[column]:.0%} of queries"
        cell.set_title(title + note, fontsize=8)
    for cell in cells[len(order) :]:
        cell.axis("off")
    return figure


def _draw_function(cell: Any, ranker: AdditiveSVMRanker, j: int, table: NDArray[Any]) -> None:
    edges = ranker.edges_[j][np.isfinite(ranker.edges_[j])]
    seen = bool(ranker.mass_[-1, j] > 0)
    cell.axhline(0, color=GREY, linewidth=0.6)
    if ranker.nominal_[j]:
        labels = [f"{edge:g}" for edge in edges] + ["missing"] * seen
        heights = [*table[1 : len(edges) + 1], *table[-1:]][: len(labels)]
        cell.bar(np.arange(len(labels)), heights, color=LINE)
        cell.set_xticks(np.arange(len(labels)), labels, rotation=60)
        return
    margin = 0.06 * (edges[-1] - edges[0]) if len(edges) > 1 else 1.0
    places = np.concatenate([[edges[0] - margin], edges, [edges[-1] + margin]])
    values = table[: len(edges) + 1]
    cell.step(places, [*values, values[-1]], where="post", color=LINE, linewidth=1.3)
    if seen:
        cell.plot([edges[-1] + 2 * margin], table[-1:], "o", color=LINE, markersize=4)
        cell.annotate(
            *("missing", (edges[-1] + 2 * margin, table[-1])),
            fontsize=6,
            ha="right",
            va="bottom",
        )


def _draw_pair(cell: Any, table: NDArray[Any], first: str, second: str) -> None:
    cells = table[1 : LEVELS**2 + 1].reshape(LEVELS, LEVELS)
    limit = float(np.abs(cells).max()) or 1.0
    cell.imshow(cells.T, origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    cell.set(xlabel=f"level of {first}", ylabel=f"level of {second}", xticks=[], yticks=[])
