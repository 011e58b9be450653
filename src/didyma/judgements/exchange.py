"""Judgements of other tools, and for them: TREC, CSV, Quepid, Argilla, judged texts.

qrels       qid 0 docid label; a query is its id unless texts of queries are given
csv         a header with query, docid or passage, and label (also rating); who, when and why
            if there are such columns. Without a label, every other column is a judge, as in the
            books of Quepid
quepid      the same below Query Text, Doc ID, Rating
argilla     records as JSON: fields query and passage, a response for each judge, and
            suggestions of agents, who are judges as well
texts       JSON lines as `didyma rerank fit` reads, the page saves and `didyma clicks` writes
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from didyma.data import delimited
from didyma.data.column_roles import assign
from didyma.data.json_lines import number_of, objects, parse_json
from didyma.data.texts import json_lines
from didyma.data.trec import Qrels, read_qrels, write_qrels
from didyma.errors import DataError, check_choice, placed
from didyma.files import PathName, format_suffix, read_text, replace_when_done
from didyma.judgements.merging import by_pair, latest, lists_of, merge, whole
from didyma.judgements.store import Judgement

OTHERS = {"query": ("query text",), "label": ("rating", "judgement", "judgment"), "docid": ("doc",)}
MORE = ("who", "when", "why")
QUESTION = "relevance"
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".json": "argilla", ".jsonl": "texts", ".ndjson": "texts"}


def format_of(path: PathName) -> str:
    """The format that a name tells.

    >>> format_of("ratings.csv"), format_of("clicks.jsonl"), format_of("qrels.txt")
    ('csv', 'texts', 'qrels')
    """
    return SUFFIXES.get(format_suffix(path), "qrels")


def read_judgements(
    path: PathName,
    format: str | None = None,
    *,
    who: str = "",
    queries: Mapping[str, str] | None = None,
    passages: Mapping[str, str] | None = None,
) -> list[Judgement]:
    """The judgements of a file; ``who`` is the judge of those that name none.

    ``queries`` and ``passages`` are texts by id, for files that have ids alone.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ratings.csv")
    >>> _ = path.write_text("Query Text,Doc ID,Rating\\nwho rang?,d1,3\\n")
    >>> read_judgements(path, who="quepid")[0].record
    {'query': 'who rang?', 'document': 'd1', 'label': 3, 'who': 'quepid'}
    """
    name = format or format_of(path)
    check_choice(name, FORMATS, "format")
    read, _ = FORMATS[name]
    return [_completed(one, who, queries or {}, passages or {}) for one in read(path)]


def write_judgements(
    judgements: Iterable[Judgement], path: PathName, format: str | None = None
) -> int:
    """Write judgements, and tell how many.

    qrels, quepid and texts have one label for each pair (`merge` beforehand for another rule than
    equal weights); csv and argilla have those of each judge.
    """
    name = format or format_of(path)
    check_choice(name, FORMATS, "format")
    said = list(judgements)
    chosen = latest(said) if name in ("csv", "argilla") else merge(said)
    if not chosen:
        raise DataError("expected judgements to write, found none")
    FORMATS[name][1](chosen, path)
    return len(chosen)


def _completed(
    judgement: Judgement, who: str, queries: Mapping[str, str], passages: Mapping[str, str]
) -> Judgement:
    """The judgement with a judge and texts, where it has none."""
    query, document = judgement.query, judgement.document
    changes: dict[str, Any] = {} if judgement.who else {"who": who}
    if query in queries:
        changes |= {"query": queries[query], "qid": query}
    if judgement.text is None and document in passages:
        changes["text"] = passages[document]
    return replace(judgement, **changes)


def _read_qrels(path: PathName) -> Iterator[Judgement]:
    qrels = read_qrels(path)
    rows = zip(qrels.qid.tolist(), qrels.docid.tolist(), qrels.relevance.tolist())
    for qid, docid, label in rows:
        yield Judgement(str(qid), str(docid), label)


def _write_qrels(judgements: Sequence[Judgement], path: PathName) -> None:
    labels = np.array([judgement.label for judgement in judgements], np.float64)
    if (labels != np.floor(labels)).any():
        raise DataError("expected whole grades, which TREC needs: write another format", path=path)
    qid = np.array([judgement.qid or judgement.query for judgement in judgements])
    docid = np.array([judgement.document for judgement in judgements])
    write_qrels(Qrels(qid, docid, labels.astype(np.int64)), path)


def _read_csv(path: PathName) -> Iterator[Judgement]:
    file = delimited.DelimitedFile(path, "\t" if format_suffix(path) == ".tsv" else ",")
    names = assign(file.header, ("query", "qid", "docid", "passage", "label"), {}, OTHERS)
    if "query" not in names and "qid" in names:
        names["query"] = names.pop("qid")
    if "query" not in names or not {"docid", "passage"} & names.keys():
        found = ", ".join(file.header)
        raise DataError(
            f"expected columns query, docid and label, found {found}", path=path, line=1
        )
    more = {column.strip().lower(): column for column in file.header}
    taken = {*names.values(), *(more[name] for name in MORE if name in more)}
    judges = [] if "label" in names else [name for name in file.header if name not in taken]
    for line, cells in file.rows():
        row = dict(zip(file.header, cells))
        with placed(path, line):
            document = row[names.get("docid") or names["passage"]]
            others: dict[str, Any] = {name: row[more[name]] for name in MORE if name in more}
            if "docid" in names and "passage" in names:
                others["text"] = row[names["passage"]]
            if "qid" in names:
                others["qid"] = row[names["qid"]]
            labels = [(row[who], {"who": who}) for who in judges] or [(row[names["label"]], {})]
            for label, judge in labels:
                if label.strip():
                    yield Judgement(row[names["query"]], document, _grade(label), **others | judge)


def _grade(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"expected a number, found {text!r:.40}", field="label") from None
    return whole(number_of(value, "label"))


def _write_csv(judgements: Sequence[Judgement], path: PathName) -> None:
    head = ("query", "docid", "passage", "label", *MORE)
    rows = map(attrgetter("query", "document", "passage", "label", *MORE), judgements)
    delimited.write([head, *rows], path, "\t" if format_suffix(path) == ".tsv" else ",")


def _write_quepid(judgements: Sequence[Judgement], path: PathName) -> None:
    rows = map(attrgetter("query", "document", "label"), judgements)
    delimited.write([("Query Text", "Doc ID", "Rating"), *rows], path, ",")


def _read_argilla(path: PathName) -> Iterator[Judgement]:
    for number, record in _records(path):
        with placed(path, number):
            fields = record.get("fields")
            if not isinstance(fields, dict):
                raise DataError("expected an object", field="fields")
            names = assign(fields, ("query", "passage"), {})
            if names.keys() != {"query", "passage"}:
                raise DataError("expected query and passage", field="fields")
            metadata = record.get("metadata") or {}
            text = fields[names["passage"]]
            document = str(metadata.get("docid", text))
            named = None if document == text else text
            for who, value in _answers(record):
                yield Judgement(
                    fields[names["query"]],
                    document,
                    _grade(str(value)),
                    who,
                    text=named,
                    qid=metadata.get("qid"),
                )


def _records(path: PathName) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The objects of a JSON array, or of JSON lines with their lines."""
    text = read_text(path)
    if not text.lstrip().startswith(b"["):
        yield from objects(path)
        return
    try:
        records = parse_json(text.decode())
    except ValueError as error:
        raise DataError(f"expected JSON ({error})", path=path) from None
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise DataError("expected an object", path=path, field=f"record {number}")
        yield None, record


