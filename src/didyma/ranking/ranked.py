"""Ranked documents: the result of rerankers, indexes, commands and the server; files of them.

A file whose name ends in ``.jsonl`` has JSON lines, an object for each query: ``qid``, ``query``
and ``passages``, best first, each with ``rank``, ``score``, ``id``, ``text`` and its metadata. One
that ends in ``.tsv`` is a table with a row for each passage, whose texts have one space where there
was a tab or a line end. All others are TREC runs. `didyma.data.texts.reader` reads the first two
again, with the scores as those of a first stage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from didyma.errors import DataError
from didyma.files import PathName, format_suffix, replace_when_done

if TYPE_CHECKING:
    from didyma.ranking.explanation import PassageExplanation

COLUMNS = ("qid", "rank", "score", "probability", "docid", "query", "passage")


class StepEffect(NamedTuple):
    """What a step after ranking (`didyma.text.Diversity` and others) did to a document.

    ``value`` is what documents are in order by after it, and ranks count from 1.

    >>> print(StepEffect("recency", 0.72, 1, 2, "30 days old, × 0.8"))
    recency: 30 days old, × 0.8; rank 1 → 2
    """

    step: str
    value: float
    rank_before: int
    rank: int
    reason: str

    def __str__(self) -> str:
        way = f"rank {self.rank_before} → {self.rank}" if self.rank != self.rank_before else ""
        return "; ".join(filter(None, (f"{self.step}: {self.reason}", way)))


@dataclass(frozen=True)
class Ranked:
    """A document in a ranking.

    Attributes
    ----------
    index : int
        Its place among the documents that were given, or among all passages of an index.
    score : float
        Falls along the ranking, unless steps followed it, in (0, 1) where the reranker is
        calibrated, else ``raw``. It may rest on comparisons with the other documents: only scores
        of one list can be compared.
    id : any
        Its id, if it had one.
    text : str
    metadata : dict
        What else came with it.
    window : (start, stop) or None
        The best part of a long document, in code points.
    raw : float
        The score by which documents are ranked.
    probability : float or None
        The chance that it is relevant. It depends on the query and on this document alone, so that
        it means the same for every query; the ranking, which knows the others, may order documents
        otherwise. None if the reranker has learned from no judgements, or is a `didyma.Reranker`.
    first_score, first_rank : float and int, or None
        Score and rank (from 1) by BM25, if it was found in an index.
    explanation : PassageExplanation or None
        What each feature adds to ``raw``, and which words matched, if that was asked for.
    teacher_score : float or None
        What the teacher of a cascade gave it, if it was asked.
    steps : tuple of StepEffect
        What steps after ranking did to it, in their order.

    >>> Ranked(2, 0.93, id="emma", text="A novel.").text
    'A novel.'
    """

    index: int
    score: float
    id: Any = None
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    raw: float = 0.0
    probability: float | None = None
    first_score: float | None = None
    first_rank: int | None = None
    explanation: PassageExplanation | None = None
    teacher_score: float | None = None
    steps: tuple[StepEffect, ...] = ()

    @property
    def value(self) -> float:
        """What ranks it: its raw score, or its value after the last step."""
        return self.steps[-1].value if self.steps else self.raw


class Ranking(list[Ranked]):
    """Documents from the best to the worst; ``notes`` say what the request lacked.

    >>> ranking = Ranking([Ranked(0, 0.5)], ("clicks: missing in 1 of 1 documents",))
    >>> len(ranking), ranking.notes
    (1, ('clicks: missing in 1 of 1 documents',))
    """

    notes: tuple[str, ...]

    def __init__(self, ranked: Iterable[Ranked] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(ranked)
        self.notes = tuple(notes)

    def of(self, ranked: Iterable[Ranked]) -> Self:
        """Other documents with all else that is known of this ranking."""
        changed = copy(self)
        changed[:] = ranked
        return changed


class PassageRanking(NamedTuple):
    """A query, and its passages from the best to the worst."""

    qid: str
    query: str
    passages: Sequence[Ranked]

    def names(self) -> list[str]:
        """The id of each passage; one without is called by the query and its place, from 1."""
        return [
            f"{self.qid}-{one.index + 1}" if one.id is None else str(one.id)
            for one in self.passages
        ]

    def cut(self, top_k: int | None = None, threshold: float | None = None) -> PassageRanking:
        """The same without passages beyond the first, or with probabilities below a threshold."""
        if threshold is None:
            return self._replace(passages=self.passages[:top_k])
        best = []
        for one in self.passages:
            if one.probability is None:
                raise DataError(
                    "expected probabilities, which a reranker has that learned from judgements",
                    field="threshold",
                )
            if one.probability >= threshold:
                best.append(one)
        return self._replace(passages=best[:top_k])


def records(rankings: Iterable[PassageRanking]) -> Iterator[dict[str, Any]]:
    """An object for each query, ready for JSON."""
    for ranking in rankings:
        passages = [
            {
                "rank": rank,
                "score": one.score,
                **({} if one.probability is None else {"probability": one.probability}),
                "id": name,
                "text": one.text,
                **({"steps": [step._asdict() for step in one.steps]} if one.steps else {}),
                **one.metadata,
            }
            for rank, (one, name) in enumerate(zip(ranking.passages, ranking.names()), 1)
        ]
        yield {"qid": ranking.qid, "query": ranking.query, "passages": passages}


def write(rankings: Iterable[PassageRanking], path: PathName) -> None:
    """Write rankings in the format that the name tells; see above."""
    suffix = format_suffix(path)
    if suffix == ".jsonl":
        with replace_when_done(path) as file:
            for record in records(rankings):
                file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
    elif suffix == ".tsv":
        with replace_when_done(path) as file:
            write_table(rankings, file)
    else:
        from didyma.data.trec import write_run

        rows = [
            (ranking.qid, name, one.value)
            for ranking in rankings
            for one, name in zip(ranking.passages, ranking.names())
        ]
        qid, docid, scores = zip(*rows) if rows else ((), (), ())
        write_run(qid, docid, scores, path)


def write_table(
    rankings: Iterable[PassageRanking], file: IO[str], columns: Sequence[str] = COLUMNS
) -> None:
    """Write a header and a line for each passage; without ``probability`` if there is none."""
    rankings = list(rankings)
    if all(one.probability is None for ranking in rankings for one in ranking.passages):
        columns = [name for name in columns if name != "probability"]
    file.write("\t".join(columns) + "\n")
    for ranking in rankings:
        for rank, (one, name) in enumerate(zip(ranking.passages, ranking.names()), 1):
            chance = "" if one.probability is None else f"{one.probability:.6g}"
            scores = f"{one.score:.6g}", chance
            row = (ranking.qid, rank, *scores, name, ranking.query, one.text)
            cells = (dict(zip(COLUMNS, row))[column] for column in columns)
            file.write("\t".join(" ".join(str(cell).split()) for cell in cells) + "\n")
