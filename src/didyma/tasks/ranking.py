"""Ranking as a problem: features, a loss and a feature map become cuts.

The rows of a query, grouped by relevance, are scored; an oracle turns the scores into one
coefficient per row (the max-violating ranking less the perfect one); the rows combined by these
are the cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data import Groups
from didyma.errors import DataError
from didyma.execution import Executor, on_threads
from didyma.kernels import binned, interleave
from didyma.kernels.jit import specialise
from didyma.kernels.rows import combine_csr, combine_dense, dot, score_csr, score_dense, zero
from didyma.kernels.select import settle
from didyma.learning.problem import CompiledOracle, Cut
from didyma.matrix import MappedFiles, Matrix, frozen, is_sparse
from didyma.scoring import BLOCK
from didyma.tasks.binned import Binned
from didyma.tasks.feature_maps import FeatureMap, Pairwise, Positional, Truncated
from didyma.tasks.losses import NDCG, ItemwiseLoss

__all__ = [
    "Answer",
    "RankingProblem",
    "all_moderate",
    "answer_by_oracle",
    "check_magnitude",
    "count_trainable",
    "oracle_for",
    "path_for",
    "row_numbers",
    "trainable_queries",
]

Vector = NDArray[np.float64]

StoredRows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""Rows query after query in the order of their indices, where each query begins, and where its rows
by descending relevance are among its own."""

GRADES = ("auto", "joint", "thresholds")
FEW_SORTS = 4.0  # what the joint bound over grades may cost, where there is a choice
MOST_STATES = 20_000_000  # of the graded lattice: 9 bytes and about 10 ns each
# Features beyond this have squares, and products with weights, that overflow in training.
LARGEST = 1e90
ROWS = 2**16  # that are looked at at a time, where all of them would take much memory
SHARD = 2**18  # numbers of X per shard: enough work to be worth a thread


# Global names of the templates, bound to a storage (dense or CSR) and to an oracle.
score: Any = None
combine: Any = None
answer: Any = None
oracle: Any = None


def answer_by_oracle(queries, i, scores, coef):  # type: ignore[no-untyped-def]
    """Coefficients and loss of query i at given scores, by the oracle of one query."""
    _, starts, orders, counts, v, gains, k = queries
    order = orders[starts[i] : starts[i + 1]]
    settle(scores, order)
    return oracle(scores, order, counts[i], v, gains, k, coef)


def _answer_stored(problem, i, scores, coef):  # type: ignore[no-untyped-def]
    """`answer` for the rows of query i as they are stored, which is how they are read fastest."""
    _, (_, starts, graded), queries = problem
    own = graded[starts[i] : starts[i + 1]]
    by_grade = np.empty(own.shape[0])
    found = np.empty(own.shape[0])
    for r in range(own.shape[0]):
        by_grade[r] = scores[own[r]]
    loss = answer(queries, i, by_grade, found)
    for r in range(own.shape[0]):
        coef[own[r]] = found[r]
    return loss


def _cut(problem, w, i, direction):  # type: ignore[no-untyped-def]
    """Cut of query i while its rows are in cache: score, argmax, combine."""
    X, (rows, starts, _), _ = problem
    own = rows[starts[i] : starts[i + 1]]
    scores = np.empty(own.shape[0])
    coef = np.empty(own.shape[0])
    score(X, own, w, scores)
    loss = answer(problem, i, scores, coef)
    zero(direction)
    combine(X, own, coef, direction)
    return loss


def _visit(problem, w, weights, first, last, direction):  # type: ignore[no-untyped-def]
    """Add the weighted cuts of the queries from first to last; returns the weighted loss.

    Rows are read once.
    """
    X, (rows, starts, _), _ = problem
    total = 0.0
    for i in range(first, last):
        own = rows[starts[i] : starts[i + 1]]
        scores = np.empty(own.shape[0])
        coef = np.empty(own.shape[0])
        score(X, own, w, scores)
        loss = answer(problem, i, scores, coef)
        total += weights[i] * loss
        for r in range(own.shape[0]):
            coef[r] *= weights[i]
        combine(X, own, coef, direction)
    return total