def _answers(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Judge and value of each response and suggestion to the only question, or to relevance."""
    responses, suggestions = (record.get(name) or {} for name in ("responses", "suggestions"))
    if not isinstance(responses, dict) or not isinstance(suggestions, dict):
        raise DataError("expected an object by question", field="responses")
    questions = {*responses, *suggestions}
    question = QUESTION if QUESTION in questions or len(questions) != 1 else min(questions)
    for response in responses.get(question, ()):
        yield str(response.get("user_id") or ""), response.get("value")
    if (suggestion := suggestions.get(question)) is not None:
        yield str(suggestion.get("agent") or "suggestion"), suggestion.get("value")


def _write_argilla(judgements: Sequence[Judgement], path: PathName) -> None:
    records = [
        {
            "id": f"{number}",
            "fields": {"query": query, "passage": said[0].passage},
            "metadata": {"docid": document} | ({"qid": said[0].qid} if said[0].qid else {}),
            "responses": {QUESTION: [{"value": one.label, "user_id": one.who} for one in said]},
            "suggestions": {},
        }
        for number, ((query, document), said) in enumerate(by_pair(judgements).items())
    ]
    with replace_when_done(path) as file:
        json.dump(records, file, ensure_ascii=False, indent=1)


def _read_texts(path: PathName) -> Iterator[Judgement]:
    lists = json_lines.read(path)
    texts, groups = lists.texts, lists.groups
    labels = [whole(float(label)) for label in lists.y.tolist()]
    for number, query in enumerate(lists.query_texts):
        qid = str(groups.names[number])
        for row in groups.rows_of(number).tolist():
            document = texts[row] if lists.docid is None else str(lists.docid[row])
            text = None if document == texts[row] else texts[row]
            named = None if qid in (query, str(number)) else qid
            yield Judgement(query, document, labels[row], text=text, qid=named)


def _write_texts(judgements: Sequence[Judgement], path: PathName) -> None:
    json_lines.write(lists_of(judgements), path)


FORMATS: dict[
    str,
    tuple[
        Callable[[PathName], Iterable[Judgement]],
        Callable[[Sequence[Judgement], PathName], None],
    ],
] = {
    "qrels": (_read_qrels, _write_qrels),
    "csv": (_read_csv, _write_csv),
    "quepid": (_read_csv, _write_quepid),
    "argilla": (_read_argilla, _write_argilla),
    "texts": (_read_texts, _write_texts),
}
