"""Coreference: which mentions of a document mean the same thing.

Every pair of mentions i < j has features x_ij and a score s_ij = w·x_ij. Two tasks cluster by them.

`CoreferenceTask` (Yu & Joachims 2009) explains a clustering by a latent spanning forest h: mentions
are together because a chain of edges links them, not because every pair of them looks alike.

    w·Ψ = Σ_{(i,j) ∈ h} s_ij,      Δ(y, h) = n − k − Σ_{(i,j) ∈ h} l(y, i, j)

with n mentions in k gold clusters, l = 1 within a gold cluster and −r across. Both terms are sums
over edges, so each question is one maximum spanning forest, answered exactly.

`CorrelationClusteringTask` (Finley & Joachims 2005), the baseline, counts every pair of a cluster:

    w·Ψ = Σ_{i<j together} s_ij,   Δ(y, ŷ) = share of pairs that are wrongly together or apart

Its argmax is NP-hard; clusters are merged greedily instead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma import DataError
from didyma._core.applications import add_pairs, agglomerate, score_pairs, spanning_forest
from didyma.learning import Cut
from didyma.structured import Task, TaskProblem

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MentionPairs:
    """Features of all pairs of n mentions, shape (n(n−1)/2, d): (0, 1), (0, 2), …, (1, 2), ….

    Indicators may be bytes (uint8), others float32 or float64; sums are double in any case.
    """

    n_mentions: int
    features: NDArray[Any]

    def __post_init__(self) -> None:
        n_pairs = self.n_mentions * (self.n_mentions - 1) // 2
        if self.features.ndim != 2 or len(self.features) != n_pairs:
            raise DataError(
                f"expected {n_pairs} rows, one per pair of {self.n_mentions} mentions, found shape "
                f"{self.features.shape}",
                field="features",
            )
        if self.features.dtype not in (np.uint8, np.float32, np.float64):
            raise DataError(
                f"expected bytes (uint8), float32 or float64, found {self.features.dtype}",
                field="features",
            )

    def scores(self, w: Vector) -> Vector:
        """w·x of each pair."""
        out = np.empty(len(self.features))
        score_pairs(np.ascontiguousarray(self.features), _range(len(out)), w, out)
        return out

    def sum(self, pairs: Integers, coefficients: Vector | None = None) -> Vector:
        """Σ of the features of some pairs, each times its coefficient (1 if not given)."""
        out = np.zeros(self.features.shape[1])
        each = np.ones(len(pairs)) if coefficients is None else coefficients
        add_pairs(np.ascontiguousarray(self.features), pairs, each, out)
        return out


class Clustering(NamedTuple):
    """A cluster label for each mention, and the edges (i, j), i < j, of the forest behind it."""

    labels: Integers
    edges: Integers


class PairTask(Task):
    """A task whose features and loss are sums over chosen pairs of mentions.

    The loss is Δ = constant + Σ over chosen pairs of ``within`` or ``across``, whichever their gold
    labels say, so that loss-augmented inference is inference with other scores.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    @abstractmethod
    def costs(self, y: Integers) -> tuple[float, float, float]:
        """The loss of gold labels y: constant, within, across."""

    @abstractmethod
    def best(self, scores: Vector, y: Integers, within: float, across: float) -> Integers:
        """Pairs of the best output, given what is added to scores within and across clusters."""

    @abstractmethod
    def output(self, pairs: Integers, n_mentions: int) -> Any:
        """The output that chooses these pairs."""

    @abstractmethod
    def pairs(self, output: Any) -> Integers:
        """Rows of the pairs that an output chooses."""

    def features(self, x: MentionPairs, output: Any) -> Vector:
        """Sum of the features of the chosen pairs."""
        return x.sum(self.pairs(output))

    def argmax(self, w: Vector, x: MentionPairs) -> Any:
        """Output of the best score."""
        nothing = np.zeros(x.n_mentions, np.int64)
        return self.output(self.best(x.scores(w), nothing, 0.0, 0.0), x.n_mentions)

    def loss_augmented(self, w: Vector, x: MentionPairs, y: ArrayLike, scale: float = 1.0) -> Any:
        """Output of the best score plus ``scale`` times its loss."""
        labels = _labels(y)
        _, within, across = self.costs(labels)
        pairs = self.best(x.scores(w), labels, scale * within, scale * across)
        return self.output(pairs, x.n_mentions)

    def loss(self, y: ArrayLike, output: Any) -> float:
        """Δ(y, output)."""
        labels = _labels(y)
        return _loss(labels, self.pairs(output), self.costs(labels))

    def problem(
        self, examples: Sequence[Any], labels: Sequence[Any], weights: Vector, **options: Any
    ) -> PairProblem:
        """The documents as a problem whose line searches need no features."""
        return PairProblem(self, examples, labels, weights, **options)