def _respond(queries, scores, weights, first, last, coefficients):  # type: ignore[no-untyped-def]
    """Weighted loss of the queries from first to last at given scores, and coefficients."""
    rows, starts = queries[0], queries[1]
    total = 0.0
    for i in range(first, last):
        own = rows[starts[i] : starts[i + 1]]
        own_scores = scores[own]
        coef = np.empty(own.shape[0])
        loss = answer(queries, i, own_scores, coef)
        total += weights[i] * loss
        for r in range(own.shape[0]):
            coefficients[own[r]] = weights[i] * coef[r]
    return total


def _risks(problem, scores, first, last, risks):  # type: ignore[no-untyped-def]
    """Risks of the queries from first to last, at the scores of their rows as they are stored."""
    starts = problem[1][1]
    for i in range(first, last):
        own = scores[starts[i] - starts[first] : starts[i + 1] - starts[first]]
        coef = np.empty(own.shape[0])
        loss = answer(problem, i, own, coef)
        risks[i] = loss + dot(coef, own)


STORAGES = {
    "dense": (score_dense, combine_dense),
    "csr": (score_csr, combine_csr),
    "binned": (binned.score_binned, binned.combine_binned),
}


class Answer(NamedTuple):
    """A compiled ``answer(queries, i, scores, coef) -> loss`` of query i."""

    name: str
    function: Any


class _Kernels:
    """The templates of this module, compiled for one storage and the answers of one oracle."""

    def __init__(self, name: str, storage: str, answer: Any) -> None:
        self.score, self.combine = STORAGES[storage]
        self.name = f"{storage}_{name}"
        self.respond = self._compile(_respond, answer=answer)
        stored = self._compile(_answer_stored, answer=answer)
        bound = {"score": self.score, "combine": self.combine, "answer": stored}
        self.cut = self._compile(_cut, **bound)
        self.visit = self._compile(_visit, **bound)
        self.risks = self._compile(_risks, answer=stored)
        self.sweep = self._compile(binned.sweep, **bound)
        self.sweep_thoroughly = self._compile(binned.sweep_thoroughly, **bound)

    def _compile(self, template: Any, **bound: Any) -> Any:
        name = f"ranking_{template.__name__.strip('_')}_{self.name}"
        return specialise(template, name, **bound)


_kernels = cache(_Kernels)


@cache
def _answer_of(loss: ItemwiseLoss, feature_map: FeatureMap, kind: str) -> Answer:
    oracle, name = oracle_for(loss, feature_map, kind)
    return Answer(name, specialise(answer_by_oracle, f"answer_{name}", oracle=oracle))


@cache
def oracle_for(loss: ItemwiseLoss, feature_map: FeatureMap, kind: str) -> tuple[Any, str]:
    """The compiled oracle of a loss and a feature map, and its name.

    ``kind`` is one of "independent", "lattice" (binary relevance), "thresholds", "graded_lattice",
    "graded_assignment", "graded_sort" (NDCG).
    """
    if kind.startswith("graded"):
        return getattr(interleave, kind), kind
    if kind == "thresholds":
        binary, name = oracle_for(loss, feature_map, _kind(loss, feature_map, None, 0))
        name = f"thresholds_{name}"
        scale = loss.steps["scale"]
        return specialise(interleave.thresholds, name, binary=binary, scale=scale), name
    if kind == "independent":
        name = f"independent_{loss.name}"
        return specialise(interleave.independent, name, **loss.steps), name
    name = f"lattice_{loss.name}_{feature_map.name}"
    bound = {**loss.steps, **feature_map.weighers, "path": path_for(loss, feature_map)}
    return specialise(interleave.lattice, name, **bound), name


