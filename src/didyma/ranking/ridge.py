"""Ranking by regression: ridge on the grades, centred within queries, in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import dense, is_sparse
from didyma.errors import DataError
from didyma.learning.monitor import EvalSets
from didyma.learning.solution import check_C, overflow
from didyma.ranking.classification import ClassificationResult
from didyma.ranking.ranker import LinearRanker
from didyma.ranking.training_input import LARGEST

__all__ = ["RidgeRanker"]

MOST_FEATURES = 5_000  # whose products with one another are kept
BLOCK = 65_536  # rows that are copied at a time, and the rest of their last query
NOISE = 16 * np.finfo(float).eps  # of a variance of 1, for each feature
Vector = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class RidgeRanker(LinearRanker):
    """Ridge regression of grades on features, both as differences from the means of their query.

    Minimises, over the n rows of all queries,

        ½‖w‖² + (C/2n) Σ_i ((y_i − ȳ_q) − w·(x_i − x̄_q))²

    in closed form, and ranks by w·x. What all rows of a query have in common moves no rank, so that
    nothing is spent on it; this is scikit-learn's `Ridge` with alpha = n/C on differences. A row
    counts as often as the weight of its query says, and n is the sum of these. It has an eye for
    no measure, takes a fraction of the time of `SVMRanker`, and is often level where labels are
    grades: a contender for any search.

    Differences are taken before products and products in units of the features, so that neither an
    offset nor a scale costs digits. Products are sums of squares in double precision, though: where
    C is so large that the norm does not decide, what tells two columns apart is lost if it is below
    about 1e-7 of each, and they share their weight as if they were equal.

    Parameters
    ----------
    C : float
        Weight of the squares against the norm. Good values depend on the scale of the features.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    result_ : ClassificationResult
        The value of the objective at `coef_`; there is nothing to iterate, so it is always
        converged.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]
    >>> ranker = RidgeRanker().fit(X, [2, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    C: float = 10.0

    result_: ClassificationResult = field(init=False)

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        C = check_C(self.C)
        if train.X.shape[1] > MOST_FEATURES:
            found = f"expected at most {MOST_FEATURES:,} features, found {train.X.shape[1]:,}"
            raise DataError(f"{found}: use SVMRanker", field="X")
        if (largest := float(np.abs(train.y).max())) > LARGEST:
            problem = (
                f"{largest:g} is too large to learn from, beyond {LARGEST:g}: scale the labels"
            )
            raise DataError(problem, field="y")
        with np.errstate(over="ignore", invalid="ignore"):
            self.coef_ = _solve(*_products(train), C)
            value = float(self.coef_ @ self.coef_) + C * _mean_square(train, self.coef_)
        if not np.isfinite(value):
            raise overflow(C)
        self.result_ = ClassificationResult(value=value / 2, converged=True, n_iter=1)

    def _least_relevant(self) -> None:
        """All grades count."""

    def _trainable(self, lists: Lists) -> NDArray[np.bool_]:
        # A query of one grade still says which features do not matter, if another has several.
        groups = lists.groups
        ordered = lists.y[groups.rows]
        low, high = (f.reduceat(ordered, groups.starts[:-1]) for f in (np.minimum, np.maximum))
        return np.full(len(groups), bool((low < high).any()))


class _Block(NamedTuple):
    """Rows of whole queries, of which what a query's rows have in common may be gone already."""

    rows: Any  # a matrix of float64
    grades: Vector  # centred
    weights: Vector  # of the rows, whose sum over all blocks is 1
    query: NDArray[np.int64]  # of each row
    means: sp.csr_array  # the mean over each query's rows, as a matrix

    def centred(self, values: Vector) -> Vector:
        """Values of the rows as differences from the means of their query."""
        return np.asarray(values - (self.means @ values)[self.query])


def _blocks(lists: Lists) -> Iterator[_Block]:
    """The rows in blocks of whole queries, so that no copy of them all is made."""
    groups = lists.groups
    weights = np.ones(len(groups)) if lists.weights is None else lists.weights
    shares = weights / (weights @ groups.sizes)
    ends = np.searchsorted(groups.starts, np.arange(0, len(lists), BLOCK)[1:])
    for first, last in pairwise(np.unique([0, *ends, len(groups)])):
        starts, sizes = groups.starts[first : last + 1], groups.sizes[first:last]
        own = groups.rows[starts[0] : starts[-1]]
        query = np.repeat(np.arange(last - first), sizes)
        means = sp.csr_array((1.0 / sizes[query], (query, np.arange(len(own)))))
        rows = _shifted(lists.X[own].astype(np.float64), starts[:-1] - starts[0], query)
        block = _Block(
            rows, lists.y[own].astype(np.float64), shares[first:last][query], query, means
        )
        yield block._replace(grades=block.centred(block.grades))


def _shifted(rows: Any, firsts: NDArray[np.int64], query: NDArray[np.int64]) -> Any:
    """The rows less the first one of their query, exactly zero where a query has one value.

    What is left of an offset, such as that of a date in seconds, is no larger than the differences,
    so that their squares have all digits. Sparse rows stay sparse: they are shifted in the columns
    in which no row of the query is empty; where one is, a value is a difference.
    """
    if not is_sparse(rows):
        rows -= rows[firsts][query]
        return rows
    members = sp.csr_array((np.ones(len(query)), (np.arange(len(query)), query)))
    filled = rows.copy()
    filled.data = np.ones_like(filled.data)
    counts = (members.T @ filled).tocsr()
    sizes = np.bincount(query)
    counts.data = (counts.data == np.repeat(sizes, np.diff(counts.indptr))).astype(np.float64)
    return rows - members @ rows[firsts].multiply(counts)


def _products(lists: Lists) -> tuple[Vector, Vector]:
    """Mean products of centred features with one another, and with centred grades."""
    n_features = lists.X.shape[1]
    gram, moment = np.zeros((n_features, n_features)), np.zeros(n_features)
    for block in _blocks(lists):
        root = np.sqrt(block.weights)[:, None]
        if is_sparse(block.rows):  # rows stay what they are: Σ x xᵀ − Σ_q n_q x̄ x̄ᵀ
            centres = block.means @ block.rows
            totals = np.bincount(block.query, block.weights)[:, None]
            gram -= dense(centres.T @ (centres * totals))
            rows = block.rows * root
        else:
            rows = block.centred(block.rows)
            rows *= root
        gram += dense(rows.T @ rows)
        moment += rows.T @ (root.ravel() * block.grades)
    return gram, moment


def _solve(gram: Vector, moment: Vector, C: float) -> Vector:
    """The w of (G + I/C) w = m, in units in which the diagonal of the matrix is 1."""
    coef, varies = np.zeros(len(gram)), np.diagonal(gram) > 0.0
    gram = gram[np.ix_(varies, varies)] if not varies.all() else gram
    gram[np.diag_indices_from(gram)] += 1.0 / C
    units = 1.0 / np.sqrt(np.diagonal(gram))
    gram *= units[:, None]
    gram *= units
    values, vectors = np.linalg.eigh(gram)
    sure = values > NOISE * len(gram)
    parts = vectors[:, sure].T @ (units * moment[varies]) / values[sure]
    coef[varies] = units * (vectors[:, sure] @ parts)
    return coef


def _mean_square(lists: Lists, w: Vector) -> float:
    """What the features leave of the grades, read off the rows: sums of products would cancel."""
    return sum(
        float(block.weights @ (block.grades - block.centred(block.rows @ w)) ** 2)
        for block in _blocks(lists)
    )
