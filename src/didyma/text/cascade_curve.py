"""How good the order of a cascade is by how much its teacher is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.text.baselines import lower_bound
from didyma.text.teachers.teacher import Teacher, score_rows
from didyma.text.training_data import Target
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.text.teachers.score_store import ScoreStore

STEPS = 20  # thresholds that are tried


def contested(
    raw: NDArray[np.float64], top: int, threshold: float | None, budget: int
) -> NDArray[np.int64]:
    """Places of the documents that could change the top, ascending, at most ``budget``.

    ``raw`` are scores in descending order. A document could change the top if its score differs by
    less than the threshold from that of another one, and one of both is among the first ``top``;
    without a threshold any could. A single document has nothing to be compared with.

    >>> contested(np.array([3.0, 2.9, 2.0, 1.9]), 1, 0.5, 10)
    array([0, 1])
    >>> contested(np.array([3.0, 2.9, 2.0, 1.9]), 1, None, 3)
    array([0, 1, 2])
    """
    first = min(top, len(raw))
    distance = np.abs(raw[:first, None] - raw)
    np.fill_diagonal(distance, np.inf)
    is_unsure = np.isfinite(distance) if threshold is None else distance < threshold
    could: NDArray[np.bool_] = np.any(is_unsure, axis=0)
    could[:first] |= is_unsure.any(axis=1)
    places = np.flatnonzero(could)[:budget]
    return places if len(places) > 1 else places[:0]


def rearranged(
    raw: NDArray[np.float64], places: NDArray[np.int64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The order in which documents share out their places by new scores, and raw scores for it.

    Of equal new scores the earlier stays first. The raw score at a place is the one that was there,
    a little lower where that would not be below the one before it.

    >>> order, raw = rearranged(np.array([3.0, 3.0, 1.0]), np.array([0, 1]), np.array([0.0, 7.0]))
    >>> order, raw.round(6)
    (array([1, 0, 2]), array([3., 3., 1.]))
    >>> bool(raw[0] > raw[1])
    True
    """
    order, raw = np.arange(len(raw)), raw.copy()
    if len(places):
        order[places] = places[np.argsort(-scores, kind="stable")]
        for n in range(1, len(raw)):
            raw[n] = min(raw[n], np.nextafter(raw[n - 1], -np.inf))
    return order, raw


class CascadePoint(NamedTuple):
    """Documents asked about, the mean over queries; the share of queries asked; the measure.

    ``threshold`` is that of differences between raw scores, None if all are unsure, and ``budget``
    the number of documents of a query at most.
    """

    threshold: float | None
    budget: int
    asked: float
    queries: float
    value: float


