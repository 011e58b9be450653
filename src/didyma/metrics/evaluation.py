"""Evaluate scores against labels, query by query.

>>> qid = ["a", "a", "b", "b"]
>>> result = evaluate([3.0, 1.0, 1.0, 2.0], [1, 0, 1, 0], qid=qid, measures="AP, P@1")
>>> result["AP"].tolist(), result.mean("AP")
([1.0, 0.5], 0.75)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Groups, group_rows
from didyma.errors import DataError
from didyma.metrics.measures import Measure, is_native, parse, parse_all
from didyma.metrics.ranking import rank, read_labels, read_scores, tie_break, tie_order

Measures: TypeAlias = "str | Measure | Iterable[str | Measure]"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of each measure, one per query, in the order of ``queries``.

    >>> found = evaluate([3.0, 1.0, 2.0], [1, 0, 1], qid=["a", "a", "b"], measures="AP, P@2")
    >>> found.queries.tolist(), found["P@2"].tolist(), found.mean("AP")
    (['a', 'b'], [0.5, 0.5], 1.0)
    """

    queries: NDArray[Any]
    values: dict[Measure, NDArray[np.float64]]

    def __getitem__(self, measure: str | Measure) -> NDArray[np.float64]:
        found = self.values.get(parse(measure))
        if found is None:
            known = ", ".join(map(str, self.values))
            raise KeyError(f"{measure} was not evaluated; there are {known}")
        return found

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """The values of other queries after each other.

        >>> parts = [evaluate([2.0, 1.0], y, qid=[0, 0]) for y in ([1, 0], [0, 1])]
        >>> Evaluation.joined(parts)["AP"].tolist()
        [1.0, 0.5]
        """
        queries = np.concatenate([part.queries for part in parts])
        measures = parts[0].values
        return cls(
            queries,
            {
                measure: np.concatenate([part.values[measure] for part in parts])
                for measure in measures
            },
        )

    def mean(self, measure: str | Measure) -> float:
        """Mean over the queries that have a value."""
        values = self[measure]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Means and values by name, ready for JSON (None for a value that is missing)."""
        columns = {str(measure): _plain(values) for measure, values in self.values.items()}
        return {
            "mean": dict(zip(columns, _plain([self.mean(measure) for measure in self.values]))),
            "queries": {
                str(query): {name: column[i] for name, column in columns.items()}
                for i, query in enumerate(self.queries.tolist())
            },
        }

    def __repr__(self) -> str:
        means = ", ".join(f"{measure} {self.mean(measure):.4f}" for measure in self.values)
        return f"Evaluation({len(self.queries)} queries: {means})"


class Evaluator:
    """Evaluates one set of rows again and again, as a training loop does.

    What does not depend on scores (the order of ties, the best possible DCG) is computed once.

    >>> groups = Groups.from_qid(["a", "a", "a"])
    >>> evaluator = Evaluator([0, 1, 0], groups, "AP")
    >>> evaluator([3.0, 2.0, 1.0])
    Evaluation(1 queries: AP 0.5000)
    """

    def __init__(
        self,
        y: ArrayLike,
        groups: Groups,
        measures: Measures,
        *,
        docid: ArrayLike | None = None,
    ) -> None:
        from didyma.metrics.native import Judgements

        self.groups = groups
        self.measures = parse_all(measures)
        if not len(groups):
            raise DataError("there are no queries to evaluate")
        self._rows = tie_order(groups, tie_break(groups, docid))
        self._labels = read_labels(y, len(self._rows))[self._rows]
        self._judged = Judgements(self._labels, groups.starts)

    def __call__(self, scores: ArrayLike) -> Evaluation:
        """Values of the ranking by ``scores``, one for each row."""
        return self._evaluate(scores, average_ties=False)

    def expected(self, scores: ArrayLike) -> Evaluation:
        """Values expected when rows with equal scores are shuffled."""
        if foreign := [str(measure) for measure in self.measures if not is_native(measure)]:
            raise DataError(f"no expectation over ties is known for {', '.join(foreign)}")
        return self._evaluate(scores, average_ties=True)

    def _evaluate(self, scores: ArrayLike, *, average_ties: bool) -> Evaluation:
        from didyma.metrics import native

        slots, equal = rank(read_scores(scores, len(self._rows))[self._rows], self.groups.starts)
        averaged = equal if average_ties else np.zeros_like(equal)
        ranking = native.Ranking(self._labels[slots], self.groups.starts, equal, averaged)
        values = {
            measure: native.per_query(measure, ranking, self._judged)
            for measure in self.measures
            if is_native(measure)
        }
        if foreign := [measure for measure in self.measures if measure not in values]:
            values |= self._reference(foreign, slots)
        return Evaluation(
            self.groups.names, {measure: values[measure] for measure in self.measures}
        )

    def _reference(
        self, measures: list[Measure], slots: NDArray[np.int64]
    ) -> dict[Measure, NDArray[np.float64]]:
        from didyma.metrics import reference

        queries = [str(query) for query in range(len(self.groups))]
        bounds = self.groups.starts[1:-1]
        run = {q: s.astype(str).tolist() for q, s in zip(queries, np.split(slots, bounds))}
        qrels = {
            q: dict(zip(s.astype(str).tolist(), self._labels[s].tolist()))
            for q, s in zip(queries, np.split(np.arange(len(slots)), bounds))
        }
        return reference.per_query(measures, queries, run, qrels)


def evaluate(
    scores: ArrayLike,
    y: ArrayLike,
    groups: Groups | None = None,
    measures: Measures = "AP",
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
) -> Evaluation:
    """Values of each measure when the rows of each query are ranked by ``scores``.

    Queries are given by ``qid`` (one per row), ``group`` (sizes) or ready-made ``groups``; without
    any, all rows are one query. ``scores``, ``y`` and ``docid`` have one entry per row.
    `didyma.metrics.ranking` says how ties
    are broken. All rows count as judged; a query without a relevant row has the value 0 and takes
    part in the mean, as in trec_eval.

    >>> found = evaluate([3.0, 1.0, 1.0, 2.0], [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> found["AP"].tolist(), found.mean("AP")
    ([1.0, 0.5], 0.75)
    """
    if groups is None:
        groups = group_rows(np.size(y), qid, group)
    elif not isinstance(groups, Groups) or qid is not None or group is not None:
        raise DataError("give the queries once, as qid= (one per row) or group= (sizes)")
    return Evaluator(y, groups, measures, docid=docid)(scores)


def expected(scores: ArrayLike, y: ArrayLike, groups: Groups, measures: Measures) -> Evaluation:
    """Values of each measure in expectation over all orders of rows with equal scores.

    >>> groups = Groups.from_qid(["a", "a"])
    >>> expected([1.0, 1.0], [1, 0], groups, "AP").mean("AP")
    0.75
    """
    return Evaluator(y, groups, measures).expected(scores)


def _plain(values: ArrayLike) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in np.asarray(values)]
