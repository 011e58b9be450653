"""TREC runs (``qid Q0 docid rank score tag``) and judgements (``qid 0 docid relevance``).

Shorter lines are read too: runs of ``qid docid rank`` or ``qid docid rank score``, and judgements
of ``qid docid relevance``, also below a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.text_columns import TextBlock, distinct, first_repeated, text_array
from didyma.errors import DataError
from didyma.files import PathName, replace_when_done

__all__ = [
    "Qrels",
    "Run",
    "join",
    "read_qrels",
    "read_run",
    "run_lines",
    "write_qrels",
    "write_run",
]

RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
SHORT_RUNS = (("qid", "docid", "rank"), ("qid", "docid", "rank", "score"))
QRELS = ("qid", "iteration", "docid", "relevance")
SHORT_QRELS = ("qid", "docid", "relevance")

_WORD = re.compile(r"\S+", re.ASCII)


@dataclass(frozen=True, eq=False)
class Run:
    """The documents that one system retrieved and their scores, in the order of its file."""

    qid: NDArray[Any]
    docid: NDArray[Any]
    score: NDArray[np.float64]
    tag: str

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, eq=False)
class Qrels:
    """Relevance judgements, one row for each judged document."""

    qid: NDArray[Any]
    docid: NDArray[Any]
    relevance: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.relevance)


def read_run(path: PathName) -> Run:
    """Read a TREC run, plain or gzip. The tag is that of the first line, or the name of the file.

    Ranks are ignored, unless there is nothing else: the score is then −rank.
    """
    source = TextBlock.open(path)
    columns = _columns(source, RUN, *SHORT_RUNS)
    qid, docid = _pairs(source, columns)
    tag = Path(path).name
    if "tag" in columns:
        tag = str(source.texts(columns["tag"][:1], "tag")[0])
    if "score" in columns:
        return Run(qid, docid, source.numbers(columns["score"], "score"), tag)
    return Run(qid, docid, -source.numbers(columns["rank"], "rank"), tag)


def read_qrels(path: PathName) -> Qrels:
    """Read TREC relevance judgements, plain or gzip."""
    source = TextBlock.open(path)
    columns = _columns(_without_header(source), QRELS, SHORT_QRELS)
    qid, docid = _pairs(source, columns)
    relevance = source.numbers(columns["relevance"], "relevance")
    if np.any(wrong := (relevance != np.floor(relevance)) | (np.abs(relevance) >= 2**53)):
        start = int(columns["relevance"][wrong.argmax(), 0])
        word = source.word(start).decode()
        source.fail(start, "relevance", f"expected an integer, found {word!r}")
    return Qrels(qid, docid, relevance.astype(np.int64))


def write_run(
    qid: ArrayLike, docid: ArrayLike, score: ArrayLike, path: PathName, tag: str = "didyma"
) -> None:
    """Write a TREC run; see `run_lines`."""
    lines = run_lines(qid, docid, score, path, tag)
    with replace_when_done(path) as file:
        file.writelines(lines)


def run_lines(
    qid: ArrayLike, docid: ArrayLike, score: ArrayLike, path: PathName, tag: str = "didyma"
) -> Iterator[str]:
    """The lines of a TREC run: queries as they come, documents by falling score, ranks from 1.

    Documents with the same score stand by falling document id, as trec_eval orders them. ``path``
    is what errors name.
    """
    names, documents = np.asarray(qid).astype(str), np.asarray(docid).astype(str)
    scores = np.asarray(score, np.float64)
    if not names.shape == documents.shape == scores.shape == (scores.size,):
        shapes = f"{names.shape}, {documents.shape} and {scores.shape}"
        raise DataError(f"expected columns of one length, found shapes {shapes}", path=path)
    if not np.isfinite(scores).all():
        raise DataError("expected finite numbers only", path=path, field="score")
    groups = Groups.from_qid(names)
    _check_words(path, qid=groups.names, docid=documents, tag=[tag])
    alphabetical = np.unique(documents, return_inverse=True)[1]
    order = np.lexsort((-alphabetical, -scores, groups.codes))
    rank = np.arange(1, len(order) + 1) - np.repeat(groups.starts[:-1], groups.sizes)
    columns = (names[order], documents[order], rank, scores[order])
    rows = zip(*(column.tolist() for column in columns))
    return (f"{name} Q0 {document} {r} {s!r} {tag}\n" for name, document, r, s in rows)


def write_qrels(qrels: Qrels, path: PathName) -> None:
    """Write TREC relevance judgements."""
    _check_words(path, qid=qrels.qid, docid=qrels.docid)
    with replace_when_done(path) as file:
        for row in zip(qrels.qid.tolist(), qrels.docid.tolist(), qrels.relevance.tolist()):
            file.write("{} 0 {} {}\n".format(*row))


def _check_words(path: PathName, **columns: Iterable[str]) -> None:
    for field, texts in columns.items():
        for text in texts:
            if not _WORD.fullmatch(text):
                raise DataError(
                    f"expected text without white space, found {str(text)!r}",
                    path=path,
                    field=field,
                )


def join(runs: Sequence[Run], qrels: Qrels, *, missing: float | None = None) -> Lists:
    """Judged results with one feature for each run: the score it gave, named by its tag.

    The rows of a query in ``qrels`` are the documents that any run retrieved for it; those without
    a judgement have relevance 0. Where a run did not retrieve a document, its score is ``missing``,
    by default the least that the run gave for that query (or for any, where it has none).

    >>> a = Run(np.array(["q", "q"]), np.array(["d1", "d2"]), np.array([3.0, 2.0]), "a")
    >>> b = Run(np.array(["q"]), np.array(["d3"]), np.array([9.0]), "b")
    >>> data = join([a, b], Qrels(np.array(["q"]), np.array(["d3"]), np.array([1])))
    >>> data.docid.tolist(), data.X.tolist(), data.y.tolist()
    (['d1', 'd2', 'd3'], [[3.0, 9.0], [2.0, 9.0], [2.0, 9.0]], [0.0, 0.0, 1.0])
    """
    qid, docid, X = score_columns(runs)
    # Judged queries come first, so theirs are the lowest numbers.
    query, first = distinct(np.concatenate([qrels.qid, qid]))
    n_judged, query = int(np.count_nonzero(first < len(qrels))), query[len(qrels) :]
    rows = np.flatnonzero(query < n_judged)
    if not len(rows):
        raise DataError("expected runs with documents of judged queries, found none")
    rows = rows[np.argsort(query[rows], kind="stable")]
    qid, docid, X, query = qid[rows], docid[rows], X[rows], query[rows]
    for run, scores in zip(runs, X.T):
        absent = np.isnan(scores)
        least = np.full(n_judged, np.inf)
        np.fmin.at(least, query, scores)
        least[np.isinf(least)] = run.score.min(initial=np.inf)
        scores[absent] = least[query[absent]] if missing is None else missing
    number, _ = distinct(np.concatenate([qid, qrels.qid]), np.concatenate([docid, qrels.docid]))
    judged = number[len(rows) :]
    retrieved = judged < len(rows)
    y = np.zeros(len(rows))
    y[judged[retrieved]] = qrels.relevance[retrieved]
    return Lists(X, y, qid, docid, tuple(run.tag for run in runs))


def score_columns(
    runs: Sequence[Run],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Query and document of the pairs that any run has, and the score by each run, NaN for none."""
    if (again := first_repeated([run.tag for run in runs])) is not None:
        raise DataError(f"expected runs with different tags, found {again!r} again", field="tag")
    qid, docid = (
        np.concatenate([text_array([]), *(getattr(run, name) for run in runs)])
        for name in ("qid", "docid")
    )
    number, first = distinct(qid, docid)
    scores = np.full((len(first), len(runs)), np.nan)
    ends = np.cumsum([len(run) for run in runs])
    for run, column, rows in zip(runs, scores.T, np.split(number, ends[:-1])):
        column[rows] = run.score
    return qid[first], docid[first], scores