class CoreferenceTask(PairTask):
    """Clusters as the trees of a maximum spanning forest; outputs are `Clustering`.

    ``r`` is the penalty of an edge between two gold clusters; less than 1 trades precision for
    recall. Gold labels are an array with one cluster label per mention; the forest behind them is
    latent. All inference is exact.

    >>> x = MentionPairs(3, np.array([[1.0], [-1.0], [2.0]]))
    >>> output = CoreferenceTask(n_features=1).argmax(np.array([1.0]), x)
    >>> output.labels.tolist(), output.edges.tolist()
    ([0, 0, 0], [[0, 1], [1, 2]])
    """

    def __init__(self, n_features: int, r: float = 1.0) -> None:
        if not 0.0 < r < np.inf:
            raise DataError(f"expected a penalty above 0, found {r}", field="r")
        super().__init__(n_features)
        self.r = r

    def costs(self, y: Integers) -> tuple[float, float, float]:
        """The edges of a right forest; each right edge takes 1 off, a wrong one adds r."""
        return float(len(y) - len(np.unique(y))), -1.0, self.r

    def best(self, scores: Vector, y: Integers, within: float, across: float) -> Integers:
        """Edges of the best forest, all of them with positive scores."""
        return _rows(spanning_forest(scores, y, within, across), len(y))

    def output(self, pairs: Integers, n_mentions: int) -> Clustering:
        """The trees of the forest, numbered by their first mentions."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        i, j = edges = _mentions(pairs, n_mentions)
        if not n_mentions:
            return Clustering(np.zeros(0, np.int64), np.zeros((0, 2), np.int64))
        graph = coo_array((np.ones(len(i)), (i, j)), shape=(n_mentions, n_mentions))
        _, labels = connected_components(graph, directed=False)
        return Clustering(_renumbered(labels), np.stack(edges, axis=1))

    def pairs(self, output: Clustering) -> Integers:
        """The edges."""
        return _row(output.edges[:, 0], output.edges[:, 1], len(output.labels))

    def complete(self, w: Vector, x: MentionPairs, y: ArrayLike) -> Clustering:
        """The best spanning tree of each gold cluster."""
        return self.output(self.span(x.scores(w), _labels(y)), x.n_mentions)

    def span(self, scores: Vector, y: Integers) -> Integers:
        """Edges of the best forest that spans each cluster of y, whatever their signs."""
        # All spanning trees of a cluster have as many edges: to add a constant changes nothing.
        lift = 1.0 - float(scores.min(initial=0.0))
        return self.best(scores, y, lift, -np.inf)

    def initial(self, x: MentionPairs, y: ArrayLike, rng: np.random.Generator) -> Clustering:
        """Each mention linked to the one before it in its cluster."""
        labels = _labels(y)
        order = np.argsort(labels, kind="stable")
        link = np.flatnonzero(labels[order[1:]] == labels[order[:-1]])
        rows = _row(order[link], order[link + 1], len(labels))
        return self.output(np.sort(rows), len(labels))


class CorrelationClusteringTask(PairTask):
    """Clusters within which all pairs count; outputs and gold labels are arrays of labels.

    Inference is approximate: beginning with single mentions, the two clusters with the largest
    positive sum of scores between them are merged until there are none. So training has no
    certificate, and its objective is a lower bound.

    >>> x = MentionPairs(3, np.array([[1.0], [-3.0], [2.0]]))
    >>> CorrelationClusteringTask(n_features=1).argmax(np.array([1.0]), x).tolist()
    [0, 1, 1]
    """

    def costs(self, y: Integers) -> tuple[float, float, float]:
        """The share of pairs that should be together; a right one takes its share off."""
        sizes = np.unique(y, return_counts=True)[1]
        n_pairs = max(len(y) * (len(y) - 1) // 2, 1)
        together = float((sizes * (sizes - 1) // 2).sum())
        return together / n_pairs, -1.0 / n_pairs, 1.0 / n_pairs

    def best(self, scores: Vector, y: Integers, within: float, across: float) -> Integers:
        """All pairs within clusters that were merged greedily."""
        return self.pairs(agglomerate(scores, y, within, across))

    def output(self, pairs: Integers, n_mentions: int) -> Integers:
        """A label for each mention."""
        labels = np.arange(n_mentions)
        i, j = _mentions(pairs, n_mentions)
        np.minimum.at(labels, j, i)  # all pairs are there: the first mention is linked to all
        return _renumbered(labels)

    def pairs(self, output: ArrayLike) -> Integers:
        """All pairs of mentions with the same label."""
        labels = _labels(output)
        i, j = _triangle(len(labels))
        return np.flatnonzero(labels[i] == labels[j])


class PairProblem(TaskProblem):
    """Documents of a pair task. The scores of all pairs are w's image, so that a line search asks
    for clusterings only, and a cut reads the features of chosen pairs only.
    """

    task: PairTask

    def __init__(
        self,
        task: PairTask,
        examples: Sequence[MentionPairs],
        labels: Sequence[ArrayLike],
        weights: Vector,
        **options: Any,
    ) -> None:
        for i, (x, y) in enumerate(zip(examples, labels)):
            _check(task, i, x, y)
        ends = np.cumsum([0, *(len(x.features) for x in examples)]).tolist()
        self._spans = [slice(*span) for span in pairwise(ends)]
        self._n_pairs = ends[-1]
        self._gold_pairs: list[Integers] = []
        numbers = [_labels(y) for y in labels]
        self._costs = [task.costs(y) for y in numbers]
        super().__init__(task, examples, numbers, weights, **options)

    def scores(self, w: Vector) -> Vector:
        """w·x of all pairs of all documents."""
        out = np.empty(self._n_pairs)
        for x, span in zip(self.examples, self._spans):
            out[span] = x.scores(w)
        return out

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """Weighted coefficients of chosen pairs less those of gold ones, and the loss."""
        coefficients, total = np.zeros(self._n_pairs), 0.0
        for i, (weight, span) in enumerate(zip(self.weights.tolist(), self._spans)):
            chosen, gold, loss = self._most_violated(scores[span], i)
            of_document = coefficients[span]
            of_document[chosen] += weight
            of_document[gold] -= weight
            total += weight * loss
        return coefficients, total

    def gather(self, coefficients: Vector) -> Vector:
        """Σ of features times coefficients."""
        total = np.zeros(self.n_features)
        for x, span in zip(self.examples, self._spans):
            pairs = np.flatnonzero(coefficients[span])
            total += x.sum(pairs, coefficients[span][pairs])
        return total

    def cut(self, w: Vector, i: int) -> Cut:
        """Features of the most violating output less those of the gold one, and its loss."""
        x = self.examples[i]
        chosen, gold, loss = self._most_violated(x.scores(w), i)
        return Cut(x.sum(chosen) - x.sum(gold), loss)

    def cut_all(self, w: Vector) -> Cut:
        """Sum of the weighted cuts at w."""
        coefficients, loss = self.respond(self.scores(w))
        return Cut(self.gather(coefficients), loss)

    def _most_violated(self, scores: Vector, i: int) -> tuple[Integers, Integers, float]:
        """Chosen pairs, gold pairs and the loss of document i."""
        task, y = self.task, self.labels[i]
        _, within, across = costs = self._costs[i]
        scale = self.loss_scale if self.augmented else 0.0
        chosen = task.best(scores, y, scale * within, scale * across)
        if self.online and isinstance(task, CoreferenceTask):
            gold = task.span(scores, y)
        else:
            gold = self._gold_pairs[i]
        return chosen, gold, self.loss_scale * _loss(y, chosen, costs)

    def _refresh(self) -> Vector:
        self._gold_pairs = [self.task.pairs(output) for output in self.gold]
        return super()._refresh()


def _renumbered(labels: NDArray[Any]) -> Integers:
    """The same clusters, numbered from 0 by first appearance."""
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code]


def _loss(y: Integers, pairs: Integers, costs: tuple[float, float, float]) -> float:
    """Δ of an output that chooses these pairs."""
    constant, within, across = costs
    i, j = _mentions(pairs, len(y))
    right = int(np.count_nonzero(y[i] == y[j]))
    return max(0.0, constant + right * within + (len(pairs) - right) * across)


def _labels(y: ArrayLike) -> Integers:
    """Labels of any type as integers."""
    labels = np.asarray(y)
    if labels.dtype == np.int64:
        return labels
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _row(i: Integers, j: Integers, n: int) -> Integers:
    """Row of each pair i < j among the pairs of n mentions."""
    return i * (2 * n - i - 1) // 2 + j - i - 1


def _rows(places: NDArray[np.int32], n: int) -> Integers:
    """Rows of pairs given as i·n + j."""
    return _row(*np.divmod(places.astype(np.int64), max(n, 1)), n)


def _mentions(pairs: Integers, n: int) -> tuple[Integers, Integers]:
    """The mentions i < j of each row."""
    begins = _row(np.arange(n), np.arange(1, n + 1), n)
    i = np.searchsorted(begins, pairs, "right") - 1
    return i, pairs - begins[i] + i + 1 if n else i


@lru_cache(maxsize=128)
def _triangle(n: int) -> tuple[Integers, Integers]:
    i, j = np.triu_indices(n, 1)
    return i, j


def _range(n: int) -> Integers:
    return _longest(1 << max(n - 1, 1).bit_length())[:n]


@lru_cache(maxsize=32)
def _longest(n: int) -> Integers:
    return np.arange(n)


def _check(task: PairTask, i: int, x: MentionPairs, y: ArrayLike) -> None:
    if x.features.shape[1] != task.n_features:
        raise DataError(
            f"document {i}: expected {task.n_features} features per pair, found "
            f"{x.features.shape[1]}",
            field="features",
        )
    if np.shape(y) != (x.n_mentions,):
        raise DataError(
            f"document {i}: expected {x.n_mentions} cluster labels, one per mention, found shape "
            f"{np.shape(y)}",
            field="labels",
        )
