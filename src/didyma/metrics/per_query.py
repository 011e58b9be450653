"""Values of measures for each query: by kernel, or by ir_measures where there is none.

A kernel is one formula on labels in ranked order. A query without a relevant document, or without a
ranked one, has the value 0, as in trec_eval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ir_measures
import numpy as np
from numpy.typing import NDArray

import didyma._core.measures as kernels
from didyma.errors import DataError
from didyma.metrics.measures import Measure, is_native

Vector = NDArray[np.float64]
RunAndQrels: TypeAlias = "tuple[dict[str, list[str]], dict[str, dict[str, float]]]"


@dataclass(frozen=True, eq=False)
class Ranking:
    """Labels of each query in ranked order, NaN where a document is not judged.

    ``equal`` marks the slots with the same score as the slot above, ``averaged`` those among them
    whose order the measures average over: none for a strict ranking, all for an expectation.
    """

    labels: NDArray[np.float64]
    starts: NDArray[np.int64]
    equal: NDArray[np.bool_]
    averaged: NDArray[np.bool_]

    def total(self, gains: NDArray[Any], depths: Any, discount: Vector | None = None) -> Vector:
        """Expected sum of the first gains of each query, discounted by rank."""
        if discount is None:
            discount = np.ones(self.longest)
        depth = np.empty(len(self.starts) - 1, dtype=np.int64)
        depth[:] = depths
        shared = kernels.share_ties(gains.astype(np.float64), self.averaged)
        return kernels.discounted_gain(shared, self.starts, depth, discount)

    @property
    def longest(self) -> int:
        """Number of ranks of the query that has most."""
        return int(np.diff(self.starts).max(initial=0))


@dataclass(frozen=True, eq=False)
class Judgements:
    """All that is judged, query by query, whether it is ranked or not."""

    labels: NDArray[np.float64]
    starts: NDArray[np.int64]
    _cache: dict[Any, Vector] = field(default_factory=dict, init=False, repr=False)

    def n_relevant(self, rel: int) -> Vector:
        """Number of documents of each query with a label of at least ``rel``."""
        if rel not in self._cache:
            count = np.concatenate([[0], np.cumsum(self.labels >= rel)])
            self._cache[rel] = np.diff(count[self.starts]).astype(np.float64)
        return self._cache[rel]

    def ideal(self, measure: Measure) -> Vector:
        """The greatest DCG that a ranking of each query can have."""
        if measure not in self._cache:
            query = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
            best = np.lexsort((-_gains(measure, self.labels), query))
            strict = np.zeros(len(best), dtype=np.bool_)
            self._cache[measure] = _dcg(
                measure, Ranking(self.labels[best], self.starts, strict, strict)
            )
        return self._cache[measure]


def values_per_query(
    measures: Sequence[Measure],
    ranking: Ranking,
    judged: Judgements,
    documents: Callable[[], RunAndQrels],
) -> dict[Measure, Vector]:
    """Values of each measure, one for each query.

    ``documents()`` is what ir_measures needs: the documents of each query best first, and the
    labels of all that are judged.
    """
    values = {
        measure: FORMULAS[measure.NAME](measure, ranking, judged)
        for measure in measures
        if is_native(measure)
    }
    if foreign := [measure for measure in measures if measure not in values]:
        values |= _by_ir_measures(foreign, *documents())
    return {measure: values[measure] for measure in measures}


def _by_ir_measures(
    measures: Sequence[Measure], run: dict[str, list[str]], qrels: dict[str, dict[str, float]]
) -> dict[Measure, Vector]:
    """Values for each query of ``qrels``, NaN for those that ir_measures leaves out.

    It sees ranks for scores, so that one tie rule holds whichever program it asks, and one measure
    at a time: together it confuses those with gains of their own.
    """
    values = {measure: np.full(len(qrels), np.nan) for measure in measures}
    place = {query: i for i, query in enumerate(qrels)}
    ranks = {
        query: {document: float(-rank) for rank, document in enumerate(documents)}
        for query, documents in run.items()
    }
    labels = {query: _integer_labels(judged) for query, judged in qrels.items()}
    try:
        for measure in measures:
            for result in ir_measures.iter_calc(*_at_level_1(measure, labels), ranks):
                if result.query_id in place:
                    values[measure][place[result.query_id]] = result.value
    except (ArithmeticError, AssertionError, RuntimeError, TypeError, ValueError) as error:
        names = ", ".join(map(str, measures))
        problem = " ".join(str(error).split())
        raise DataError(f"ir_measures cannot compute {names}: {problem}") from error
    return values


def _at_level_1(
    measure: Measure, qrels: dict[str, dict[str, int]]
) -> tuple[list[Measure], dict[str, dict[str, int]]]:
    """The same measure of labels that are 1 where they reach its level, and at most 0 elsewhere.

    trec_eval counts the documents of each label, and reads beyond these counts where no label
    reaches the level.
    """
    level = measure.params.get("rel", 1)
    if level == 1:
        return [measure], qrels
    binary = {
        query: {document: 1 if label >= level else min(label, 0) for document, label in own.items()}
        for query, own in qrels.items()
    }
    return [measure(rel=1)], binary


def _integer_labels(judged: dict[str, float]) -> dict[str, int]:
    for label in judged.values():
        if label != int(label):
            raise DataError(f"this measure needs integers for labels, found {label}", field="y")
    if all(label < 0 for label in judged.values()):
        return {}  # which means the same to trec_eval, but does not crash it
    return {document: int(label) for document, label in judged.items()}


def _average_precision(measure: Measure, ranking: Ranking, judged: Judgements) -> Vector:
    rel = measure["rel"]
    return kernels.average_precision(
        ranking.labels >= rel,
        ranking.averaged,
        ranking.starts,
        judged.n_relevant(rel),
        _depth(measure, ranking),
    )


def _reciprocal_rank(measure: Measure, ranking: Ranking, _: Judgements) -> Vector:
    return _first(measure, ranking, 1 / np.arange(1, ranking.longest + 1))


def _success(measure: Measure, ranking: Ranking, _: Judgements) -> Vector:
    return _first(measure, ranking, np.ones(ranking.longest))


def _first(measure: Measure, ranking: Ranking, worth: Vector) -> Vector:
    worth[_depth(measure, ranking) :] = 0
    return kernels.first_relevant(
        ranking.labels >= measure["rel"], ranking.averaged, ranking.starts, worth
    )


def _precision(measure: Measure, ranking: Ranking, _: Judgements) -> Vector:
    cutoff = measure["cutoff"]
    return ranking.total(ranking.labels >= measure["rel"], cutoff) / cutoff


def _recall(measure: Measure, ranking: Ranking, judged: Judgements) -> Vector:
    rel = measure["rel"]
    return _ratio(ranking.total(ranking.labels >= rel, measure["cutoff"]), judged.n_relevant(rel))


def _r_precision(measure: Measure, ranking: Ranking, judged: Judgements) -> Vector:
    rel = measure["rel"]
    n_relevant = judged.n_relevant(rel)
    return _ratio(ranking.total(ranking.labels >= rel, n_relevant), n_relevant)


def _ndcg(measure: Measure, ranking: Ranking, judged: Judgements) -> Vector:
    return _ratio(_dcg(measure, ranking), judged.ideal(measure))


def _dcg(measure: Measure, ranking: Ranking) -> Vector:
    discount = 1 / np.log2(np.arange(2, ranking.longest + 2))
    return ranking.total(_gains(measure, ranking.labels), _depth(measure, ranking), discount)


def _gains(measure: Measure, labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The label itself, or what ``gains`` makes of it, or 2^label - 1; never below 0."""
    gains = labels.copy()
    for label, gain in measure.params.get("gains", {}).items():
        gains[labels == label] = gain
    gains = np.fmax(gains, 0)  # of NaN too
    return np.exp2(gains) - 1 if measure["dcg"] == "exp-log2" else gains


def _roc_area(measure: Measure, ranking: Ranking, judged: Judgements) -> Vector:
    rel = measure["rel"]
    return kernels.roc_area(
        ranking.labels >= rel, ranking.equal, ranking.starts, judged.n_relevant(rel)
    )


def _depth(measure: Measure, ranking: Ranking) -> int:
    return int(measure.params.get("cutoff", ranking.longest))


def _ratio(part: Vector, whole: Vector) -> Vector:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


FORMULAS: dict[str, Callable[[Measure, Ranking, Judgements], Vector]] = {
    "AP": _average_precision,
    "P": _precision,
    "R": _recall,
    "ROCArea": _roc_area,
    "RR": _reciprocal_rank,
    "Rprec": _r_precision,
    "Success": _success,
    "nDCG": _ndcg,
}