@cache
def path_for(loss: ItemwiseLoss, feature_map: FeatureMap) -> Any:
    """The compiled search for the best ranking of sorted scores."""
    name = f"{loss.name}_{feature_map.name}"
    bound = {**loss.steps, **feature_map.weighers}
    merge = specialise(interleave.merge_behind, f"merge_{name}", **bound)
    return specialise(interleave.best_path, f"path_{name}", merge=merge, **bound)


class RankingProblem:
    """Judged results as a sum of queries, each a maximum over its rankings.

    ``grades`` is the bound on NDCG over more than two grades: "joint", one ranking for all of them;
    "thresholds", a sum of binary bounds, each with its own ranking, at the cost of a few sorts; or
    "auto", the joint one where that costs no more. The attribute says which was taken, and is None
    where relevance is binary.

    ``query_weight`` m_i is one per query of ``groups``; c_i = m_i / Σ m over the trainable ones, so
    that a weight of 2 is the same as the query given twice.
    Queries without both a better and a worse row constrain nothing and are left out
    (``n_skipped``). X is never copied or reordered.
    """

    def __init__(
        self,
        X: Matrix | Binned,
        y: Vector,
        groups: Groups,
        loss: ItemwiseLoss,
        feature_map: FeatureMap | None = None,
        *,
        grades: str = "auto",
        query_weight: Vector | None = None,
        execute: Executor | None = None,
    ) -> None:
        feature_map = feature_map or Pairwise()
        levels, self._gains = _levels(y, loss)
        weight = np.ones(len(groups)) if query_weight is None else query_weight
        trainable = np.flatnonzero(trainable_queries(y, groups, loss) & (weight > 0))
        self.n_examples, self.n_features = len(trainable), X.shape[1]
        self.n_skipped = len(groups) - self.n_examples
        rows, stored, counts = _arrange(levels, groups, trainable, len(self._gains))
        starts = stored[1]
        self.multiplicity = weight[trainable]
        self.weights = self.multiplicity / max(self.multiplicity.sum(), np.finfo(float).tiny)
        self.grades = _choose_grades(grades, loss, feature_map, counts, self._gains)
        answer, about = self._oracle(loss, feature_map, counts, int(np.diff(starts).max(initial=0)))
        storage, self._storage = _storage(X)
        self._files = MappedFiles(X)
        self.n_rows = X.shape[0]
        self._binned = X if isinstance(X, Binned) else None
        self._queries = (rows, starts, *about)
        self._stored = stored
        self._arrays = (self._storage, self._stored, self._queries)
        self._compiled = _kernels(answer.name, storage, answer.function)
        self.kernel: CompiledOracle | None = CompiledOracle(
            self._compiled.name, self._compiled.cut, self._arrays
        )
        n_values = _count_values(X, rows)
        self.cut_cost = n_values / max(1, self.n_examples * self.n_features)
        self._execute = execute or on_threads()
        self._shards = _shards(starts, n_values, self.n_features)

    def _oracle(
        self, loss: ItemwiseLoss, feature_map: FeatureMap, counts: NDArray[np.int64], longest: int
    ) -> tuple[Answer, tuple[Any, ...]]:
        """What answers for one query, and what it must know of all of them."""
        kind = _kind(loss, feature_map, self.grades, longest)
        # Rows of each query in the order of its last visit, which is quickly put right. What an
        # oracle answers does not depend on it.
        orders = row_numbers(counts).astype(np.int32)
        about = (orders, counts, feature_map.weights_for(longest), self._gains, loss.cutoff)
        return _answer_of(loss, feature_map, kind), about

    def cut(self, w: Vector, i: int) -> Cut:
        """Most violated cut of the i-th trainable query."""
        direction = np.empty(self.n_features)
        loss = self._compiled.cut(self._arrays, w, i, direction)
        return Cut(direction, float(loss))

    def risks(self, w: Vector) -> Vector:
        """Risk of each trainable query at w; no more than the scores of a shard are in memory."""
        risks = np.empty(self.n_examples)

        def ask(first: int, last: int) -> None:
            _, scores = self._scored(w, first, last)
            self._compiled.risks(self._arrays, scores, first, last, risks)

        self._files.check()  # no solution is certified without a look at the rows
        self._each(ask)
        return risks

    def scores(self, w: Vector) -> Vector:
        """X w, for the rows that take part in training."""
        out = np.zeros(self.n_rows)

        def score(first: int, last: int) -> None:
            own, scores = self._scored(w, first, last)
            out[own] = scores

        self._files.check()
        self._each(score)
        return out

    def _scored(self, w: Vector, first: int, last: int) -> tuple[NDArray[np.int64], Vector]:
        """The rows of some queries as they are stored, and their scores."""
        rows, starts, _ = self._stored
        own = rows[starts[first] : starts[last]]
        scores = np.zeros(len(own))
        if w.any():  # else no row has to be looked at
            self._compiled.score(self._storage, own, w, scores)
        return own, scores

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """One coefficient per row, and the weighted loss, of the max-violating rankings."""
        coefficients, respond = np.zeros(self.n_rows), self._compiled.respond
        losses = self._each(
            lambda first, last: respond(
                self._queries, scores, self.weights, first, last, coefficients
            )
        )
        return coefficients, float(sum(losses))

    def gather(self, coefficients: Vector) -> Vector:
        """X' c."""
        rows, starts, _ = self._stored

        def combine(first: int, last: int) -> Vector:
            own = rows[starts[first] : starts[last]]
            part = np.zeros(self.n_features)
            self._compiled.combine(self._storage, own, coefficients[own], part)
            return part

        return np.sum(self._each(combine), axis=0)

    def cut_all(self, w: Vector) -> Cut:
        """Most violated cut of the whole risk, each query's rows passing the cache once."""

        def add(first: int, last: int) -> tuple[Vector, float]:
            part = np.zeros(self.n_features)
            loss = self._compiled.visit(self._arrays, w, self.weights, first, last, part)
            return part, loss

        parts = self._each(add)
        return Cut(
            np.sum([part for part, _ in parts], axis=0), float(sum(loss for _, loss in parts))
        )

    def spread(self, values: Vector) -> Vector:
        """A value of each trainable query, for each of its rows; zero for the rows of others."""
        rows, starts, *_ = self._queries
        out = np.zeros(self.n_rows)
        out[rows] = np.repeat(values, np.diff(starts))
        return out

    def table(self, w: Vector) -> Vector:
        """What binned rows are scored by: the value of each bin, flat."""
        assert self._binned is not None
        return self._binned.tables(w).ravel()

    def feasible(self, w: Vector) -> Vector:
        """The nearest weights that binned rows allow."""
        assert self._binned is not None
        return self._binned.feasible(w)

    def sweep(self, order: NDArray[np.int64], *dual: Vector, thorough: bool) -> None:
        """Visit the queries of ``order`` in the space of their rows, which are binned."""
        sweep = self._compiled.sweep_thoroughly if thorough else self._compiled.sweep
        sweep(self._arrays, order, *dual)

    def _each(self, work: Callable[[int, int], Any]) -> list[Any]:
        return self._execute(lambda shard: work(*shard), self._shards)


