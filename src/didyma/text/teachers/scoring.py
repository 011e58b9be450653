"""Scores of a teacher for many lists, of which those that are known are not asked for again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.text.teachers.teacher import Teacher

if TYPE_CHECKING:
    from didyma.text.teachers.score_store import ScoreStore


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
