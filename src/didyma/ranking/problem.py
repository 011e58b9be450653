"""Ranking as a problem: features, a loss and a feature map become cuts.

The rows of a query, grouped by relevance, are scored; an oracle turns the scores into one
coefficient per row (the max-violating ranking less the perfect one); the rows combined by these
are the cut.

An oracle answers ``answer(i, scores, coef) -> loss``: for query i, whose rows come by descending
relevance, it writes one coefficient per row of Ψ(ŷ) − Ψ* and returns the loss of ŷ.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import didyma._core.ranking as core
from didyma._core.rows import dense_rows, sparse_rows
from didyma.data.groups import Groups
from didyma.data.matrix import MappedFiles, Matrix, is_sparse
from didyma.errors import DataError, check_choice
from didyma.execution import n_threads
from didyma.learning.problem import Cut
from didyma.ranking.bins import Binned
from didyma.ranking.feature_maps import FeatureMap, Pairwise, Positional, Truncated
from didyma.ranking.losses import NDCG, ItemwiseLoss
from didyma.values import aligned

Vector = NDArray[np.float64]

StoredRows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""Rows query after query in the order of their indices, where each query begins, and where its rows
by descending relevance are among its own."""

GRADES = ("auto", "joint", "thresholds")
FEW_SORTS = 4.0  # what the joint bound over grades may cost, where there is a choice
MOST_STATES = 20_000_000  # of the graded lattice: 9 bytes and about 10 ns each
ROWS = 2**16  # that are looked at at a time, where all of them would take much memory
SHARD = 2**18  # numbers of X per shard: enough work to be worth a thread


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
        n_jobs: int | None = None,
    ) -> None:
        feature_map = feature_map or Pairwise()
        levels, self._gains = _levels(y, loss)
        weight = np.ones(len(groups)) if query_weight is None else query_weight
        trainable = np.flatnonzero(trainable_queries(y, groups, loss) & (weight > 0))
        self.n_examples, self.n_features = len(trainable), X.shape[1]
        self.n_skipped = len(groups) - self.n_examples
        rows, stored, counts = _arrange(levels, groups, trainable, len(self._gains))
        self.multiplicity = weight[trainable]
        self.weights = self.multiplicity / max(self.multiplicity.sum(), np.finfo(float).tiny)
        self.grades = _choose_grades(grades, loss, feature_map, counts, self._gains)
        self._files = MappedFiles(X)
        self.n_rows = X.shape[0]
        self._binned = X if isinstance(X, Binned) else None
        self.weight_signs = None if self._binned is None else self._binned.weight_signs
        self._rows, self._starts, self._counts = rows, stored[1], counts
        n_values = _count_values(X, rows)
        self.cut_cost = n_values / max(1, self.n_examples * self.n_features)
        self._n_threads = n_threads(n_jobs)
        self._storage = _storage(X)
        self._stored = (*stored, _shards(self._starts, n_values, self.n_features))
        self.kernel = self._problem(self._oracle(loss, feature_map))

    def _problem(self, oracle: Any) -> Any:
        """The rows, and what answers for a query."""
        return core.RankingProblem(self._storage, oracle, *self._stored)

    def _oracle(self, loss: ItemwiseLoss, feature_map: FeatureMap) -> Any:
        """What answers for one query."""
        return hinge_oracle(loss, feature_map, self.grades, self._counts, self._gains)

    def cut(self, w: Vector, i: int) -> Cut:
        """Most violated cut of the i-th trainable query."""
        direction = np.empty(self.n_features)
        return Cut(direction, self.kernel.cut(w, i, direction))

    def risks(self, w: Vector) -> Vector:
        """Risk of each trainable query at w; no more than the scores of a shard are in memory."""
        self._files.check()  # no solution is certified without a look at the rows
        risks = np.empty(self.n_examples)
        self.kernel.risks(w, risks, self._n_threads)
        return risks

    def scores(self, w: Vector) -> Vector:
        """X w, for the rows that take part in training."""
        self._files.check()
        scores = np.zeros(self.n_rows)
        self.kernel.score(w, scores, self._n_threads)
        return scores

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """One coefficient per row, and the weighted loss, of the max-violating rankings."""
        coefficients = np.zeros(self.n_rows)
        loss = self.kernel.respond(scores, self.weights, coefficients, self._n_threads)
        return coefficients, loss

    def slopes(self, scores: Vector) -> tuple[Vector, float]:
        """The derivative of the risk by the score of each row, and the loss: R = loss + c·S."""
        return self.respond(scores)

    def gather(self, coefficients: Vector) -> Vector:
        """X' c."""
        direction = np.empty(self.n_features)
        self.kernel.gather(coefficients, direction, self._n_threads)
        return direction

    def cut_all(self, w: Vector) -> Cut:
        """Most violated cut of the whole risk, each query's rows passing the cache once."""
        direction = np.empty(self.n_features)
        return Cut(direction, self.kernel.cut_all(w, self.weights, direction, self._n_threads))

    def spread(self, values: Vector) -> Vector:
        """A value of each trainable query, for each of its rows; zero for the rows of others."""
        out = np.zeros(self.n_rows)
        out[self._rows] = np.repeat(values, np.diff(self._starts))
        return out

    def table(self, w: Vector) -> Vector:
        """What binned rows are scored by: the value of each bin, flat."""
        assert self._binned is not None
        return self._binned.tables(w).ravel()

    def sweep(self, order: NDArray[np.int64], *dual: Vector, thorough: bool) -> None:
        """Visit the queries of ``order`` in the space of their rows, which are binned."""
        core.sweep_rows(self.kernel, self._storage, order, *dual, thorough)


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


