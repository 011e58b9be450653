"""Compare scores of the same rows by an exported file and by the model."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import dense
from didyma.errors import DataError
from didyma.exports.description import Description, FloatArray
from didyma.exports.engine import Engine
from didyma.model import Model

ROWS = 1024  # that are made, unless a column has more values to tell
CELLS = 1 << 22  # that are looked at together
DEVIATIONS = np.array([-1e6, -10, -3, -1, -0.3, 0, 0.3, 1, 3, 10, 1e6])
FAR = np.array([-1e30, -1.0, 0.0, 1.0, 1e30])
TINY = 1e-30  # to LightGBM smaller numbers are 0


@dataclass(frozen=True)
class Parity:
    """How scores by a file compare with those of the model.

    ``difference`` is the greatest there is, ``relative`` the greatest in relation to the size of
    what is added up. ``swapped`` counts neighbours in the model's order that stand the other way
    round by the file, as scores that are nearly equal may.
    """

    rows: int
    difference: float
    relative: float
    swapped: int

    def __str__(self) -> str:
        order = f"{self.swapped} neighbours swapped" if self.swapped else "in the same order"
        return (
            f"{self.rows} rows scored both ways, {order}, relative difference {self.relative:.0e}"
        )


def probe_rows(description: Description, engine: Engine, *, missing: bool) -> Lists:
    """Rows with all values that could tell a wrong file from a right one.

    For each column its edges and limits, numbers right beside them and between them, zero, far
    values and, if the model knows such, missing ones; each at least once, in random company. Not
    those between an edge and its place in the engine.
    """
    random, marks = np.random.default_rng(0), _marks(description)
    moved = _moved(description, engine)
    columns = []
    for j in range(description.features.count):
        values = _beside(np.concatenate(marks.get(j, [FAR])), engine.precision)
        for low, high in moved[j]:
            values = values[(values <= low) | (values > high)]
        columns.append(np.append(values, np.nan) if missing and j in marks else values)
    n = max(min(ROWS, CELLS // len(columns)), *map(len, columns))
    X = np.empty((n, len(columns)))
    for j, values in enumerate(columns):
        X[:, j] = random.permutation(np.resize(random.permutation(values), n))
    return _as_lists(X, description)


def _marks(description: Description) -> dict[int, list[FloatArray]]:
    """Values around which the score changes its course, by columns."""
    marks: dict[int, list[FloatArray]] = defaultdict(list)
    for line in description.lines:
        spread = line.centre + line.scale * DEVIATIONS
        marks[line.column] += [spread, np.array([line.low, line.high, 0.0])]
    for binning in description.binnings:
        marks[binning.column] += [FAR, np.array(binning.edges)]
    return marks


def _moved(description: Description, engine: Engine) -> dict[int, list[tuple[float, float]]]:
    """By columns, each edge and its place in the engine, the lower first."""
    pairs: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for binning in description.binnings:
        places = [(edge, engine.place(edge)) for edge in binning.edges]
        pairs[binning.column] += [(min(pair), max(pair)) for pair in places]
    return pairs


def _beside(marks: FloatArray, precision: type[np.floating[Any]]) -> FloatArray:
    """Marks as numbers of a precision, their neighbours, and what is between them."""
    exact = np.unique(marks[np.isfinite(marks)].astype(precision))
    neighbours = [np.nextafter(exact, precision(way)) for way in (-np.inf, np.inf)]
    between = (exact[1:] + exact[:-1]) / 2
    values = np.unique(np.concatenate([exact, *neighbours, between])).astype(np.float64)
    return values[(np.abs(values) > TINY) | (values == 0)]


def _as_lists(X: FloatArray, description: Description) -> Lists:
    features = description.features
    return Lists(X, feature_names=features.names, zero_based=features.zero_based)


def compare_scores(
    model: Model, description: Description, engine: Engine, contents: bytes, rows: Lists
) -> Parity:
    """Compare, or refuse a file whose scores differ by more than rounding explains.

    Rows are rounded to the precision of the engine first, as it would.
    """
    if not len(rows):
        raise DataError("expected rows to compare scores of, found none")
    names = engine.names(description.features)
    moved = 0.0 if engine.adds_constant else description.constant
    expected, scores, magnitude = np.empty((3, len(rows)))
    size = max(1, CELLS // description.features.count)
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        X = _rounded(rows.X[block], engine.precision)
        expected[block] = model.predict(_as_lists(X, description)) - moved
        with np.errstate(over="ignore", invalid="ignore"):
            scores[block] = engine.score(contents, names, X)
        magnitude[block] = np.maximum(description.magnitude(X), np.finfo(np.float32).tiny)
    terms = 8 + len(description.lines) + len(description.tables)
    relative = np.abs(scores - expected) / magnitude
    wrong = ~(relative <= terms * float(np.finfo(engine.precision).eps))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"nothing was written, as the model's score of row {row} is {float(expected[row])!r} "
            f"but {engine.title} would compute {float(scores[row])!r}"
        )
    difference = float(np.abs(scores - expected).max())
    return Parity(
        len(rows), difference, float(relative.max()), _swapped(expected, scores, rows.groups)
    )


def _rounded(X: Any, precision: type[np.floating[Any]]) -> FloatArray:
    """Rows as dense ones that hold nothing but numbers of a precision."""
    return dense(X).astype(precision).astype(np.float64)


def _swapped(expected: FloatArray, scores: FloatArray, groups: Groups) -> int:
    """How many neighbours in the order of each query stand the other way round."""
    order = np.lexsort((-expected, groups.codes))
    neighbours = np.diff(groups.codes[order]) == 0
    return int(np.sum(neighbours & (np.diff(expected[order]) < 0) & (np.diff(scores[order]) > 0)))