def _without_header(source: TextBlock) -> TextBlock:
    """The same with a blank first line, if that has three words of which the last is no number."""
    first, _, rest = source.text.partition(b"\n")
    words = first.split()
    try:
        if len(words) == 3:
            float(words[2])
        return source
    except ValueError:
        text = b" " * len(first) + b"\n" + rest
        return TextBlock(source.path, text, np.frombuffer(text, np.uint8))


def _columns(
    source: TextBlock, names: tuple[str, ...], *shorter: tuple[str, ...]
) -> dict[str, NDArray[np.int64]]:
    """The span (start, stop) of each field in each line that is not blank, by name.

    The first such line tells which of several layouts all of them have.
    """
    from didyma._core.data import fields

    width = len(source.text.lstrip().partition(b"\n")[0].split())
    names = next((layout for layout in shorter if len(layout) == width), names)
    spans = np.empty((source.text.count(b"\n"), len(names), 2), np.int64)
    rows, n_fields = fields(source.codes, spans)
    form = f"'{' '.join(names)}'"
    if n_fields:
        source.fail(
            int(spans[rows, 0, 0]), None, f"expected {len(names)} fields {form}, found {n_fields}"
        )
    if not rows:
        raise DataError(f"expected lines {form}, found none", path=source.path)
    return {name: spans[:rows, k] for k, name in enumerate(names)}


def _pairs(
    source: TextBlock, columns: dict[str, NDArray[np.int64]]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Query and document ids, which must be different pairs."""
    qid, docid = (source.texts(columns[name], name) for name in ("qid", "docid"))
    code, first = distinct(qid, docid)
    if len(first) < len(code):
        again = int(np.flatnonzero(first[code] < np.arange(len(code)))[0])
        source.fail(
            int(columns["docid"][again, 0]),
            "docid",
            f"expected each document once a query, found {str(docid[again])!r} again",
        )
    return qid, docid
