"""A reranker that learns from a teacher's scores, and from judgements where there are some."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.metrics import Evaluation, evaluate
from didyma.text.teachers.resolution import TeacherLike, resolve
from didyma.text.teachers.score_store import ScoreStore
from didyma.text.teachers.teacher import score_rows
from didyma.text.text_reranker import TextReranker
from didyma.text.training_data import Target
from didyma.values import decimal

STUDENT, TEACHER = "student", "teacher"
BY_CHANCE = math.log(1e6)  # orders that agree by chance less often than once in a million


@dataclass(frozen=True, eq=False)
class KeptGain:
    """How much of a teacher's gain over the order before its student keeps, on held-out queries.

    ``judged_by`` is "judgements" or "the teacher's scores", in which case the teacher is right by
    definition. ``evaluations`` are those of the best order that needs no training, of the student
    and of the teacher, in this order.
    """

    judged_by: str
    measure: str
    evaluations: dict[str, Evaluation]

    @property
    def n_queries(self) -> int:
        """Number of held-out queries."""
        return len(next(iter(self.evaluations.values())).queries)

    @property
    def means(self) -> dict[str, float]:
        """Mean of the measure, by system."""
        return {
            name: evaluation.mean(self.measure) for name, evaluation in self.evaluations.items()
        }

    @property
    def share(self) -> float | None:
        """(student − before) / (teacher − before); None if the teacher gains nothing."""
        before, student, teacher = self.means.values()
        return (student - before) / (teacher - before) if teacher > before else None

    def __str__(self) -> str:
        (name, before), (_, student), (_, teacher) = self.means.items()
        figures = f"{self.measure} {decimal(before)} to {decimal(teacher)}"
        queries = f"on {self.n_queries} held-out queries, by {self.judged_by}"
        if self.share is None:
            return f"The teacher gains nothing over {name} ({figures}) {queries}."
        kept = f"{max(0.0, self.share):.0%} ({decimal(student)})"
        return f"Of the teacher's gain over {name} ({figures}) the student keeps {kept} {queries}."

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        record = {"judged_by": self.judged_by, "measure": self.measure, "n_queries": self.n_queries}
        return {**record, "means": self.means, "share": self.share}


@dataclass(frozen=True, eq=False)
class Distillation:
    """What came of `distil`.

    Attributes
    ----------
    reranker : TextReranker
        The student; it has not seen the held-out queries.
    n_judged, n_taught : int
        Queries that it learned from, by their judgements and by the teacher's scores.
    kept : tuple of KeptGain
        How much of the teacher's gain it keeps, by judgements if some held-out queries have any,
        and by the teacher's scores.

    >>> print(Distillation(TextReranker(), n_judged=20, n_taught=400, kept=()))
    Learned from the teacher's scores of 400 queries and judgements of 20.
    """

    reranker: TextReranker
    n_judged: int
    n_taught: int
    kept: tuple[KeptGain, ...]

    def __str__(self) -> str:
        learned = (
            f"Learned from the teacher's scores of {self.n_taught} queries and judgements of "
            f"{self.n_judged}."
        )
        return "\n".join([learned, *map(str, self.kept)])


def distil(
    lists: Lists,
    teacher: TeacherLike,
    reranker: TextReranker | None = None,
    *,
    judged: Lists | None = None,
    held_out: float = 0.2,
    store: ScoreStore | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> Distillation:
    """Train a reranker on the scores that a teacher gives to the candidates of queries.

    Where queries are judged (a list has a label above 0) their judgements count, and the teacher is
    not asked, unless to see how good it is on held-out ones. A judgement stands on the teacher's
    scale between its lowest score (label 0) and its highest (the highest label). The teacher's
    scores are labels and nothing else: a first-stage score or a signal that orders documents as the
    teacher does is refused, since whoever ranks later has no teacher to get it from.

    Parameters
    ----------
    lists : Lists
        Texts with or without labels.
    teacher : Teacher, str, object or callable
        As `didyma.text.teachers.resolve` takes it.
    reranker : TextReranker, optional
        The student, which will be fitted; its ``random_state`` chooses the held-out queries.
    judged : Lists, optional
        Further queries, with labels.
    held_out : float
        Share of the queries that say how much of the teacher's gain is kept.
    store : ScoreStore, optional
        Scores that the teacher has given already; new ones are added.
    callback : callable, optional
        Told how many queries the teacher is done with, and of how many.

    >>> from didyma import Lists, TextReranker
    >>> queries = [f"who wrote book {n}?" for n in range(12)]
    >>> texts = [[f"Ann wrote book {n}.", "It rains.", f"Book {n} is long."] for n in range(12)]
    >>> def teacher(query, documents):
    ...     return [3.5 * ("wrote" in document) - 1 for document in documents]
    >>> done = distil(Lists.of_texts(queries, texts), teacher, TextReranker(quick=True))
    >>> done.n_taught, done.n_judged, done.kept[0].means["teacher"]
    (10, 0, 1.0)
    """
    student = TextReranker() if reranker is None else reranker
    if not 0 <= held_out < 1:
        raise DataError(f"expected a share from 0 to below 1, found {held_out!r}", field="held_out")
    lists = lists.select(np.arange(len(lists)))  # without empty ones
    if judged is not None:
        if judged.labels is None:
            raise DataError("expected labels, found none", field="judged")
        lists = _together(lists, judged.select(np.arange(len(judged))))
    groups = lists.groups
    labels = np.zeros(len(lists)) if lists.labels is None else lists.labels
    is_judged = np.bincount(groups.codes, labels > 0, len(groups)) > 0
    is_held = _held_out(is_judged, held_out, student.random_state)
    is_asked = (~is_judged | is_held)[groups.codes]
    taught = score_rows(resolve(teacher), lists, is_asked, store, callback)
    _check_leak(lists, taught)
    mixed = _mixed(labels, taught, is_judged[groups.codes], (~is_held)[groups.codes])
    train = replace(lists, labels=mixed).select_lists(np.flatnonzero(~is_held))
    student.fit(train)
    kept = []
    for target, judged_by, is_tested in (
        (labels, "judgements", is_held & is_judged),
        (taught, "the teacher's scores", is_held & ~is_judged),
    ):
        if is_tested.any():
            numbers = np.flatnonzero(is_tested)
            rows = np.concatenate([groups.rows_of(n) for n in numbers.tolist()])
            test = lists.select_lists(numbers)
            kept.append(_kept(student, test, target[rows], taught[rows], judged_by))
    n_judged, n_taught = (int((~is_held & kind).sum()) for kind in (is_judged, ~is_judged))
    return Distillation(student, n_judged, n_taught, tuple(kept))


def _held_out(is_judged: NDArray[np.bool_], share: float, seed: int) -> NDArray[np.bool_]:
    """Which queries are held out: a share of those that are judged, and of the others."""
    is_held, random = np.zeros(len(is_judged), bool), np.random.default_rng(seed)
    for kind in (np.flatnonzero(is_judged), np.flatnonzero(~is_judged)):
        n = max(round(share * len(kind)), int(share > 0 and len(kind) > 1))
        is_held[random.permutation(kind)[:n]] = True
    return is_held


def _mixed(
    labels: NDArray[np.float64],
    taught: NDArray[np.float64],
    is_judged: NDArray[np.bool_],
    is_train: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """The teacher's scores, and judgements on their scale."""
    scores = taught[is_train & ~is_judged]
    if not len(scores):
        return labels
    low, high = scores.min(), scores.max()
    if low == high:
        raise DataError(f"gives {low:g} to every document", field="teacher")
    if low >= 0 and high <= 1:  # a share of relevance, as judgements are
        low, high = 0.0, 1.0
    highest = labels[is_judged].max(initial=1.0)
    on_scale = low + (high - low) * np.clip(labels, 0, None) / highest
    return np.where(is_judged, on_scale, np.where(is_train, taught, low))


