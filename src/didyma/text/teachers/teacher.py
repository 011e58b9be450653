"""The interface of teachers, which score documents for a query."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.execution import check_interruption
from didyma.lazy import cached_property

if TYPE_CHECKING:
    from didyma.text.teachers.score_store import ScoreStore


PROBES = (
    "who wrote the novel Emma?",
    ["Jane Austen wrote Emma in 1815.", "Emma is a name.", "The river rises in spring."],
)


class Teacher(ABC):
    """A function from a query and documents to scores, of which the highest is the best.

    A subclass has a ``name`` and says what the scores are; the cut into batches and all checks are
    done here. Documents are scored one by one, in any company: a teacher is asked about some of a
    list now, and about others later.

    >>> class Shortest(Teacher):
    ...     name = "shortest"
    ...     def _score(self, query, documents, timeout):
    ...         return [-len(document) for document in documents]
    >>> Shortest().score("which?", ["this one", "that"])
    array([-8., -4.])

    Attributes
    ----------
    name : str
        What `resolve` makes it from, or a description of the object that it wraps.
    is_nameable : bool
        Whether the name says all that it takes to have it again.
    """

    name: str
    is_nameable: ClassVar[bool] = False
    batch_size: int = 1000

    @abstractmethod
    def _score(self, query: str, documents: list[str], timeout: float | None) -> Any:
        """The scores of some documents; give up, if that is possible, after so many seconds."""

    def score(
        self, query: str, documents: Sequence[str], timeout: float | None = None
    ) -> NDArray[np.float64]:
        """The score of each document; shape (n_documents,).

        ``timeout`` are seconds after which whoever asks waits no longer.
        """
        scores = [np.zeros(0)]
        for start in range(0, len(documents), self.batch_size):
            check_interruption()
            batch = list(documents[start : start + self.batch_size])
            scores.append(self._checked(self._score(query, batch, timeout), len(batch)))
        return np.concatenate(scores)

    @cached_property
    def fingerprint(self) -> NDArray[np.float64]:
        """Its scores of a few fixed texts, by which it is known again."""
        return self.score(*PROBES)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _checked(self, answer: Any, n: int) -> NDArray[np.float64]:
        """What a model has answered, as numbers."""
        if hasattr(answer, "detach"):  # a tensor, perhaps of another device
            answer = answer.detach().cpu()
        try:
            scores = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            raise self._error(f"expected {n} numbers, found {answer!r:.80}") from None
        scores = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
        if scores.shape != (n,):
            raise self._error(f"expected {n} scores, one a document, found shape {scores.shape}")
        if not np.isfinite(scores).all():
            place = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise self._error(f"expected finite scores, found {scores[place]} for document {place}")
        return scores

    def _error(self, problem: str) -> DataError:
        return DataError(problem, field=f"teacher {self.name:.80}")


T = TypeVar("T")


def within(seconds: float | None, function: Callable[[], T]) -> T:
    """What a function returns or raises; TimeoutError if that takes longer than so many seconds.

    A function that is waited for no longer runs to its end on a thread that ends with the process.

    >>> within(60.0, lambda: 7)
    7
    """
    if seconds is None:
        return function()
    answer: dict[str, Any] = {}

    def run() -> None:
        try:
            answer["value"] = function()
        except BaseException as error:
            answer["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in answer:
        raise answer["error"]
    if "value" not in answer:
        raise TimeoutError(f"no answer after {seconds:g} s")
    value: T = answer["value"]
    return value


def score_rows(
    teacher: Teacher,
    lists: Lists,
    is_asked: NDArray[np.bool_],
    store: ScoreStore | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> NDArray[np.float64]:
    """The teacher's score of each row that is asked about; NaN for the others.

    What the store has is not asked for again, and new scores are in it after each list.
    ``callback`` is told how many lists are done, and how many there are.

    >>> from didyma.text.teachers import resolve
    >>> teacher = resolve(lambda query, documents: [len(document) for document in documents])
    >>> lists = Lists.of_texts(["a", "b"], [["x", "yy"], ["zzz"]])
    >>> score_rows(teacher, lists, np.array([False, True, True]))
    array([nan,  2.,  3.])
    """
    scores, texts, groups = np.full(len(lists), np.nan), lists.texts, lists.groups
    for n, query in enumerate(lists.query_texts):
        rows = groups.rows_of(n)
        rows = rows[is_asked[rows]]
        documents = [texts[row] for row in rows.tolist()]
        scores[rows] = (
            teacher.score(query, documents)
            if store is None
            else store.score(teacher, query, documents)
        )
        if callback is not None:
            callback(n + 1, len(groups))
    return scores
