"""The interface of steps after ranking, and rankings after several of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.ranking.ranked import Ranked, Ranking, StepEffect
from didyma.values import is_whole

Values: TypeAlias = NDArray[np.float64]
R = TypeVar("R", bound=Ranking)


class Step(ABC):
    """A step after ranking: it turns the values by which documents are ordered into others."""

    name: ClassVar[str]
    is_last: ClassVar[bool] = False  # whether its values mean nothing to another step

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Fields of documents that it looks at."""

    @abstractmethod
    def values(
        self, documents: Sequence[Ranked], values: Values, top_k: int
    ) -> tuple[Values, list[str]]:
        """The value of each document, and why it is that; only the best ``top_k`` matter."""


def take_steps(ranking: R, then: Sequence[Step], top_k: int | None = None) -> R:
    """The best documents of a ranking after some steps, each with what they did (`Ranked.steps`).

    The value of a document is its calibrated score. Scores that are not calibrated, such as those
    of BM25, count as shares of the greatest, and where some are below 0, all are first raised by as
    much. Each step changes the values, and documents are put in order by them; of equal ones the
    first stays first. Scores and probabilities of the model stay what they were.

    >>> from didyma.text import Boost
    >>> found = Ranking(
    ...     [Ranked(0, 0.5, raw=1.0), Ranked(1, 0.45, raw=0.9, metadata={"kind": "news"})]
    ... )
    >>> first, second = take_steps(found, [Boost("kind", "news", 0.2)])
    >>> first.index, first.score, first.steps[0].value
    (1, 0.45, 0.54)
    >>> print(first.steps[0])
    boost: kind is news, × 1.2; rank 2 → 1
    """
    steps = _checked(then)
    if not steps:
        return ranking.of(ranking[:top_k])
    documents, values = list(ranking), relevances(ranking)
    for n, step in enumerate(steps):
        wanted = len(documents) if top_k is None or n < len(steps) - 1 else top_k
        values, reasons = step.values(documents, values, wanted)
        order = np.argsort(-values, kind="stable").tolist()
        documents = [
            replace(
                documents[old],
                steps=(
                    *documents[old].steps,
                    StepEffect(step.name, float(values[old]), old + 1, new + 1, reasons[old]),
                ),
            )
            for new, old in enumerate(order)
        ]
        values = values[order]
    answer = ranking.of(documents[:top_k])
    answer.notes += tuple(_missing(ranking, steps))
    return answer


def _missing(ranking: Ranking, steps: Sequence[Step]) -> Iterator[str]:
    """Fields that no document has, if there are documents."""
    for step in steps if ranking else ():
        for field in step.fields:
            if all(one.metadata.get(field) is None for one in ranking):
                yield f"{step.name}: no document has {field!s:.60}"


def relevances(ranking: Sequence[Ranked]) -> Values:
    """Calibrated scores, or others as shares of the greatest.

    >>> relevances([Ranked(0, 8.0, raw=8.0), Ranked(1, 6.0, raw=6.0), Ranked(2, 2.0, raw=2.0)])
    array([1.  , 0.75, 0.25])
    """
    scores = np.array([one.score for one in ranking])
    if not len(scores) or any(one.score != one.raw for one in ranking):
        return scores
    scores -= min(scores.min(), 0.0)
    greatest = scores.max()
    return scores / greatest if greatest else np.ones(len(scores))


def _checked(then: Sequence[Step]) -> list[Step]:
    """Steps, of which only the last may be one that must be."""
    if not isinstance(then, Sequence) or not all(isinstance(step, Step) for step in then):
        raise DataError(f"expected steps such as Diversity(0.3), found {then!r:.60}", field="then")
    for step in then[:-1]:
        if step.is_last:
            raise DataError(f"expected {step.name} as the last step", field="then")
    return list(then)


def check_top_k(top_k: int | None) -> None:
    """Refuse what is no number of documents."""
    if top_k is not None and not (is_whole(top_k) and top_k >= 0):
        raise DataError(f"expected a number of documents, found {top_k!r}", field="top_k")


def check_weight(weight: float) -> None:
    """Refuse what is not in (0, 1]."""
    if not 0 < weight <= 1:
        raise DataError(f"expected a number in (0, 1], found {weight!r}", field="weight")


def in_document(document: Ranked, field: str) -> str:
    """Where a field is wrong, for messages."""
    return f"document {document.index}, {field}"
