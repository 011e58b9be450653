"""Rerankers on judged queries: one against the order that it changes, a new one against the old."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.files import PathName
from didyma.metrics import (
    Evaluation,
    Power,
    evaluate,
    interval,
    parse_all,
    queries_needed,
    wilcoxon,
    wins_losses,
)
from didyma.metrics.significance import holm
from didyma.report.html import Example, PageTable, rankings_of, write_report
from didyma.report.table import ComparisonTable, aligned, comparison, p_value_text
from didyma.text.features.languages import detect
from didyma.text.reranker import Reranker
from didyma.text.training_data import Target, TrainingData
from didyma.values import decimal

MEASURES = "AP, RR, nDCG@10"
LEARNED = "reranker"  # its name beside the order before
FEWEST = 5  # queries of a group that is told about
TOP = 10  # places that documents move from or to
EXAMPLES = 3  # queries that a page shows of the most gained, and of the most lost
GAIN = 0.02  # that power is told for

Vector: TypeAlias = NDArray[np.float64]


class Ranks(Protocol):
    """A reranker or a cascade."""

    trained_on_: TrainingData | None

    def predict(self, lists: Lists) -> Vector:
        """Raw score of each row."""


def _texts_of(lists: Lists) -> dict[str, str]:
    """Texts of queries by their ids."""
    return dict(zip(map(str, lists.groups.names.tolist()), lists.query_texts))


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
        scores: Vector,
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
        texts = _texts_of(lists)
        systems = {name: system.to_dict()["queries"] for name, system in self.evaluations.items()}
        return [
            {"qid": qid, "query": texts[qid]} | {name: systems[name][qid] for name in systems}
            for qid in map(str, next(iter(self.evaluations.values())).queries.tolist())
        ]

    def query_table(self, lists: Lists) -> str:
        """The same of the measure that is tested, as columns."""
        rows = [[*self.evaluations, "query"]]
        for query in self.by_query(lists):
            values = [decimal(query[name][self.table.measure]) for name in self.evaluations]
            rows.append([*values, query["query"]])
        return aligned(rows)

    def write(self, reranker: Reranker, lists: Lists, path: Path, lead: str | None = None) -> None:
        """Write a report on how a reranker was trained, or on what ``lead`` says."""
        calibration = reranker.calibration_
        write_report(
            path,
            title="Reranking passages",
            lead=lead
            or f"{len(lists.groups)} queries with {len(lists)} passages, ranked by models that "
            "had not seen the query.",
            table=self.table,
            evaluations=self.evaluations,
            queries=_texts_of(lists),
            calibrations={} if calibration is None else {LEARNED: calibration},
            notes=[str(reranker.gate_)],
        )


@dataclass(frozen=True)
class Gain:
    """Means of a measure before and after, their difference, its 95 % interval, and a test.

    ``low`` and ``high`` are of a paired bootstrap over queries, ``p_value`` is that of Wilcoxon's
    test, ``corrected`` the same by Holm for all that stand in one table.
    """

    name: str
    queries: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    wins: int
    losses: int
    ties: int
    p_value: float
    corrected: float = 1.0

    @property
    def cells(self) -> list[str]:
        """All of it, for a row of a table."""
        spread = f"{decimal(self.low, signed=True)} … {decimal(self.high, signed=True)}"
        counts = f"{self.wins}/{self.losses}/{self.ties}"
        means = [decimal(self.before), decimal(self.after), decimal(self.difference, signed=True)]
        p = p_value_text(self.corrected)
        return [self.name, f"{self.queries}", *means, spread, counts, p]


HEAD = ("", "queries", "before", "after", "difference", "95 % interval", "W/L/T", "p (Holm)")


@dataclass(frozen=True)
class QueryChange:
    """A query, its values before and after, and the documents that moved into, in or out of the
    first ten: id, text, label, rank before and after.
    """

    query: str
    before: float
    after: float
    moved: tuple[tuple[str, str, float, int, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        names = ("document", "text", "label", "before", "after")
        return {**asdict(self), "moved": [dict(zip(names, document)) for document in self.moved]}


def unseen(lists: Lists, *models: Any) -> NDArray[np.bool_]:
    """Whether each query is new to all models, as far as their files tell.

    >>> from types import SimpleNamespace
    >>> lists = Lists.of_texts(["a", "b"], [["x"], ["y"]], [[1], [0]])
    >>> model = SimpleNamespace(trained_on_=TrainingData.of(lists.select_lists([0])))
    >>> unseen(lists, model).tolist()
    [False, True]
    """
    new = np.ones(len(lists.groups), bool)
    for model in models:
        if (data := getattr(model, "trained_on_", None)) is not None:
            new &= ~data.seen(lists.query_texts)
    return new


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """A new model against an old one.

    Attributes
    ----------
    names : tuple of str
        Of the old and the new one.
    measures, groups : tuple of Gain
        All queries by measure; the first measure by groups of queries.
    queries : tuple of QueryChange
        Each query that tells orders apart, by the first measure.
    left_out : dict
        How many queries do not count, and why.
    power : Power
        How many queries would show a gain of .02.

    >>> from didyma import TextReranker
    >>> texts = [[f"it is {n}.", "no", f"{n} is it"] for n in range(12)]
    >>> labels = [[1, 0, 0]] * 12
    >>> lists = Lists.of_texts([f"what is {n}?" for n in range(12)], texts, labels)
    >>> models = [
    ...     TextReranker(quick=True, random_state=seed).fit(lists.select_lists(range(4)))
    ...     for seed in (0, 1)
    ... ]
    >>> comparison = ModelComparison.of(*models, lists)
    >>> comparison.left_out, comparison.better
    ({'seen in training': 4, 'passages of one kind': 0}, False)
    """

    names: tuple[str, str]
    measures: tuple[Gain, ...]
    groups: tuple[Gain, ...]
    queries: tuple[QueryChange, ...]
    left_out: dict[str, int]
    power: Power
    _evaluations: dict[str, Evaluation]
    _lists: Lists
    _scores: tuple[Vector, Vector]

    @classmethod
    def of(
        cls,
        old: Ranks,
        new: Ranks,
        lists: Lists,
        measures: str = MEASURES,
        names: tuple[str, str] = ("old", "new"),
    ) -> ModelComparison:
        """Compare on the queries that neither has seen and whose passages are of several kinds."""
        new_queries = unseen(lists, old, new)
        target = Target.of(lists.y, lists.groups)
        mixed = lists.groups.mixed(target.grades >= max(1.0, target.grades.max() / 2)) | (
            lists.groups.mixed(target.grades >= 1)
        )
        left_out = {
            "seen in training": int((~new_queries).sum()),
            "passages of one kind": int((new_queries & ~mixed).sum()),
        }
        chosen = np.flatnonzero(new_queries & mixed)
        if len(chosen) < 2:
            raise DataError(
                f"expected two queries or more that neither model has seen, found {len(chosen)} "
                f"({left_out['seen in training']} were seen in training)"
            )
        tested = lists.select_lists(chosen)
        grades = Target.of(tested.y, tested.groups).grades
        scores = old.predict(tested), new.predict(tested)
        before, after = (
            evaluate(of_model, grades, tested.groups, measures, docid=tested.docid)
            for of_model in scores
        )
        first = parse_all(measures)[0]
        difference = after[first] - before[first]
        strength = _strength(old, tested, grades, str(first))
        return cls(
            names,
            _gains({str(m): (before[m], after[m]) for m in before.values}),
            _gains(
                {
                    name: (before[first][queries], after[first][queries])
                    for name, queries in query_groups(tested, strength).items()
                }
            ),
            tuple(_changes(tested, grades, scores, before[first], after[first])),
            left_out,
            queries_needed(difference, GAIN),
            dict(zip(names, (before, after))),
            tested,
            scores,
        )

    @property
    def gain(self) -> Gain:
        """That of the first measure."""
        return self.measures[0]

    @property
    def better(self) -> bool:
        """Whether the interval of the first measure's gain is above 0: promote the new one."""
        return self.gain.low > 0

    @property
    def verdict(self) -> str:
        """What to do, and why."""
        old, new = self.names
        gain = self.gain
        figures = (
            f"{gain.name} {decimal(gain.after)} against {decimal(gain.before)} of {old} on "
            f"{gain.queries} queries that neither has seen, "
            f"95 % interval of the gain {decimal(gain.low, signed=True)} to "
            f"{decimal(gain.high, signed=True)}"
        )
        if self.better:
            return f"Promote {new}: {figures}."
        if gain.high < 0:
            return f"Do not promote {new}, which is worse: {figures}."
        return f"Do not promote {new}: no gain is certain ({figures}); {self.power}."

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "old": self.names[0],
            "new": self.names[1],
            "promote": self.better,
            "verdict": self.verdict,
            "measures": [asdict(gain) for gain in self.measures],
            "groups": [asdict(gain) for gain in self.groups],
            "left_out": self.left_out,
            "power": self.power.to_dict(),
            "queries": [query.to_dict() for query in self.queries],
        }

    def text(self) -> str:
        """Tables and the verdict."""
        rows = [[*HEAD], *(gain.cells for gain in (*self.measures, *self.groups))]
        left_out = {why: count for why, count in self.left_out.items() if count}
        notes = [f"left out: {count} queries, {why}" for why, count in left_out.items()]
        return "\n".join([aligned(rows), *notes, "", self.verdict])

    def write(self, path: PathName) -> None:
        """Write a report: one page of HTML."""
        old, _ = self.names
        measures = list(self._evaluations[old].values)
        tables = [
            PageTable("Gains", HEAD, [gain.cells for gain in self.measures]),
            PageTable(
                f"{measures[0]} by kinds of queries", HEAD, [gain.cells for gain in self.groups]
            ),
        ]
        left_out = [
            f"{count} queries left out: {why}." for why, count in self.left_out.items() if count
        ]
        write_report(
            path,
            title="Promote the new model?",
            lead=self.verdict,
            table=comparison(self._evaluations, measure=str(measures[0])),
            evaluations=self._evaluations,
            queries=_texts_of(self._lists),
            tables=[table for table in tables if table.rows],
            examples=list(self._examples()),
            notes=[
                *left_out,
                "Intervals are of a paired bootstrap over queries, p-values of Wilcoxon's test "
                "with Holm's correction for the rows of a table. Thirds of the queries are by "
                "the order before reranking.",
            ],
        )

    def _examples(self) -> Iterator[Example]:
        """The queries that gained most and lost most, as both rank them."""
        lists = self._lists
        differences = np.array([query.after - query.before for query in self.queries])
        order = np.argsort(-differences, kind="stable").tolist()
        gained = [n for n in order[:EXAMPLES] if differences[n] > 0]
        for n in gained + [n for n in order[::-1][:EXAMPLES] if differences[n] < 0]:
            query = self.queries[n]
            orders = [_order(lists, n, scores) for scores in self._scores]
            rankings = rankings_of(dict(zip(self.names, orders)), lists.texts, lists.y >= 1)
            values = f"{decimal(query.before)} before, {decimal(query.after)} after"
            yield Example(query.query, f"{self.gain.name} {values}", rankings)


