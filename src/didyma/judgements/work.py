"""Which documents to judge next: those whose label would change the model or the verdict most."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists

if TYPE_CHECKING:
    from didyma.text.reranker import Reranker

Vector: TypeAlias = NDArray[np.float64]

UNKNOWN = 0.5  # the chance of relevance of a model that tells none
STRANGE = 0.1  # of what moves scores, from which on a document is unlike training


@dataclass(frozen=True)
class WorkItem:
    """A document to judge for a query, what its label is worth, and why.

    >>> WorkItem("who rang?", "d7", "They rang.", 0.25, 0.4, "uncertain top: rank 1").value
    0.25
    """

    query: str
    document: str
    text: str
    value: float
    probability: float
    why: str

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def work_list(
    reranker: Reranker,
    lists: Lists,
    other: Reranker | None = None,
    judged: Collection[tuple[str, str]] = (),
    top: int = 50,
) -> list[WorkItem]:
    r"""The documents to judge, the most valuable first.

    A label of 1 at rank r adds the gain d(r) = 1 / log₂(1 + r) to a DCG. With p the model's chance
    of relevance, the label's share in the doubt about the model's own DCG, and about its difference
    from another order, has the deviation

        √(p (1 − p)) · d(r)      or      √(p (1 − p)) · |d(r) − d(r')|

    The value is the sum of both times 1 + s, with s the share of the features, by importance, whose
    values training has not seen (`Ranges`). The other order is that of ``other``, such as the live
    model, or else the one that reranking was compared with (`Reranker.baseline`). ``judged`` are
    pairs of query and document that are left out.

    >>> from didyma import TextReranker
    >>> queries, passages = ["where is it?", "who is it?"], [["Here.", "There."], ["Me.", "I."]]
    >>> lists = Lists.of_texts(queries, passages, [[1, 0], [0, 1]])
    >>> items = work_list(TextReranker(quick=True).fit(lists), lists, judged={("who is it?", "I.")})
    >>> len(items)
    3
    """
    raw, chances, unseen = _scores(reranker, lists)
    before = reranker.baseline(lists)[1] if other is None else other.predict(lists)
    against = "the order before" if other is None else "the other model"
    groups, texts = lists.groups, lists.texts
    documents = texts if lists.docid is None else [str(name) for name in lists.docid.tolist()]
    ranks, ranks_before = _ranks(raw, lists), _ranks(before, lists)
    deviation = np.sqrt(chances * (1 - chances))
    doubt = (1 + unseen) * deviation * _gain(ranks)
    difference = (1 + unseen) * deviation * np.abs(_gain(ranks) - _gain(ranks_before))
    queries, done = lists.query_texts, set(judged)
    items = list[WorkItem]()
    for row in np.argsort(-(doubt + difference), kind="stable").tolist():
        query = queries[int(groups.codes[row])]
        if (query, documents[row]) in done or len(items) == top:
            continue
        place = f"rank {ranks[row]}, {ranks_before[row]} by {against}"
        why = "orders disagree" if difference[row] > doubt[row] / 2 else "uncertain top"
        why = "unlike training" if unseen[row] > STRANGE else why
        value, chance = float(doubt[row] + difference[row]), float(chances[row])
        items.append(WorkItem(query, documents[row], texts[row], value, chance, f"{why}: {place}"))
    return items


def _scores(reranker: Reranker, lists: Lists) -> tuple[Vector, Vector, Vector]:
    """Of each row the raw score, the chance of relevance, and the share of values never seen."""
    windowed, _, raw, best = reranker._score(lists)
    chances = reranker._probability(windowed, raw)
    chances = np.full(len(raw), UNKNOWN) if chances is None else chances
    ranges = getattr(reranker, "ranges_", None)
    if ranges is None:
        return raw, chances, np.zeros(len(raw))
    names = list(reranker.featuriser.names)
    columns = np.array([names.index(name) for name in ranges.features], np.int64)
    values = windowed.X[best][:, columns]
    edges = ranges.edges[: len(ranges.features)]
    outside = (values < edges[:, 0]) | (values > edges[:, -1])
    return raw, chances, outside @ ranges.importance


def _ranks(scores: Vector, lists: Lists) -> NDArray[np.int64]:
    """The rank of each row within its list, from 1 on."""
    groups = lists.groups
    order = np.lexsort((-scores, groups.codes))
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(len(scores)) - groups.starts[groups.codes[order]] + 1
    return ranks


def _gain(ranks: NDArray[np.int64]) -> Vector:
    return np.asarray(1 / np.log2(1 + ranks))