def row_numbers(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2, … for the rows of each query."""
    sizes = counts.sum(axis=1)
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _levels(y: Vector, loss: ItemwiseLoss) -> tuple[NDArray[np.int64], Vector]:
    """Level of each row, 0 the most relevant, and the gain of each level."""
    if isinstance(loss, NDCG):
        grades, inverse = np.unique(-y, return_inverse=True)
        return inverse, loss.gains(-grades)
    return (y < loss.rel).astype(np.int64), np.array([1.0, 0.0])


def trainable_queries(y: Vector, groups: Groups, loss: ItemwiseLoss) -> NDArray[np.bool_]:
    """Which queries have a better and a worse row, as the loss sees them."""
    levels, gains = _levels(y, loss)
    present = np.zeros((len(groups), len(gains)), dtype=bool)
    for first, last in _ranges(groups.starts, 1 + groups.starts[-1] // ROWS):
        rows = groups.rows[groups.starts[first] : groups.starts[last]]
        query = np.repeat(np.arange(first, last), groups.sizes[first:last])
        present[query, levels[rows]] = True
    return present.sum(axis=1) > 1


def all_moderate(X: Any) -> bool:
    """Whether no feature is missing, infinite or beyond `LARGEST`.

    A sum of squares bounds each of them, and is the fastest way to look at all. A sum that is too
    large in single precision says no, too.

    >>> all_moderate(np.ones((2, 3))), all_moderate(np.array([[1.0, np.nan]]))
    (True, False)
    """
    values = X.data if is_sparse(X) else X
    blocks = (values[start : start + BLOCK].reshape(-1) for start in range(0, len(values), BLOCK))
    with np.errstate(over="ignore", invalid="ignore"):
        return all(float(flat @ flat) <= LARGEST**2 for flat in blocks)


def check_magnitude(X: Any, names: Sequence[str] | None) -> None:
    """Refuse a feature that is too large to learn from, by its name or else its column."""
    if place := _too_large(X):
        row, column, value = place
        raise DataError(
            f"{value:g} in row {row} is too large to learn from, beyond {LARGEST:g}: scale it",
            field=f"feature {column if names is None else names[column]}",
        )


def _too_large(X: Any) -> tuple[int, int, float] | None:
    """Row, column and value of a feature beyond `LARGEST`, from 0, if there is one."""
    if X.dtype == np.float32:
        return None
    values = X.data if is_sparse(X) else X
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        if all_moderate(block):
            continue
        large = np.abs(block.reshape(-1)) > LARGEST
        if large.any():
            place = int(np.argmax(large))
            row, column = divmod(place, X.shape[1])
            if is_sparse(X):
                entry = start + place
                row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
                return row, int(X.indices[entry]), float(values[entry])
            return start + row, column, float(block[row, column])
    return None


def count_trainable(trainable: NDArray[np.bool_], weight: Vector | None) -> int:
    """How many queries can be learned from; warns of those that are skipped, refuses none left.

    ``weight`` has one entry per query.
    """
    if not np.any(trainable if weight is None else trainable & (weight > 0)):
        raise DataError(
            "there is nothing to learn from: every query has rows of one class only, or no "
            "weight; training needs one with a relevant row (y >= 1) and one that is not"
        )
    if skipped := int(np.sum(~trainable)):
        warnings.warn(
            f"{skipped} of {len(trainable)} queries have rows of one class only; training skips "
            "them",
            stacklevel=4,
        )
    return int(np.sum(trainable))


def _arrange(
    levels: NDArray[np.int64], groups: Groups, trainable: NDArray[np.int64], n_levels: int
) -> tuple[NDArray[np.int64], StoredRows, NDArray[np.int64]]:
    """Rows of the trainable queries by descending relevance, as stored, and counts by level.

    Where all queries are trainable, the rows as stored are those of the groups.
    """
    stored, starts = (
        np.require(part, np.int64, ["C", "W"]) for part in (groups.rows, groups.starts)
    )
    if len(trainable) < len(groups):
        chosen = np.zeros(len(groups), np.bool_)
        chosen[trainable] = True
        stored = stored[np.repeat(chosen, groups.sizes)]
        starts = np.concatenate([[0], np.cumsum(groups.sizes[trainable])])
    rows, graded = np.empty(len(stored), np.int64), np.empty(len(stored), np.int32)
    counts = np.empty((len(trainable), n_levels), np.int64)
    for first, last in _ranges(starts, 1 + starts[-1] // ROWS):
        span, own = slice(starts[first], starts[last]), starts[first : last + 1] - starts[first]
        query = np.repeat(np.arange(last - first), np.diff(own))
        key = query * n_levels + levels[stored[span]]
        order = np.argsort(key, kind="stable")
        rows[span], graded[span] = stored[span][order], order - own[query]
        counts[first:last] = np.bincount(key, minlength=(last - first) * n_levels).reshape(
            -1, n_levels
        )
    return rows, (stored, starts, graded), counts


def _kind(loss: ItemwiseLoss, feature_map: FeatureMap, grades: str | None, longest: int) -> str:
    """Which oracle is exact for this combination at the least cost."""
    pairs = isinstance(feature_map, Pairwise)
    if grades is None:
        return "independent" if pairs and loss.independent else "lattice"
    if grades == "thresholds":
        return "thresholds"
    if pairs:
        return "graded_lattice"
    sorts = isinstance(feature_map, Positional) and feature_map.weights == "discount"
    return "graded_sort" if sorts and loss.cutoff >= longest else "graded_assignment"


def _choose_grades(
    grades: str,
    loss: ItemwiseLoss,
    feature_map: FeatureMap,
    counts: NDArray[np.int64],
    gains: Vector,
) -> str | None:
    """Which bound over grades to take: None for two, of which the lower one gains nothing.

    Positional maps have joint oracles in polynomial time, and keep them.
    """
    if grades not in GRADES:
        names = ", ".join(map(repr, GRADES))
        raise DataError(f"expected one of {names}, found {grades!r}", field="grades")
    if not isinstance(loss, NDCG) or (len(gains) == 2 and gains[1] == 0.0):
        return None
    if isinstance(feature_map, Truncated):
        if grades == "joint":
            raise DataError(
                "the truncated map has no meaning for more than two grades at once; "
                "use grades='thresholds'"
            )
        return "thresholds"
    if grades == "thresholds" or not isinstance(feature_map, Pairwise):
        return "thresholds" if grades == "thresholds" else "joint"
    sizes, states = counts.sum(axis=1), np.prod(counts + 1.0, axis=1)
    if grades == "auto" and states.sum() > FEW_SORTS * np.sum(sizes * np.log2(sizes)):
        return "thresholds"
    if (most := states.max(initial=0.0)) > MOST_STATES:
        raise DataError(
            f"one ranking for {len(gains)} grades needs {most:.0e} states for the largest query; "
            "use grades='thresholds'"
        )
    return "joint"


def _storage(X: Any) -> tuple[str, Any]:
    if isinstance(X, Binned):
        return "binned", X.arrays
    if not is_sparse(X):
        return "dense", frozen(np.ascontiguousarray(X))
    indices = X.indices.view(f"u{X.indices.itemsize}")
    return "csr", (frozen(X.data), frozen(indices), frozen(X.indptr))


def _count_values(X: Any, rows: NDArray[np.int64]) -> int:
    if isinstance(X, Binned):
        return rows.size * X.bins.shape[1]
    return int(np.diff(X.indptr)[rows].sum()) if is_sparse(X) else rows.size * X.shape[1]


def _shards(starts: NDArray[np.int64], n_values: int, n_features: int) -> Sequence[tuple[int, int]]:
    """Ranges of queries for threads; they depend on the data only, and so do the sums."""
    # A shard sums into a vector of its own, which must be small against its rows.
    count = max(1, min(len(starts) - 1, 64, n_values // max(SHARD, 4 * n_features)))
    return _ranges(starts, count)


def _ranges(starts: NDArray[np.int64], count: int) -> Sequence[tuple[int, int]]:
    """At most so many ranges of queries, of about equal size."""
    cuts = np.searchsorted(starts[:-1], np.linspace(0, starts[-1], count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [len(starts) - 1]]))
    return list(pairwise(edges.tolist()))
