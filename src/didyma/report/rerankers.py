"""A reranker compared with the order that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.metrics import Evaluation, evaluate, parse_all
from didyma.report.html import write_report
from didyma.report.table import ComparisonTable, comparison
from didyma.text.judgements import Target
from didyma.text.reranker import Reranker

MEASURES = "AP, RR, nDCG@10"
LEARNED = "reranker"


@dataclass(frozen=True, eq=False)
class RerankerComparison:
    """A reranker beside the order that it changes, on queries that tell orders apart."""

    evaluations: dict[str, Evaluation]
    table: ComparisonTable
    left_out: int

    @classmethod
    def of(
        cls,
        reranker: Reranker,
        lists: Lists,
        scores: NDArray[np.float64],
        measures: str = MEASURES,
        *,
        every: bool = False,
    ) -> RerankerComparison:
        """Compare raw scores with the baseline's by paired tests of the first measure.

        A reranker that was fitted without a gate stands alone.
        """
        groups, target = lists.groups, Target.of(lists.y, lists.groups, reranker.measure)
        better = (target.grades if target.kind == "teacher" else target.relevance)[groups.rows]
        starts = groups.starts[:-1]
        counted = every | (
            np.minimum.reduceat(better, starts) < np.maximum.reduceat(better, starts)
        )
        if not counted.any():
            raise DataError("expected a query with relevant passages and others, found none")
        before = [] if reranker.gate_ is None else [reranker.baseline(lists)]
        evaluations = {}
        for system, system_scores in (*before, (LEARNED, scores)):
            whole = evaluate(system_scores, target.grades, groups, measures, docid=lists.docid)
            values = {measure: value[counted] for measure, value in whole.values.items()}
            evaluations[system] = Evaluation(whole.queries[counted], values)
        table = comparison(evaluations, measure=str(parse_all(measures)[0]))
        return cls(evaluations, table, int(np.sum(~counted)))

    def write(self, reranker: Reranker, lists: Lists, path: Path) -> None:
        """Write a report on how a reranker was trained."""
        assert lists.queries is not None
        calibration = reranker.calibration_
        write_report(
            path,
            title="Reranking passages",
            lead=f"{len(lists.groups)} queries with {len(lists)} passages, ranked by models that "
            "had not seen the query.",
            table=self.table,
            evaluations=self.evaluations,
            queries=dict(zip(map(str, lists.groups.names.tolist()), lists.queries)),
            calibrations={} if calibration is None else {LEARNED: calibration},
            notes=[str(reranker.gate_)],
        )
