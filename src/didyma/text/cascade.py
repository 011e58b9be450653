"""A reranker that asks a slower teacher where it is unsure."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists
from didyma.data.schema import Schema
from didyma.errors import DataError, warn
from didyma.model import Savable, Serialisable, State
from didyma.model.codec import decode, encode, over, pop_under
from didyma.ranking.explanation import PassageExplanation
from didyma.ranking.ranked import Ranked, Ranking
from didyma.text.cascade_curve import CascadeCurve, contested, rearranged
from didyma.text.reranker import MEASURES, Reranker, measured
from didyma.text.steps.step import Step, check_top_k, take_steps
from didyma.text.teachers.endpoint import EndpointTeacher
from didyma.text.teachers.resolution import TeacherLike, resolve
from didyma.text.teachers.teacher import Teacher, within
from didyma.values import is_whole

if TYPE_CHECKING:
    from didyma.metrics import Evaluation
    from didyma.text.baselines import Verdict
    from didyma.text.calibration import Calibration
    from didyma.text.drift import Drift
    from didyma.text.teachers.score_store import ScoreStore
    from didyma.text.training_data import TrainingData

AT_ONCE = 8  # questions to a teacher that may be open
RERANKERS = ("Reranker", "TextReranker")
SETTINGS = ("budget", "top", "threshold", "timeout")
ABSENT = "no teacher is attached"


class CascadeRanking(Ranking):
    """A ranking, the number of documents that the teacher was asked about, and why it failed.

    >>> CascadeRanking([Ranked(0, 0.5)], asked=0).failure is None
    True
    """

    asked: int
    failure: str | None

    def __init__(
        self,
        ranked: Iterable[Ranked] = (),
        notes: Iterable[str] = (),
        asked: int = 0,
        failure: str | None = None,
    ) -> None:
        super().__init__(ranked, notes)
        self.asked, self.failure = asked, failure


class _Answer(NamedTuple):
    """A teacher's order of documents, which were in descending order, and raw scores for it.

    ``taught`` has the teacher's scores, by the former places of documents.
    """

    order: NDArray[np.int64]
    raw: NDArray[np.float64]
    taught: dict[int, float]
    failure: str | None = None


class Cascade(Serialisable, Savable):
    """Ranks as a reranker does, and asks a teacher about documents whose order is unsure.

    With r the reranker's raw scores, the order of two documents is unsure if their scores differ by
    less than a threshold t. A document could change the top if it is in such a pair with one of the
    first ``top`` documents:

        asked = { i : |r_i − r_j| < t for some j ≠ i, i or j among the first ``top`` }

    Of these the teacher scores the first ``budget``. They share out the places that they have by
    the teacher's scores, and all others stay where they are. So with t = 0 the order is the
    reranker's, and without a threshold and with a budget for all documents it is the teacher's. A
    teacher that fails, or takes longer than ``timeout``, changes nothing, and the result says so.

    >>> from didyma.text import Cascade, TextReranker
    >>> queries = ["who wrote Emma?", "who wrote Faust?"]
    >>> passages = [["Austen wrote Emma.", "Emma is a novel."], ["It rains.", "Goethe wrote it."]]
    >>> reranker = TextReranker(quick=True).fit(queries, passages, [[1, 0], [0, 1]])
    >>> def teacher(query, documents):
    ...     return [float("Scott" in document) for document in documents]
    >>> ranking = Cascade(reranker, teacher).rank("who wrote it?", ["Who wrote it?", "Scott."])
    >>> ranking[0].text, ranking.asked
    ('Scott.', 2)

    Parameters
    ----------
    reranker : TextReranker or Reranker
        What ranks first; it is fitted already.
    teacher : Teacher, str, object or callable
        As `didyma.text.teachers.resolve` takes it: an address, a command, a cross-encoder, or a
        function of a query and documents.
    budget : int
        Documents of a query that the teacher is asked about at most.
    top : int
        Documents whose order matters.
    threshold : float, optional
        Differences of raw scores below it are unsure. Unless given, all are; `tune` finds one.
    timeout : float, optional
        Seconds to wait for the teacher.

    Attributes
    ----------
    curve_ : CascadeCurve
        How good the order is by how much is asked, if it was tuned. Not saved.

    A model file has the teacher's address or command. Who loads it has to `attach` the teacher,
    since a file must not decide which server is asked or which program is run; until then the order
    is the reranker's.
    """

    curve_: CascadeCurve

    def __init__(
        self,
        reranker: Reranker,
        teacher: TeacherLike,
        budget: int = 10,
        *,
        top: int = 1,
        threshold: float | None = None,
        timeout: float | None = None,
    ) -> None:
        for name, count, least in (("budget", budget, 0), ("top", top, 1)):
            if not is_whole(count) or count < least:
                raise DataError(f"expected {least} or more, found {count!r}", field=name)
        for name, number in (("threshold", threshold), ("timeout", timeout)):
            if number is not None and not 0 <= number < math.inf:
                raise DataError(f"expected a number of 0 or more, found {number!r}", field=name)
        self.reranker, self.budget, self.top = reranker, budget, top
        self.threshold, self.timeout = threshold, timeout
        self.teacher: Teacher | None = None if teacher is None else resolve(teacher)
        self._named: tuple[str, str | None] | None = None  # in a file, and not attached
        self._open = threading.BoundedSemaphore(AT_ONCE)

    def rank(
        self,
        query: Any,
        documents: Iterable[Any],
        top_k: int | None = None,
        scores: ArrayLike | None = None,
        *,
        explain: bool = False,
        then: Sequence[Step] = (),
    ) -> CascadeRanking:
        """Documents from the best to the worst; parameters are those of `Reranker.rank`.

        A document has the score and the raw score of its place in the reranker's order, so that
        they fall from the first to the last, and the teacher's as ``teacher_score``. Explanations
        are of the reranker's own scores. Steps follow the teacher.
        """
        check_top_k(top_k)
        ranking = self.reranker.rank(query, documents, scores=scores, explain=explain)
        raw = np.array([one.raw for one in ranking])
        order, raw, taught, failure = self._ask(query, raw, [one.text for one in ranking])
        ranked = [
            replace(
                ranking[place],
                score=ranking[n].score,
                raw=float(raw[n]),
                teacher_score=taught.get(place),
            )
            for n, place in enumerate(order.tolist())
        ]
        notes = list(ranking.notes)
        if failure is not None:
            notes.append(f"the order is the reranker's, not the teacher's: {failure}")
        elif ranked:
            notes.append(f"teacher: asked about {len(taught)} of {len(ranked)} documents")
        return take_steps(CascadeRanking(ranked, notes, len(taught), failure), then, top_k)

    def predict(self, lists: Lists) -> NDArray[np.float64]:
        """Raw score of each row; higher ranks first within a list.

        Where the teacher fails, they are the reranker's, and a warning counts how often.
        """
        scores = self.reranker.predict(lists)
        groups, texts, failures = lists.groups, lists.texts, list[str]()
        for n, query in enumerate(lists.query_texts):
            rows = groups.rows_of(n)
            rows = rows[np.argsort(-scores[rows], kind="stable")]
            answer = self._ask(query, scores[rows], [texts[row] for row in rows.tolist()])
            scores[rows[answer.order]] = answer.raw
            failures += [] if answer.failure is None else [answer.failure]
        if failures:
            queries = f"{len(failures)} of {len(groups)} queries"
            warn(f"the order of {queries} is the reranker's alone: {failures[0]}", UserWarning)
        return scores

    def explain(
        self, query: Any, documents: Iterable[Any], scores: ArrayLike | None = None
    ) -> list[PassageExplanation]:
        """Why documents have the reranker's scores, in the order of the documents."""
        return self.reranker.explain(query, documents, scores)

    def evaluate(self, lists: Lists, measures: Any = MEASURES) -> Evaluation:
        """Measures of the rankings of judged lists, one value for each query."""
        return measured(self.predict, lists, measures)

    def tune(
        self,
        lists: Lists,
        measure: str | None = None,
        *,
        share: float = 0.95,
        store: ScoreStore | None = None,
        callback: Any = None,
    ) -> Self:
        """Find the threshold that asks the least and keeps a share of what the teacher gains.

        Parameters
        ----------
        lists : Lists
            Judged, or without labels: then the teacher scores all of them, and what counts is how
            near the order comes to the teacher's.
        measure : str, optional
            What to judge by: AP, or nDCG for a teacher's scores.
        share : float
            Of the greatest gain over the reranker, to be kept.
        store : ScoreStore, optional
            Scores that the teacher has given already.
        callback : callable, optional
            Told how many lists are scored, and of how many.

        A gain that is not greater than its standard error counts as none; the threshold is then 0,
        and the teacher is not asked. A failing teacher is an error here.
        """
        if not 0 < share <= 1:
            raise DataError(f"expected a share in (0, 1], found {share!r}", field="share")
        curve = self.curve(lists, measure, store=store, callback=callback)
        self.curve_, self.threshold = curve, curve.threshold(share)
        return self

    def curve(
        self,
        lists: Lists,
        measure: str | None = None,
        *,
        store: ScoreStore | None = None,
        callback: Any = None,
    ) -> CascadeCurve:
        """How good the order is by how much the teacher is asked; parameters are as of `tune`."""
        if self.teacher is None:
            raise DataError(ABSENT, field="teacher")
        full = lists.select(np.arange(len(lists)))
        raw = self.reranker.predict(full)
        return CascadeCurve.of(
            full, raw, self.teacher, self.budget, self.top, measure, store, callback
        )

    def attach(self, teacher: TeacherLike = None) -> Self:
        """Give a loaded model a teacher: another one, or, without an argument, that of its file."""
        if teacher is None:
            if self._named is None:
                raise DataError("the file names none: give one", field="teacher")
            name, dialect = self._named
            self.teacher = resolve(name, dialect)  # type: ignore[arg-type]
        else:
            self.teacher = resolve(teacher)
        return self

    @property
    def teacher_name(self) -> str | None:
        """The teacher's address, command or name; of a loaded model that of its file."""
        if self.teacher is not None:
            return self.teacher.name
        return None if self._named is None else self._named[0]

    @property
    def uses_scores(self) -> bool:
        """Whether the reranker was trained with the first stage's scores."""
        return self.reranker.uses_scores

    @property
    def vector_dimension(self) -> int:
        """Length of the vectors that documents may bring; 0 if they may not."""
        return self.reranker.vector_dimension

    @property
    def schema_(self) -> Schema:
        """What fields of documents are to the reranker."""
        return self.reranker.schema_

    @property
    def gate_(self) -> Verdict | None:
        """The verdict on the reranker."""
        return self.reranker.gate_

    @property
    def calibration_(self) -> Calibration | None:
        """What the reranker's scores mean."""
        return self.reranker.calibration_

    @property
    def trained_on_(self) -> TrainingData | None:
        """By which the reranker knows queries of its training."""
        return self.reranker.trained_on_

    @property
    def language(self) -> str | None:
        """Of the reranker's stop words and stems."""
        return self.reranker.language

    def drift(self, lists: Lists) -> Drift:
        """How far queries are from those of the reranker's training."""
        drift: Drift = self.reranker.drift(lists)  # type: ignore[attr-defined]
        return drift

    def _ask(self, query: str, raw: NDArray[np.float64], texts: list[str]) -> _Answer:
        """Ask about some of the documents of a list, which are in descending order."""
        places = contested(raw, self.top, self.threshold, self.budget)
        unchanged = _Answer(np.arange(len(raw)), raw, {})
        if not len(places):
            return unchanged
        if (teacher := self.teacher) is None:
            name = "" if self._named is None else f": {self._named[0]}"
            return unchanged._replace(failure=f"{ABSENT}{name}")
        if not self._open.acquire(blocking=False):
            return unchanged._replace(failure=f"{AT_ONCE} questions are open already")

        def ask() -> NDArray[np.float64]:
            try:
                return teacher.score(query, [texts[n] for n in places.tolist()], self.timeout)
            finally:
                self._open.release()

        try:
            taught = within(self.timeout, ask)
        except Exception as error:  # whatever a teacher raises, the cheap order stands
            return unchanged._replace(failure=f"{error!s:.200}" or type(error).__name__)
        return _Answer(
            *rearranged(raw, places, taught), dict(zip(places.tolist(), taught.tolist()))
        )

    def state(self) -> State:
        """The reranker, the settings and the teacher's name, as arrays and JSON values."""
        arrays, record = encode(self.reranker)
        named = self._named
        if (teacher := self.teacher) is not None:
            dialect = teacher.dialect if isinstance(teacher, EndpointTeacher) else None
            named = (teacher.name, dialect) if teacher.is_nameable else None
        settings = {name: getattr(self, name) for name in SETTINGS}
        values = {"reranker": record, "teacher": None if named is None else list(named)}
        return over("reranker/", arrays), {**values, **settings}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The cascade that has this state, without its teacher (see `attach`)."""
        arrays, others = dict(arrays), dict(values)
        record, named = others.pop("reranker"), others.pop("teacher")
        if record["class"] not in RERANKERS:
            raise ValueError(f"Cascade.reranker should be a reranker, but is a {record['class']}")
        reranker = decode(record, pop_under("reranker/", arrays))
        if set(others) != set(SETTINGS) or arrays:
            raise ValueError(f"Cascade has {', '.join(SETTINGS)}, found {[*others, *arrays]}")
        cascade = cls(reranker, None, **others)
        if named is not None:
            name, dialect = named
            if not isinstance(name, str) or not (dialect is None or isinstance(dialect, str)):
                raise ValueError("Cascade.teacher should be a name and a dialect")
            cascade._named = name, dialect
        return cascade

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open = threading.BoundedSemaphore(AT_ONCE)