@dataclass(frozen=True)
class CascadeCurve:
    """A measure over the number of documents that a teacher is asked about.

    ``by_margin`` has the points of ascending thresholds, from 0, where the order is the
    reranker's; ``by_depth``, for comparison, those of asking about the first 0, 2, 3, … documents
    of every query. ``gain_is_sure`` says whether the best of the former gains more than its
    standard error.

    >>> points = [
    ...     CascadePoint(0.0, 10, 0.0, 0.0, 0.60),
    ...     CascadePoint(0.5, 10, 2.1, 0.4, 0.69),
    ...     CascadePoint(None, 10, 10.0, 1.0, 0.70),
    ... ]
    >>> CascadeCurve("AP", 100, tuple(points), (), gain_is_sure=True).threshold(share=0.9)
    0.5
    """

    measure: str
    n_queries: int
    by_margin: tuple[CascadePoint, ...]
    by_depth: tuple[CascadePoint, ...]
    gain_is_sure: bool

    @classmethod
    def of(
        cls,
        lists: Lists,
        raw: NDArray[np.float64],
        teacher: Teacher,
        budget: int,
        top: int,
        measure: str | None = None,
        store: ScoreStore | None = None,
        callback: Callable[[int, int], object] | None = None,
    ) -> CascadeCurve:
        """The curve of lists that have these raw scores.

        Without labels the teacher scores all documents, else the first ``budget`` of each list.
        """
        groups = lists.groups
        orders = [
            (rows := groups.rows_of(n))[np.argsort(-raw[rows], kind="stable")]
            for n in range(len(groups))
        ]
        if not orders:
            raise DataError("expected lists, found none", field="lists")
        is_asked = np.full(len(lists), lists.labels is None)
        for rows in orders:
            is_asked[rows[:budget]] = True
        taught = score_rows(teacher, lists, is_asked, store, callback)
        labels = taught if lists.labels is None else lists.labels
        target = Target.of(labels, groups, measure)

        def point(threshold: float | None, depth: int) -> tuple[CascadePoint, Any]:
            scores, counts = raw.copy(), []
            for rows in orders:
                places = contested(raw[rows], top, threshold, depth)
                order, values = rearranged(raw[rows], places, taught[rows[places]])
                scores[rows[order]] = values
                counts.append(len(places))
            values = _values(scores, target, lists)
            asked, queries = float(np.mean(counts)), float(np.mean(np.array(counts) > 0))
            return CascadePoint(threshold, depth, asked, queries, float(values.mean())), values

        by_margin = [point(threshold, budget) for threshold in _thresholds(raw, orders, top)]
        by_depth = [point(None, depth)[0] for depth in (0, *range(2, budget + 1))]
        (_, base), (_, best) = by_margin[0], max(by_margin, key=lambda pair: pair[0].value)
        is_sure = len(base) > 1 and lower_bound(best, base) > 0
        points, _ = zip(*by_margin)
        return cls(target.measure, len(groups), points, tuple(by_depth), is_sure)

    def threshold(self, share: float = 0.95) -> float | None:
        """The least that keeps a share of the greatest gain; 0 if no gain is sure."""
        base, best = self.by_margin[0].value, max(point.value for point in self.by_margin)
        if not self.gain_is_sure:
            return 0.0
        least = base + share * (best - base)
        return next(point.threshold for point in self.by_margin if point.value >= least)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "measure": self.measure,
            "n_queries": self.n_queries,
            "gain_is_sure": self.gain_is_sure,
            "by_margin": [point._asdict() for point in self.by_margin],
            "by_depth": [point._asdict() for point in self.by_depth],
        }

    def text(self) -> str:
        """A table of plain columns."""
        head = ("threshold", "asked", "queries", self.measure, "", "first", "asked", self.measure)
        by_margin = [
            (
                "none" if point.threshold is None else f"{point.threshold:.3g}",
                f"{point.asked:.2f}",
                f"{point.queries:.0%}",
                decimal(point.value),
            )
            for point in self.by_margin
        ]
        by_depth = [
            ("", str(point.budget), f"{point.asked:.2f}", decimal(point.value))
            for point in self.by_depth
        ]
        pairs = zip_longest(by_margin, by_depth, fillvalue=("",) * 4)
        lines = [head, *(left + right for left, right in pairs)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(map(str.rjust, cells, widths)).rstrip() for cells in lines)


def _thresholds(
    raw: NDArray[np.float64], orders: Sequence[NDArray[np.int64]], top: int
) -> list[float | None]:
    """0, quantiles of the differences between the top's raw scores and others, and none."""
    differences = [np.abs(raw[rows[:top], None] - raw[rows]).ravel() for rows in orders]
    pooled = np.concatenate(differences)
    pooled = pooled[pooled > 0]
    shares = np.linspace(0, 1, STEPS + 1)[1:-1]
    quantiles = np.quantile(pooled, shares) if len(pooled) else pooled
    return [0.0, *np.unique(quantiles).tolist(), None]


def _values(scores: NDArray[np.float64], target: Target, lists: Lists) -> NDArray[np.float64]:
    """The measure of each list."""
    from didyma.metrics import evaluate

    evaluation = evaluate(scores, target.grades, lists.groups, target.measure, docid=lists.docid)
    (values,) = evaluation.values.values()
    return values
