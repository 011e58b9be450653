"""The interface of search engines: retrieve candidates, then rerank them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.passage import Passage
from didyma.data.schema import Schema
from didyma.errors import DataError
from didyma.ranking.explanation import MatchedSpan
from didyma.ranking.ranked import Ranked, Ranking
from didyma.text.features.part import RRF_CONSTANT
from didyma.text.features.reading import Reader, Reading
from didyma.text.spans import matched_spans
from didyma.text.steps.step import Step, take_steps
from didyma.values import is_whole

if TYPE_CHECKING:
    from didyma.text.cascade import Cascade
    from didyma.text.reranker import Reranker

CANDIDATES = 100  # passages that a reranker looks at


class EngineError(DataError):
    """A search engine that cannot be asked, or answers with an error."""


class Retrieved(NamedTuple):
    """Passages that a query finds, best first; ``scores`` are those of the order.

    ``stages`` has the scores of each search by name, such as ``bm25`` and ``dense``; NaN is a
    passage that it did not score. ``places`` number the passages, if the engine does.
    """

    passages: list[Passage]
    scores: NDArray[np.float64]
    stages: dict[str, NDArray[np.float64]]
    places: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls, rows: Iterable[tuple[Mapping[str, Any], float]], stage: str, **roles: str | None
    ) -> Self:
        """Records with the score of the one search there is.

        ``roles`` are the fields with passage and docid, None where their names say so.
        """
        named = {role: field for role, field in roles.items() if field is not None}
        scored = [(Passage.of(record, named), score) for record, score in rows]
        scores = np.array([score for _, score in scored], np.float64)
        return cls([passage for passage, _ in scored], scores, {stage: scores})


class SearchEngine(ABC):
    """An engine that has passages and finds candidates among them.

    ``stages`` are the names of its scores, the first of which a reranker that was trained with one
    score is given.

    >>> class Engine(SearchEngine):
    ...     stages = ("matches",)
    ...
    ...     def retrieve(self, query, k):
    ...         texts = ["Jane Austen wrote Emma.", "It is late."]
    ...         counts = [sum(word in text for word in query.split()) for text in texts]
    ...         found = sorted(zip(counts, texts), reverse=True)[:k]
    ...         return Retrieved.of((({"text": text}, count) for count, text in found), "matches")
    >>> [found.text for found in Engine().search("who wrote Emma", k=1)]
    ['Jane Austen wrote Emma.']
    """

    stages: tuple[str, ...] = ("score",)

    @property
    def title(self) -> str:
        """What its order is called."""
        return " and ".join(self.stages)

    @abstractmethod
    def retrieve(self, query: str, k: int) -> Retrieved:
        """The k best passages by each of its searches, with the scores of all."""

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        reranker: Reranker | Cascade | None = None,
        candidates: int = CANDIDATES,
        explain: bool = False,
        then: Sequence[Step] = (),
    ) -> Ranking:
        """The k best passages for a query, best first.

        Parameters
        ----------
        query : str
            What is asked.
        k : int
            How many passages to return, at most.
        reranker : Reranker, optional
            What ranks them, such as a `didyma.TextReranker`; it is given the first stage's scores
            if it was trained with such, and the fields that it knows, among which are the scores
            of the engine (``stages``). Without one the order is the engine's.
        candidates : int
            How many of each search's best the reranker looks at; never fewer than ``k``.
        explain : bool
            Say what makes the reranker's scores.
        then : sequence of Step
            What follows ranking, as of `didyma.Reranker.rank`.
        """
        if not isinstance(query, str):
            raise DataError(f"expected a text, found {query!r:.40}", field="query")
        for name, value in (("k", k), ("candidates", candidates)):
            if not is_whole(value) or value < 1:
                raise DataError(f"expected a positive number, found {value!r:.40}", field=name)
        whole = reranker is not None or bool(then)  # look at more than are returned
        retrieved = self.retrieve(query, max(k, candidates) if whole else k)
        ranked = _ranked(retrieved)
        if reranker is None or not ranked:
            return take_steps(Ranking(ranked), then, k)
        first = retrieved.stages[self.stages[0]] if reranker.uses_scores else None
        documents = _documents(retrieved, reranker)
        again = reranker.rank(query, documents, None if then else k, first, explain=explain)
        reranked = again.of(_from_engine(one, ranked[one.index]) for one in again)
        return take_steps(reranked, then, k)

    def spans(self, query: str, texts: Sequence[str]) -> list[list[MatchedSpan]]:
        """For each text the words that the query has as well."""
        reading = self._read(Lists.of_texts([query], [list(texts)]))
        return [matched_spans(reading, row) for row in range(len(texts))]

    def _read(self, lists: Lists) -> Reading:
        return Reader.fit(lists).read(lists)


def fuse(rankings: Iterable[NDArray[np.int64]], n: int) -> NDArray[np.float64]:
    """Reciprocal rank fusion of rankings of n passages, Σ 1 / (60 + rank); 0 if none has one."""
    fused = np.zeros(n)
    for best in rankings:
        fused[best] += 1 / (RRF_CONSTANT + 1 + np.arange(len(best)))
    return fused


def _ranked(retrieved: Retrieved) -> list[Ranked]:
    """Passages in the order of the engine."""
    places = range(len(retrieved.passages)) if retrieved.places is None else retrieved.places
    return [
        Ranked(
            index=int(place),
            score=score,
            id=None if passage.id is None else str(passage.id),
            text=passage.text,
            metadata=passage.metadata,
            raw=score,
            first_score=score,
            first_rank=rank,
        )
        for rank, (passage, score, place) in enumerate(
            zip(retrieved.passages, retrieved.scores.tolist(), places), 1
        )
    ]


def _from_engine(reranked: Ranked, before: Ranked) -> Ranked:
    """A result of the reranker with what the engine says of it."""
    return replace(
        reranked,
        index=before.index,
        id=before.id,
        metadata=before.metadata,
        first_score=before.first_score,
        first_rank=before.first_rank,
    )


def _documents(retrieved: Retrieved, reranker: Reranker | Cascade) -> list[Passage]:
    """Passages with what a reranker knows of their fields, and scores of stages among these."""
    schema: Schema = getattr(reranker, "schema_", Schema())
    names = {field.name for field in schema.fields}
    scores = {name: stage for name, stage in retrieved.stages.items() if name in names}
    return [
        passage._replace(
            metadata={name: value for name, value in passage.metadata.items() if name in names}
            | {name: float(stage[n]) for name, stage in scores.items() if stage[n] == stage[n]}
        )
        for n, passage in enumerate(retrieved.passages)
    ]