def _arrange(
    levels: NDArray[np.int64], groups: Groups, trainable: NDArray[np.int64], n_levels: int
) -> tuple[NDArray[np.int64], StoredRows, NDArray[np.int64]]:
    """Rows of the trainable queries by descending relevance, as stored, and counts by level.

    Where all queries are trainable, the rows as stored are those of the groups.
    """
    stored, starts = (
        np.require(part, np.int64, ["C", "A", "W"]) for part in (groups.rows, groups.starts)
    )
    if len(trainable) < len(groups):
        chosen = np.zeros(len(groups), np.bool_)
        chosen[trainable] = True
        stored = stored[np.repeat(chosen, groups.sizes)]
        starts = np.concatenate([[0], np.cumsum(groups.sizes[trainable])])
    rows, graded = np.empty(len(stored), np.int64), np.empty(len(stored), np.int32)
    counts = np.empty((len(trainable), n_levels), np.int64)
    for first, last in _ranges(starts, 1 + starts[-1] // ROWS):
        span = slice(starts[first], starts[last])
        begins = starts[first : last + 1] - starts[first]
        query = np.repeat(np.arange(last - first), np.diff(begins))
        key = query * n_levels + levels[stored[span]]
        order = np.argsort(key, kind="stable")
        rows[span], graded[span] = stored[span][order], order - begins[query]
        of_query = np.bincount(key, minlength=(last - first) * n_levels)
        counts[first:last] = of_query.reshape(-1, n_levels)
    return rows, (stored, starts, graded), counts


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
    check_choice(grades, GRADES, "grades")
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


def _storage(X: Any) -> Any:
    if isinstance(X, Binned):
        return X.rows
    if not is_sparse(X):
        return dense_rows(aligned(X))
    starts = X.indptr.astype(np.int64, copy=False)
    return sparse_rows(*map(aligned, (X.data, X.indices, starts)), X.shape[1])


def _count_values(X: Any, rows: NDArray[np.int64]) -> int:
    if isinstance(X, Binned):
        return rows.size * X.bins.shape[1]
    return int(np.diff(X.indptr)[rows].sum()) if is_sparse(X) else rows.size * X.shape[1]


def _shards(starts: NDArray[np.int64], n_values: int, n_features: int) -> NDArray[np.int64]:
    """First queries of the shards for threads; they depend on the data only, and so do the sums."""
    # A shard sums into a vector of its own, which must be small against its rows.
    count = max(1, min(len(starts) - 1, 64, n_values // max(SHARD, 4 * n_features)))
    return _edges(starts, count)


def _ranges(starts: NDArray[np.int64], count: int) -> Sequence[tuple[int, int]]:
    """At most so many ranges of queries, of about equal size."""
    return list(pairwise(_edges(starts, count).tolist()))


def _edges(starts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    cuts = np.searchsorted(starts[:-1], np.linspace(0, starts[-1], count + 1)[1:-1])
    return np.unique(np.concatenate([[0], cuts, [len(starts) - 1]])).astype(np.int64)


def queries_of(counts: NDArray[np.int64]) -> Any:
    """Queries of rows by descending relevance, for the core: ``counts`` of each level."""
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    return core.Queries(starts.astype(np.int64), np.ascontiguousarray(counts, np.int64))


def hinge_oracle(
    loss: ItemwiseLoss,
    feature_map: FeatureMap,
    grades: str | None,
    counts: NDArray[np.int64],
    gains: Vector,
) -> Any:
    """The most violating ranking, by the oracle that is exact at the least cost.

    ``grades`` is None for binary relevance, else "thresholds" or "joint", for NDCG.
    """
    kind = _kind(loss, feature_map, grades, _longest(counts))
    return oracle_of(kind, loss, feature_map, grades == "thresholds", counts, gains)


def oracle_of(
    kind: str,
    loss: ItemwiseLoss,
    feature_map: FeatureMap,
    thresholds: bool,
    counts: NDArray[np.int64],
    gains: Vector,
) -> Any:
    """The oracle of a kind: of binary relevance, or of that at each threshold, or of grades.

    "predicted" is the ranking by the scores, of whatever loss; its coefficients alone count.
    """
    described = loss.described(counts), feature_map.described(_longest(counts))
    parts = (queries_of(counts), kind, *described)
    if thresholds:
        return core.threshold_oracle(*parts, gains)
    if kind.startswith("graded"):
        return core.graded_oracle(*parts, gains)
    return core.oracle(*parts)


def _longest(counts: NDArray[np.int64]) -> int:
    return int(counts.sum(axis=1).max(initial=0))


def _kind(loss: ItemwiseLoss, feature_map: FeatureMap, grades: str | None, longest: int) -> str:
    pairs = isinstance(feature_map, Pairwise)
    if grades != "joint":
        return "independent" if pairs and loss.independent else "lattice"
    if pairs:
        return "graded_lattice"
    sorts = isinstance(feature_map, Positional) and feature_map.weights == "discount"
    return "graded_sort" if sorts and loss.cutoff >= longest else "graded_assignment"
