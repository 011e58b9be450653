"""A collection: queries and passages by id, judgements, and candidates for each query.

Texts are as in `didyma.data.texts.by_id`, judgements and candidates as in `didyma.data.trec`. In a
folder the names of files tell which is which; all may be packed (``.gz``):

    queries.jsonl, .tsv                          text of each query
    corpus, collection, passages, documents      text of each passage, .jsonl or .tsv
    qrels/test.tsv, qrels.test.tsv, qrels.tsv    judgements
    candidates, run, top1000                     .tsv, .txt, .trec or none of these; may be absent
    split.tsv                                    qid and the part it belongs to; may be absent

with or without the name of a part (``run.dev.tsv``). So BEIR's folders and those of MS MARCO are
read, and with `read_files` any TREC collection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from didyma.data.attributes import Attributes
from didyma.data.column_roles import known_as
from didyma.data.lists import Lists
from didyma.data.passage import Passage, flattened
from didyma.data.schema import RUN, FieldChoice, Schema, stacked
from didyma.data.text_columns import text_array
from didyma.data.texts import by_id
from didyma.data.trec import Qrels, Run, read_qrels, read_run, score_columns
from didyma.errors import DataError, placed, warn_left_out
from didyma.files import PathName, format_suffix

PASSAGES = ("corpus", "collection", "passages", "documents")
CANDIDATES = ("candidates", "run", "top1000")
SUFFIXES = ("", ".tsv", ".jsonl", ".txt", ".trec")


class Retriever(Protocol):
    """What finds candidates among all passages, such as `didyma.text.BM25`."""

    def fit(self, passages: Sequence[str]) -> Self:
        """Index passages; a passage is known by its place."""
        ...

    def top(
        self, queries: Sequence[str], k: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each query places and scores of k passages, best first."""
        ...


class Candidates(Protocol):
    """Passages that an engine finds, best first, and their scores by each of its searches."""

    @property
    def passages(self) -> list[Passage]:
        """The passages, which have ids."""
        ...

    @property
    def stages(self) -> dict[str, NDArray[np.float64]]:
        """Scores by the name of the search."""
        ...


@runtime_checkable
class Engine(Protocol):
    """What has passages of its own and finds candidates among them.

    Such as a `didyma.PassageIndex`, or any `didyma.text.retrieval.SearchEngine`.
    """

    def retrieve(self, query: str, k: int) -> Candidates:
        """The k best passages by each of its searches."""
        ...


