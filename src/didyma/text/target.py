"""What labels ask for: grades to learn from, a loss, and the measure to choose by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Groups
from didyma.errors import DataError

__all__ = ["Target"]

GREATEST_GRADE = 10  # whole numbers beyond are a teacher's scores
LEVELS = 4  # grades above 0 that a teacher's scores become


@dataclass(frozen=True, eq=False)
class Target:
    """Labels as a ranker learns from them.

    Whole numbers up to 10 are grades, negative ones 0; a passage is relevant from 1 on. Other
    numbers are a teacher's scores t, such as those of a large model, and become grades within each
    list: with r the range of t in the list, or its deviation over all lists where that is more,

        grade = round(4 (t − min t) / r)

    so that a passage which the teacher puts far above all others stands alone, scores that lie
    close together count as equal, and a list that the teacher finds alike teaches nothing. What is
    learned is then the ranking by 1 − NDCG with linear gains, whose value is the share of the
    teacher's gains that the student's order collects.

    Attributes
    ----------
    kind : {"binary", "graded", "teacher"}
    grades : array of shape (n_rows,), whole numbers
    relevance : array of shape (n_rows,)
        The share of relevance that calibration aims at, in [0, 1].
    loss, measure : str

    >>> groups = Groups.from_lists([3])
    >>> Target.of(np.array([-8.5, -8.0, 3.0]), groups).grades.tolist()
    [0.0, 0.0, 4.0]
    """

    kind: str
    grades: NDArray[np.float64]
    relevance: NDArray[np.float64]
    loss: str
    measure: str

    @classmethod
    def of(cls, labels: NDArray[np.float64], groups: Groups, measure: str | None = None) -> Target:
        """What these labels ask for, with a measure of the user's own if there is one."""
        if not len(labels):
            raise DataError("expected judged passages, found none", field="labels")
        is_whole = bool((labels == np.floor(labels)).all())
        if is_whole and np.abs(labels).max() <= GREATEST_GRADE:
            grades = np.maximum(labels, 0.0)
            kind = "graded" if grades.max() > 1 else "binary"
            chosen = measure or "AP"
            is_ndcg = chosen.lower().startswith("ndcg")
            return cls(
                kind, grades, (grades >= 1).astype(float), "ndcg" if is_ndcg else "ap", chosen
            )
        # By a power of two, which changes no digit: squares of what was given may be infinite.
        scores = np.ldexp(labels, -int(np.frexp(np.abs(labels).max())[1]))
        low, high = scores.min(), scores.max()
        within_unit = labels.min() >= 0 and labels.max() <= 1
        share = labels if within_unit else (scores - low) / max(high - low, np.finfo(float).tiny)
        return cls(
            "teacher", _graded(scores, groups), share, "ndcg(gain=linear)", measure or "nDCG"
        )


def _graded(scores: NDArray[np.float64], groups: Groups) -> NDArray[np.float64]:
    least, most = np.full(len(groups), np.inf), np.full(len(groups), -np.inf)
    np.minimum.at(least, groups.codes, scores)
    np.maximum.at(most, groups.codes, scores)
    span = np.maximum((most - least)[groups.codes], scores.std())
    distance = scores - least[groups.codes]
    return np.rint(LEVELS * np.divide(distance, span, out=np.zeros_like(span), where=span > 0))
