"""Rankings of passages, as files for people and for other programs.

A name that ends in ``.jsonl`` is JSON lines, an object for each query: ``qid``, ``query`` and
``passages``, best first, each with ``rank``, ``score``, ``id``, ``text`` and what else is known of
it. One that ends in ``.tsv`` is a table with a row for each passage, whose texts have one space
where there was a tab or a line end. All others are TREC runs. `didyma.data.texts.reader` reads the
first two again, with the scores as those of a first stage.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, Protocol

from didyma.data.trec import write_run
from didyma.files import PathName, format_suffix, replace_when_done

__all__ = ["PassageRanking", "RankedText", "records", "write", "write_table"]

COLUMNS = ("qid", "rank", "score", "docid", "query", "passage")


class RankedText(Protocol):
    """A passage in a ranking, such as a `didyma.ranking.ranked.Ranked`."""

    @property
    def index(self) -> int:
        """Its place among the candidates."""
        ...

    @property
    def score(self) -> float:
        """Its score."""
        ...

    @property
    def raw(self) -> float:
        """The score by which passages are ranked."""
        ...

    @property
    def id(self) -> Any:
        """Its id, or None."""
        ...

    @property
    def text(self) -> str:
        """Its text."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What else is known of it."""
        ...


class PassageRanking(NamedTuple):
    """A query, and its passages from the best to the worst."""

    qid: str
    query: str
    passages: Sequence[RankedText]

    def names(self) -> list[str]:
        """The id of each passage; one without is called by the query and its place, from 1."""
        return [
            f"{self.qid}-{own.index + 1}" if own.id is None else str(own.id)
            for own in self.passages
        ]

    def cut(self, top_k: int | None = None, threshold: float | None = None) -> PassageRanking:
        """The same without passages beyond the first, or with scores below a threshold."""
        kept = [own for own in self.passages if threshold is None or own.score >= threshold]
        return self._replace(passages=kept[:top_k])


def records(rankings: Iterable[PassageRanking]) -> Iterator[dict[str, Any]]:
    """An object for each query, ready for JSON."""
    for ranking in rankings:
        passages = [
            {"rank": rank, "score": own.score, "id": name, "text": own.text, **own.metadata}
            for rank, (own, name) in enumerate(zip(ranking.passages, ranking.names()), 1)
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
        found = [
            (ranking.qid, name, own.raw)
            for ranking in rankings
            for own, name in zip(ranking.passages, ranking.names())
        ]
        qid, docid, scores = zip(*found) if found else ((), (), ())
        write_run(qid, docid, scores, path)


def write_table(
    rankings: Iterable[PassageRanking], file: IO[str], columns: Sequence[str] = COLUMNS
) -> None:
    """Write a header and a line for each passage."""
    file.write("\t".join(columns) + "\n")
    for ranking in rankings:
        for rank, (own, name) in enumerate(zip(ranking.passages, ranking.names()), 1):
            known = (ranking.qid, rank, f"{own.score:.6g}", name, ranking.query, own.text)
            cells = (dict(zip(COLUMNS, known))[column] for column in columns)
            file.write("\t".join(" ".join(str(cell).split()) for cell in cells) + "\n")