@dataclass(frozen=True, eq=False)
class TextCollection:
    """Texts by id, and what is known about pairs of them; ``path`` is what messages name.

    ``records`` are passages that are more than a text, by id, ``vectors`` those of queries. If
    passages are ``from_engine``, there are others that it did not find.

    >>> qrels = Qrels(np.array(["q"]), np.array(["d1"]), np.array([1]))
    >>> run = Run(np.array(["q", "q"]), np.array(["d2", "d1"]), np.array([3.0, 2.0]), "bm25")
    >>> texts = {"d1": "Jane Austen.", "d2": "It is late."}
    >>> lists = TextCollection("a folder", {"q": "who wrote Emma?"}, texts, qrels, (run,)).lists()
    >>> lists.items, lists.labels.tolist()
    (['It is late.', 'Jane Austen.'], [0.0, 1.0])
    """

    path: PathName
    queries: dict[str, str]
    passages: dict[str, str]
    qrels: Qrels | None
    runs: tuple[Run, ...]
    records: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    from_engine: bool = False

    def with_candidates(self, first_stage: Retriever | Engine, depth: int) -> TextCollection:
        """The same with the best passages of a first stage as candidates of each query.

        An engine finds them among its own passages, which take the place of those that were read;
        if it has several searches, each is a run.
        """
        if isinstance(first_stage, Engine):
            return self._retrieved(first_stage, depth)
        retriever = first_stage.fit(list(self.passages.values()))
        answers = retriever.top(list(self.queries.values()), depth)
        names = text_array(list(self.passages))
        asked = self._asked([names[places] for places, _ in answers])
        scores = np.concatenate([np.zeros(0), *(scores for _, scores in answers)])
        return replace(self, runs=(Run(*asked, scores, "bm25"),))

    def _retrieved(self, engine: Engine, depth: int) -> TextCollection:
        answers = [engine.retrieve(query, depth) for query in self.queries.values()]
        passages: dict[str, Passage] = {}
        for passage in (passage for one in answers for passage in one.passages):
            if passage.id is None:
                raise DataError("expected an id of each passage, found none", field="id")
            passages[str(passage.id)] = passage
        docid = [text_array([str(passage.id) for passage in one.passages]) for one in answers]
        asked = self._asked(docid)
        stages = answers[0].stages if answers else ()
        runs = tuple(
            Run(*asked, np.concatenate([one.stages[stage] for one in answers]), stage)
            for stage in stages
        )
        texts = {name: passage.text for name, passage in passages.items()}
        records = _records(passages)
        return replace(self, passages=texts, runs=runs, records=records, from_engine=True)

    def _asked(self, docid: list[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Ids of queries and passages of a run, given the passages of each query."""
        qid = np.repeat(text_array(list(self.queries)), [len(names) for names in docid])
        return qid, np.concatenate([text_array([]), *docid])

    def lists(self, choice: FieldChoice | None = None) -> Lists:
        """The candidates of each query, judged if there are judgements: then of judged queries.

        A candidate without a judgement has label 0. Scores that are all equal tell nothing and are
        left out. What else is left out is counted, and a warning says so. Of several runs, each is
        a signal of the candidates that any of them has.
        """
        if not self.runs:
            raise DataError(
                "expected candidates: give a run, or a first stage such as didyma.text.BM25()",
                path=self.path,
            )
        left: dict[str, int] = {}  # counts of what is not used
        wanted = list(self.queries)
        if self.qrels is not None:
            judged = set(self.qrels.qid.tolist())
            left["judged queries without a text"] = len(judged - self.queries.keys())
            wanted = [name for name in wanted if name in judged]
        place = {name: n for n, name in enumerate(wanted)}
        run, signals = join_runs(self.runs, self.path, None if choice is None else choice.schema)
        query = np.array([place.get(name, -1) for name in run.qid.tolist()], np.int64)
        is_known = np.array([name in self.passages for name in run.docid.tolist()], bool)
        left["candidates that are unknown passages"] = int(np.sum((query >= 0) & ~is_known))
        rows = np.flatnonzero((query >= 0) & is_known)
        rows = rows[np.argsort(query[rows], kind="stable")]
        if not len(rows):
            raise DataError("expected candidates of some query, found none", path=self.path)
        numbers = np.unique(query[rows])
        left["queries without candidates"] = len(wanted) - len(numbers)
        qid, docid, scores = run.qid[rows], run.docid[rows], run.score[rows]
        labels = None if self.qrels is None else self._labels(self.qrels, qid, docid, left)
        if counts := [f"{count} {what}" for what, count in left.items() if count]:
            warn_left_out(f"left out {', '.join(counts)}", self.path)
        texts, attributes = self._documents(docid.tolist(), choice or FieldChoice())
        if signals:
            attributes = with_runs(
                attributes, {name: scores[rows] for name, scores in signals.items()}
            )
            scores = np.zeros(1)
        names = [wanted[n] for n in numbers.tolist()]
        return Lists(
            texts,
            labels,
            qid,
            docid,
            queries=[self.queries[name] for name in names],
            scores=scores if scores.min() < scores.max() else None,
            attributes=attributes,
            query_vectors=stacked(
                [self.vectors.get(name) for name in names], lambda n: f"vector of query {names[n]}"
            ),
        )

    def _documents(
        self, docid: list[str], choice: FieldChoice
    ) -> tuple[list[str], Attributes | None]:
        """Whole texts of candidates, and what else is known of them."""
        is_plain = not any(name in self.records for name in docid) and not any(choice[:3])
        if is_plain and not (choice.schema is not None and choice.schema.has_attributes):
            return [self.passages[name] for name in docid], None
        names = list(dict.fromkeys(docid))

        def fail(field: str, row: int, problem: str) -> NoReturn:
            raise DataError(problem, path=self.path, field=f"passage {names[row]}, {field}")

        records = [self.records.get(name, self.passages[name]) for name in names]
        with placed(self.path):
            texts, attributes = choice.read(records, taken={}, path=self.path, fail=fail)
        number = {name: n for n, name in enumerate(names)}
        rows = [number[name] for name in docid]
        return [texts[row] for row in rows], None if attributes is None else attributes[rows]

    def _labels(
        self, qrels: Qrels, qid: NDArray[Any], docid: NDArray[Any], left: dict[str, int]
    ) -> NDArray[np.float64]:
        """The judgement of each candidate."""
        pairs = zip(qrels.qid.tolist(), qrels.docid.tolist())
        grades = dict(zip(pairs, qrels.relevance.tolist()))
        candidates, queries = list(zip(qid.tolist(), docid.tolist())), set(qid.tolist())
        missed = grades.keys() - set(candidates)
        unknown = {pair for pair in missed if pair[1] not in self.passages and not self.from_engine}
        left["judgements of unknown passages"] = len(unknown)
        relevant = sum(pair[0] in queries and grades[pair] > 0 for pair in missed - unknown)
        left["relevant passages that are no candidates"] = relevant
        return np.array([grades.get(pair, 0) for pair in candidates], np.float64)


def _records(passages: Mapping[str, Passage]) -> dict[str, dict[str, Any]]:
    """The passages that are more than a text."""
    return {
        name: flattened(passage.record)
        for name, passage in passages.items()
        if passage.metadata or len(passage.fields) > 1
    }


def read_files(
    *,
    queries: PathName | None,
    passages: PathName | None,
    qrels: PathName | None = None,
    run: PathName | Sequence[PathName] | None = None,
    path: PathName | None = None,
    fields: Collection[str] = (),
) -> TextCollection:
    """Read the files of a collection; queries and passages may stand in ``run`` themselves, and
    passages in an index.

    Of the passages only those are kept that the run or the judgements name, if there is a run, and
    of the queries those that are judged, if there are judgements.
    """
    files = files_of(run)
    place = path or passages or (files[0] if files else None) or queries or "the collection"
    judged = None if qrels is None else read_qrels(qrels)
    if len(files) == 1 and by_id.has_texts(files[0]):
        query_texts, texts, candidates = by_id.read_top(files[0])
        return TextCollection(place, query_texts, texts, judged, (candidates,))
    if queries is None or (passages is None and files):
        raise DataError("expected both queries and passages", path=place)
    runs = read_runs(files)
    wanted = None
    if runs:
        wanted = {name for run in runs for name in run.docid.tolist()}
        wanted |= set() if judged is None else set(judged.docid.tolist())
    judged_queries = None if judged is None else set(judged.qid.tolist())
    read = {} if passages is None else by_id.read_passages(passages, wanted, fields)
    texts = {name: one.text for name, one in read.items()}
    query_passages = by_id.read_passages(queries, judged_queries)
    asking = {name: one.text for name, one in query_passages.items()}
    return TextCollection(
        place, asking, texts, judged, runs, _records(read), _query_vectors(query_passages, queries)
    )


def _query_vectors(queries: Mapping[str, Passage], path: PathName) -> dict[str, Any]:
    """Vectors of queries that have one; a warning names all other fields."""
    vectors: dict[str, Any] = {}
    unread: dict[str, None] = {}
    for name, query in queries.items():
        vector = known_as("vector", query.metadata)
        if vector is not None and query.metadata[vector] is not None:
            vectors[name] = query.metadata[vector]
        unread |= dict.fromkeys(
            key for key, value in query.metadata.items() if value and key != vector
        )
    if unread:
        warn_left_out(f"fields of queries that are left out: {', '.join(unread)}", path)
    return vectors


def files_of(run: PathName | Sequence[PathName] | None) -> list[PathName]:
    """No file, one, or several."""
    if run is None or isinstance(run, (str, PathLike)):
        return [] if run is None else [run]
    return list(run)


def read_runs(files: Sequence[PathName]) -> tuple[Run, ...]:
    """Runs with different tags: the names of their files, where they have the same."""
    runs = [read_run(file) for file in files]
    if len({run.tag for run in runs}) < len(runs):
        runs = [replace(run, tag=Path(file).stem) for run, file in zip(runs, files)]
    return tuple(runs)


def read_folder(
    folder: PathName,
    *,
    part: str | None = None,
    run: PathName | Sequence[PathName] | None = None,
    indexed: bool = False,
    fields: Collection[str] = (),
) -> TextCollection:
    """Read a folder whose files have the names above; ``part`` is its part, such as "test".

    ``run`` is a file of candidates elsewhere, or several. If passages are ``indexed`` elsewhere,
    neither they nor candidates are read. ``fields`` are as in `by_id.read_passages`.
    """
    root = Path(folder)
    queries = _found(root, ("queries",), part)
    passages = None if indexed else _found(root, PASSAGES, part)
    in_folder = _found(root, CANDIDATES, part)
    candidates = files_of(run) or ([] if in_folder is None else [in_folder])
    candidates = [] if indexed else candidates
    qrels = _qrels(root, part)
    whole = len(candidates) == 1 and by_id.has_texts(candidates[0])
    for name, path in (("queries", queries), ("corpus", passages)):
        if path is None and not whole and not (indexed and name == "corpus"):
            raise DataError(f"expected a file {name}.jsonl or {name}.tsv", path=folder)
    collection = read_files(
        queries=queries,
        passages=passages,
        qrels=qrels,
        run=candidates,
        path=folder,
        fields=fields,
    )
    splits = _found(root, ("split",), None)
    if part is None or splits is None:
        return collection
    names = by_id.read(splits)
    texts = {name: text for name, text in collection.queries.items() if names.get(name) == part}
    if not texts:
        parts = ", ".join(dict.fromkeys(names.values()))
        raise DataError(f"expected one of {parts}, found {part!r}", path=splits, field="part")
    return replace(collection, queries=texts, qrels=_of(collection.qrels, texts))


def corpus_of(folder: PathName) -> Path | None:
    """The file of a folder that has its passages, if there is one."""
    file = _found(Path(folder), PASSAGES, None)
    return file if file and format_suffix(file) in (".tsv", ".jsonl") else None


def _found(root: Path, names: Sequence[str], part: str | None) -> Path | None:
    """The first file that is there under one of these names."""
    for name in names:
        for stem in (name,) if part is None else (f"{name}.{part}", name):
            for suffix in SUFFIXES:
                for packed in ("", ".gz"):
                    if (path := root / f"{stem}{suffix}{packed}").is_file():
                        return path
    return None


def _qrels(root: Path, part: str | None) -> Path | None:
    """The judgements of a part; without one, those that are there if there are no others."""
    if (file := _found(root, ("qrels",), part)) is not None:
        return file
    folder = root / "qrels"
    if folder.is_dir():
        parts = {path.name.partition(".")[0]: path for path in sorted(folder.iterdir())}
    else:
        parts = {path.name.split(".")[1]: path for path in sorted(root.glob("qrels.*.*"))}
    if part is None and len(parts) == 1:
        (only,) = parts.values()
        return only
    if parts and part not in parts:
        expected = f"expected a part, one of {', '.join(parts)}"
        raise DataError(expected + ("" if part is None else f", found {part!r}"), path=root)
    return parts.get(part) if part is not None else None


def _of(qrels: Qrels | None, queries: dict[str, str]) -> Qrels | None:
    if qrels is None:
        return None
    is_kept = np.array([name in queries for name in qrels.qid.tolist()], bool)
    return Qrels(qrels.qid[is_kept], qrels.docid[is_kept], qrels.relevance[is_kept])


def join_runs(
    runs: Sequence[Run], path: PathName, schema: Schema | None = None
) -> tuple[Run, dict[str, NDArray[np.float64]]]:
    """The pairs that any run has, and if there are several the scores of each, NaN for none.

    A model that was trained with several, by its ``schema``, knows runs by their tags; of one that
    was not, they have no scores.

    >>> lexical = Run(np.array(["q", "q"]), np.array(["d1", "d2"]), np.array([3.0, 2.0]), "bm25")
    >>> dense = Run(np.array(["q"]), np.array(["d2"]), np.array([0.5]), "dense")
    >>> pairs, scores = join_runs([lexical, dense], "a folder")
    >>> pairs.docid.tolist(), {tag: scores[tag].tolist() for tag in scores}
    (['d1', 'd2'], {'bm25': [3.0, 2.0], 'dense': [nan, 0.5]})
    """
    trained = [] if schema is None else [one.name for one in schema.fields if one.reason == RUN]
    if trained:
        _check_tags([run.tag for run in runs], trained, path)
    elif len(runs) == 1:
        return runs[0], {}
    qid, docid, scores = score_columns(runs)
    signals = {run.tag: column for run, column in zip(runs, scores.T)}
    if schema is not None and not trained:
        warn_left_out(f"scores that the model was not trained with: {', '.join(signals)}", path)
        signals = {}
    return Run(qid, docid, np.zeros(len(qid)), runs[0].tag), signals


def _check_tags(tags: Sequence[str], trained: Sequence[str], path: PathName) -> None:
    """Refuse runs that a model does not know; warn of those that it was trained with and lacks."""
    for tag in tags:
        if tag not in trained:
            expected = f"expected runs with tags {', '.join(trained)}, as in training"
            raise DataError(f"{expected}, found {tag!r}", path=path, field="run")
    if missing := [tag for tag in trained if tag not in tags]:
        absent = f"no run {', '.join(missing)}, which the model was trained with"
        warn_left_out(f"{absent}: its scores are missing", path)


def with_runs(attributes: Attributes | None, signals: dict[str, NDArray[np.float64]]) -> Attributes:
    """The same with the scores of runs as signals of the first stage."""
    before = attributes or Attributes()
    for name in signals:
        if name in before.signals or name in before.fields:
            schema_before = Schema.of(attributes)
            if all(field.name != name or field.reason != RUN for field in schema_before.fields):
                raise DataError("expected a tag that is no field of passages", field=name)
    schema = Schema.of(attributes).with_runs(list(signals))
    return replace(
        before,
        signals={**before.signals, **signals},
        first_stages=tuple(dict.fromkeys((*before.first_stages, *signals))),
        schema=schema,
    )