def _gains(pairs: Mapping[str, tuple[Vector, Vector]]) -> tuple[Gain, ...]:
    tests = {name: wilcoxon(after, before) for name, (before, after) in pairs.items()}
    corrected = holm(list(tests.values())) if tests else ()
    return tuple(
        Gain(
            name,
            len(before),
            float(before.mean()),
            float(after.mean()),
            float((after - before).mean()),
            *interval(after, before),
            *wins_losses(after, before),
            tests[name],
            float(p),
        )
        for (name, (before, after)), p in zip(pairs.items(), corrected)
    )


def _strength(old: Any, lists: Lists, grades: Vector, measure: str) -> Vector | None:
    """How good the order before reranking is, query by query; None where that is not known."""
    reranker = getattr(old, "reranker", old)  # that of a cascade
    if getattr(reranker, "gate_", None) is None:
        return None
    _, scores = reranker.baseline(lists)
    return evaluate(scores, grades, lists.groups, measure, docid=lists.docid)[measure]


def query_groups(lists: Lists, strength: Vector | None = None) -> dict[str, NDArray[np.int64]]:
    """Queries by length, language and strength of the first stage, in groups of five or more.

    >>> lists = Lists.of_texts(["who rang?"] * 15, [["a", "b"]] * 15, [[1, 0]] * 15)
    >>> list(query_groups(lists, np.arange(15.0)))[:2]
    ['one or two words', 'first stage: worst third']
    """
    words = [query.lower().split() for query in lists.query_texts]
    counts = np.array([len(query) for query in words])
    groups = {
        "one or two words": counts <= 2,
        "three to five words": (counts > 2) & (counts <= 5),
        "six words or more": counts > 5,
    }
    languages = np.array([detect(query) or "" for query in words])
    names = sorted(set(languages.tolist()) - {""})
    if len(names) > 1:
        groups |= {name: languages == name for name in names}
    if strength is not None:
        thirds = np.searchsorted(np.quantile(strength, [1 / 3, 2 / 3]), strength, side="right")
        for n, name in enumerate(("worst", "middle", "best")):
            groups[f"first stage: {name} third"] = thirds == n
    return {name: np.flatnonzero(rows) for name, rows in groups.items() if rows.sum() >= FEWEST}


def _order(lists: Lists, query: int, scores: Vector) -> list[int]:
    """Rows of a query, the highest score first."""
    rows = lists.groups.rows_of(query)
    order: list[int] = rows[np.argsort(-scores[rows], kind="stable")].tolist()
    return order


def _changes(
    lists: Lists, grades: Vector, scores: tuple[Vector, Vector], before: Vector, after: Vector
) -> Iterator[QueryChange]:
    texts = lists.texts
    docid = texts if lists.docid is None else [str(name) for name in lists.docid.tolist()]
    for n, query in enumerate(lists.query_texts):
        old, new = (_order(lists, n, of_model) for of_model in scores)
        old_ranks = {row: rank for rank, row in enumerate(old, 1)}
        moved = [
            (docid[row], texts[row][:300], float(grades[row]), old_ranks[row], rank)
            for rank, row in enumerate(new, 1)
            if old_ranks[row] != rank and min(old_ranks[row], rank) <= TOP
        ]
        yield QueryChange(query, float(before[n]), float(after[n]), tuple(moved))
