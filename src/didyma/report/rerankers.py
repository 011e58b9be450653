"""A reranker compared with the order that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.metrics import Evaluation, evaluate, parse_all
from didyma.report.html import write_report
from didyma.report.table import ComparisonTable, aligned, comparison
from didyma.text.reranker import Reranker
from didyma.text.training_data import Target
from didyma.values import decimal

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

    def by_query(self, lists: Lists) -> list[dict[str, Any]]:
        """The values of each query that counts, by system and measure, ready for JSON."""
        texts = dict(zip(map(str, lists.groups.names.tolist()), lists.query_texts))
        systems = {name: own.to_dict()["queries"] for name, own in self.evaluations.items()}
        names = map(str, next(iter(self.evaluations.values())).queries.tolist())
        return [
            {"qid": qid, "query": texts[qid], **{name: own[qid] for name, own in systems.items()}}
            for qid in names
        ]

    def query_table(self, lists: Lists) -> str:
        """The same of the measure that is tested, as columns."""
        rows = [[*self.evaluations, "query"]]
        for own in self.by_query(lists):
            values = [decimal(own[name][self.table.measure]) for name in self.evaluations]
            rows.append([*values, own["query"]])
        return aligned(rows)

    def write(self, reranker: Reranker, lists: Lists, path: Path, lead: str | None = None) -> None:
        """Write a report on how a reranker was trained, or on what ``lead`` says."""
        assert lists.queries is not None
        calibration = reranker.calibration_
        write_report(
            path,
            title="Reranking passages",
            lead=lead
            or f"{len(lists.groups)} queries with {len(lists)} passages, ranked by models that "
            "had not seen the query.",
            table=self.table,
            evaluations=self.evaluations,
            queries=dict(zip(map(str, lists.groups.names.tolist()), lists.queries)),
            calibrations={} if calibration is None else {LEARNED: calibration},
            notes=[str(reranker.gate_)],
        )