def _kept(
    student: TextReranker,
    lists: Lists,
    labels: NDArray[np.float64],
    taught: NDArray[np.float64],
    judged_by: str,
) -> KeptGain:
    target = Target.of(labels, lists.groups, student.measure)
    name, before = student.baseline(lists)
    systems = {name: before, STUDENT: student.predict(lists), TEACHER: taught}
    evaluations = {
        system: evaluate(scores, target.grades, lists.groups, target.measure, docid=lists.docid)
        for system, scores in systems.items()
    }
    return KeptGain(judged_by, target.measure, evaluations)


def _check_leak(lists: Lists, taught: NDArray[np.float64]) -> None:
    """Refuse a column that is the teacher's score."""
    signals = {} if lists.attributes is None else lists.attributes.signals
    columns = {name: values for name, values in signals.items() if values.dtype == np.float64}
    if lists.scores is not None:
        columns["scores"] = lists.scores
    for name, column in columns.items():
        if _agree(column, taught, lists.groups):
            raise DataError(
                "orders all documents as the teacher does, so it is the teacher's score and would "
                "be missing when the reranker ranks: leave it out",
                field=name,
            )


def _agree(column: NDArray[np.float64], taught: NDArray[np.float64], groups: Groups) -> bool:
    """Whether two columns order all lists in the same way, ties included, and not by chance."""
    evidence = 0.0
    for n in range(len(groups)):
        rows = groups.rows_of(n)
        rows = rows[~np.isnan(taught[rows])]
        ranks, of_teacher = (
            np.unique(values[rows], return_inverse=True)[1] for values in (column, taught)
        )
        if not np.array_equal(ranks, of_teacher):
            return False
        evidence += math.lgamma(2 + ranks.max(initial=0))
    return evidence > BY_CHANCE


def _together(lists: Lists, judged: Lists) -> Lists:
    """Both as one; queries of the second come last."""
    parts = [lists.gathered(), judged.gathered()]
    for name in ("attributes", "query_vectors"):
        if any(getattr(part, name) is not None for part in parts):
            raise DataError(
                f"queries with {name} cannot be put together: give judged ones among the lists",
                field="judged",
            )
    if (lists.scores is None) != (judged.scores is None):
        raise DataError("expected first-stage scores as in the lists, or none", field="judged")
    labels = np.zeros(len(lists)) if lists.labels is None else parts[0].y
    scores = [values for part in parts if (values := part.scores) is not None]
    docid = [values.astype(str) for part in parts if (values := part.docid) is not None]
    return Lists(
        [*parts[0].texts, *parts[1].texts],
        np.concatenate([labels, parts[1].y]),
        docid=np.concatenate(docid) if len(docid) == 2 else None,
        queries=[*parts[0].query_texts, *parts[1].query_texts],
        scores=np.concatenate(scores) if scores else None,
        grouping=Groups.from_lists(np.concatenate([part.groups.sizes for part in parts])),
    )
