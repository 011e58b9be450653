"""The functions of an additive ranker as small pictures, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.data.categories import text_of
from didyma.files import PathName
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.bins import LEVELS
from didyma.report.plots import check_picture, require_matplotlib, write_picture

TOP = 24
COLUMNS, WIDTH, HEIGHT = 4, 2.9, 2.2  # of the grid, and inches of a picture


class Colours(NamedTuple):
    """Those of a function, of its zero, and of cells that add and that take away."""

    line: str = "#1f5fa8"
    zero: str = "#8a8a8a"
    more: str = "#b2182b"
    less: str = "#2166ac"


@dataclass(frozen=True, eq=False)
class AdditiveTerm:
    """What a feature, or a pair of features, adds to a score, less its mean over training rows.

    ``importance`` is the deviation of that, and ``changed`` the share of queries whose order it
    changes, where this is known.
    """

    ranker: AdditiveSVMRanker
    names: Sequence[str]
    column: int
    importance: float
    changed: float | None

    @property
    def pair(self) -> tuple[str, str] | None:
        """Names of the two features, if it is a pair."""
        if self.column < len(self.names):
            return None
        first, second = self.ranker.pairs_[self.column - len(self.names)]
        return self.names[first], self.names[second]

    @property
    def title(self) -> str:
        """The feature, or both of a pair."""
        return " × ".join(self.pair or (self.names[self.column],))

    @property
    def table(self) -> NDArray[np.float64]:
        """What each bin adds."""
        table: NDArray[np.float64] = self.ranker.tables_[:, self.column]
        return table - self.ranker.means_[self.column]

    def draw(self, axes: Any, colours: Colours | None = None) -> None:
        """Draw steps, bars for categories, or a heat map for a pair."""
        colours = colours or Colours()
        if self.pair is not None:
            _draw_pair(axes, self.table, *self.pair, colours)
        elif self.ranker.nominal_[self.column]:
            _draw_categories(axes, self, colours)
        else:
            _draw_steps(axes, self, colours)


def terms(
    ranker: AdditiveSVMRanker,
    names: Sequence[str],
    changed: NDArray[np.float64] | None = None,
    top: int = TOP,
) -> list[AdditiveTerm]:
    """What a ranker adds up, the most important first, and no more than ``top`` of it.

    ``changed`` is the share of queries whose order each column changes
    (`AdditiveSVMRanker.changed_orders`).

    >>> from didyma import AdditiveSVMRanker
    >>> X = np.random.default_rng(0).random((40, 2))
    >>> ranker = AdditiveSVMRanker(bins=4).fit(X, X[:, 0] > 0.7, group=[20, 20])
    >>> [term.title for term in terms(ranker, ["price", "age"])]
    ['price', 'age']
    """
    importance = np.concatenate([ranker.feature_importances_, ranker.pair_importances_])
    order = np.argsort(-importance, kind="stable")[:top]
    return [
        AdditiveTerm(
            ranker, names, int(j), float(importance[j]), None if changed is None else changed[j]
        )
        for j in order[importance[order] > 0]
    ]


def write_functions(
    ranker: AdditiveSVMRanker,
    path: PathName,
    *,
    names: Sequence[str],
    changed: NDArray[np.float64] | None = None,
    top: int = TOP,
) -> None:
    """Draw `terms` into a .png, .svg or .pdf, all in one figure.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import AdditiveSVMRanker
    >>> X = np.random.default_rng(0).random((40, 2))
    >>> ranker = AdditiveSVMRanker(bins=4).fit(X, X[:, 0] > 0.7, group=[20, 20])
    >>> path = Path(tempfile.mkdtemp(), "functions.svg")
    >>> write_functions(ranker, path, names=["price", "age"])
    >>> "<svg" in path.read_text()
    True
    """
    check_picture(path)
    require_matplotlib("drawing functions")
    write_picture(draw_functions(terms(ranker, names, changed, top)), path)


def draw_functions(found: Sequence[AdditiveTerm]) -> Any:
    """The figure of some `terms`; functions of features share one scale.

    >>> from didyma import AdditiveSVMRanker
    >>> X = np.random.default_rng(0).random((40, 2))
    >>> ranker = AdditiveSVMRanker(bins=4).fit(X, X[:, 0] > 0.7, group=[20, 20])
    >>> figure = draw_functions(terms(ranker, ["price", "age"]))
    >>> len(figure.axes)
    2
    """
    import matplotlib
    from matplotlib.figure import Figure  # not pyplot, which would look for a screen

    n_columns = min(COLUMNS, max(1, len(found)))
    n_rows = max(1, -(-len(found) // n_columns))
    tables = [term.table for term in found if term.pair is None]
    low, high = (edge([edge(table) for table in tables], initial=0.0) for edge in (np.min, np.max))
    with matplotlib.rc_context({"font.size": 8}):
        figure = Figure(figsize=(n_columns * WIDTH, n_rows * HEIGHT), layout="constrained")
        cells = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for cell, term in zip(cells, found):
            term.draw(cell)
            if term.pair is None:
                cell.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
            note = "" if term.changed is None else f"\nchanges {term.changed:.0%} of queries"
            cell.set_title(term.title + note, fontsize=8)
        for cell in cells[len(found) :]:
            cell.axis("off")
    return figure


def _draw_categories(cell: Any, term: AdditiveTerm, colours: Colours) -> None:
    edges, seen, table = _edges(term), _missing(term), term.table
    texts = (term.ranker.categories_in_ or {term.column: None})[term.column]
    names = (text_of(edge, texts) for edge in edges.tolist())
    labels = [name if isinstance(name, str) else f"{name:g}" for name in names]
    labels += ["missing"] * seen
    heights = [*table[1 : len(edges) + 1], *table[-1:]][: len(labels)]
    cell.axhline(0, color=colours.zero, linewidth=0.6)
    cell.bar(np.arange(len(labels)), heights, color=colours.line)
    cell.set_xticks(np.arange(len(labels)), labels, rotation=60)


def _draw_steps(cell: Any, term: AdditiveTerm, colours: Colours) -> None:
    edges, table = _edges(term), term.table
    margin = 0.06 * (edges[-1] - edges[0]) if len(edges) > 1 else 1.0
    places = np.concatenate([[edges[0] - margin], edges, [edges[-1] + margin]])
    values = table[: len(edges) + 1]
    cell.axhline(0, color=colours.zero, linewidth=0.6)
    cell.step(places, [*values, values[-1]], where="post", color=colours.line, linewidth=1.3)
    if _missing(term):
        place = edges[-1] + 2 * margin
        cell.plot([place], table[-1:], "o", color=colours.line, markersize=4)
        cell.annotate("missing", (place, table[-1]), fontsize=6, ha="right", va="bottom")


def _draw_pair(cell: Any, table: NDArray[Any], first: str, second: str, colours: Colours) -> None:
    from matplotlib.patches import Rectangle

    cells = table[1 : LEVELS**2 + 1].reshape(LEVELS, LEVELS)
    limit = float(np.abs(cells).max()) or 1.0
    for place, value in np.ndenumerate(cells):
        colour, share = colours.more if value > 0 else colours.less, abs(value) / limit
        cell.add_patch(Rectangle(place, 1, 1, facecolor=colour, alpha=share, linewidth=0))
    cell.set(xlabel=f"level of {first}", ylabel=f"level of {second}", xticks=[], yticks=[])
    cell.set(xlim=(0, LEVELS), ylim=(0, LEVELS))


def _edges(term: AdditiveTerm) -> NDArray[np.float64]:
    edges: NDArray[np.float64] = term.ranker.edges_[term.column]
    return edges[np.isfinite(edges)]


def _missing(term: AdditiveTerm) -> bool:
    """Whether values were missing in training."""
    return bool(term.ranker.mass_[-1, term.column] > 0)
