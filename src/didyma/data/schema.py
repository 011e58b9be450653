"""What each field of documents is: a text, a signal, a category, a vector, or left out, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from didyma.data.attributes import Attributes
from didyma.data.column_roles import assign, known_as
from didyma.data.field_kinds import (
    Column,
    FieldKind,
    classify,
    is_missing,
    number_in,
    text_in,
    vector_in,
)
from didyma.data.passage import Passage, flattened
from didyma.errors import DataError, LeftOutWarning, warn
from didyma.files import PathName
from didyma.values import kind_of

__all__ = [
    "BESIDE",
    "JUDGED",
    "RUN",
    "TEXT",
    "Fail",
    "ReadDocuments",
    "Schema",
    "SchemaField",
    "SchemaReport",
    "fail_in_document",
]

RUN = "the scores of a run"  # why a signal is one
JUDGED = "judged"  # how a label came about: never to be learned from
BESIDE = "given beside the documents"
TEXT = "text"  # what the text of a document is called that is nothing else
MAIN, TITLE, FIRST_STAGE = "main", "title", "first stage"  # kinds of fields
ROLES = {"passage": MAIN, "title": TITLE}
RETRIEVAL = re.compile(
    r"bm25|tf.?idf|splade|colbert|cosine|similarity|dense|semantic|lexical|retriev", re.IGNORECASE
)


class SchemaField(NamedTuple):
    """A field of documents: its role, why, and for signals and texts what kind of it."""

    name: str
    role: Literal["text", "signal", "category", "vector", "id", "label", "score", "ignored"]
    reason: str
    kind: str = ""
    dimension: int = 0


class SchemaReport(NamedTuple):
    """What documents lacked, and what they had that nobody asks for: documents by field."""

    missing: dict[str, int]
    unknown: dict[str, int]


class ReadDocuments(NamedTuple):
    """Whole texts of documents, what else is known of them, and what was missing or unknown."""

    texts: list[str]
    attributes: Attributes
    report: SchemaReport


Fail = Callable[[int, str, str], NoReturn]
Names = Iterable[str] | None


def fail_in_document(row: int, field: str, problem: str) -> NoReturn:
    """Raise the error about a field of a document that stands in no file."""
    raise DataError(problem, field=f"document {row}, {field}")


class Schema(NamedTuple):
    """What each field of documents is.

    The roles are text (part of the whole text, and a field of its own), signal (a number, a truth
    or a date), category, vector, id, label and score (of the first stage), and ignored. Entries of
    ``metadata`` count as fields.

    >>> documents = [
    ...     {"title": "Emma", "text": "A novel.", "year": 1815, "kind": {"of": "book"}},
    ...     {"title": "Faust", "text": "A play.", "year": 1808},
    ... ]
    >>> schema = Schema.infer(documents)
    >>> print(schema)
    field  role     because
    title  text     the title
    text   text     the text
    year   signal   numbers
    kind   ignored  a nested object
    >>> texts, attributes, report = schema.read([{"text": "An ode.", "pages": 3}])
    >>> texts, attributes.signals["year"].tolist(), report.missing, report.unknown
    (['An ode.'], [nan], {'year': 1}, {'pages': 1})
    """

    fields: tuple[SchemaField, ...] = ()

    @classmethod
    def infer(
        cls,
        records: Iterable[Any],
        *,
        fields: Names = None,
        signals: Names = None,
        ignore: Names = None,
        names: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
        fail: Fail = fail_in_document,
    ) -> Schema:
        """Find out what fields are: by what the caller says, by their names, by their values.

        Parameters
        ----------
        records : sequence
            Texts, mappings or passages.
        fields, signals, ignore : names, optional
            Fields that are texts, that are signals or categories, and that do not count.
        names : mapping, optional
            Names of fields by their roles (`didyma.data.column_roles`).
        taken : mapping, optional
            Fields that were read already, as id, label or score, or ignored since that stands
            beside the documents; they are not in the records.
        fail : callable
            Raises the error about a document, a field and a problem.
        """
        documents = [_record(record, n, fail) for n, record in enumerate(records)]
        columns: dict[str, list[int]] = {}
        for row, document in enumerate(documents):
            for name in document:
                columns.setdefault(name, []).append(row)
        asked = _asked(fields, signals, ignore, [*columns, *(taken or {})])
        free = [name for name in columns if asked.get(name, "text") == "text"]
        roles = assign(free, ("passage", "title", "docid", "label", "score"), names or {}, ID_NAMES)
        role_of = {name: role for role, name in roles.items()}
        n_texts = len({str(document.get(roles.get("passage", TEXT))) for document in documents})
        found: dict[str, FieldKind] = {}
        for name, rows in columns.items():
            rows = [row for row in rows if not is_missing(documents[row][name])]
            values = [documents[row][name] for row in rows]
            place = _placed(fail, name)
            column = Column(name, rows, values, len(documents), n_texts, place)
            found[name] = _kind_of(column, asked.get(name), role_of.get(name))
        for name, role in (taken or {}).items():
            reason = BESIDE if role == "ignored" else "by its name"
            found.setdefault(name, FieldKind(role, reason, "asked"))
        return cls(_ordered(_one_vector(found)))

    @classmethod
    def of(cls, attributes: Attributes | None) -> Schema:
        """That of attributes, also of those that were not read from documents."""
        if attributes is None:
            return cls()
        if attributes.schema is not None:
            return attributes.schema
        vectors = attributes.vectors
        found = {name: FieldKind("text", "given") for name in attributes.fields}
        for name, values in attributes.signals.items():
            kind = FIRST_STAGE if name in attributes.first_stages else ""
            role = "signal" if values.dtype == np.float64 else "category"
            found[name] = FieldKind(role, "given", kind)
        if vectors is not None:
            found["vector"] = FieldKind("vector", "given", "named", vectors.shape[1])
        text, title = known_as("passage", attributes.fields), known_as("title", attributes.fields)
        for own, kind in ((text, MAIN), (title, TITLE)):
            if own is not None:
                found[own] = found[own]._replace(kind=kind)
        return cls(_ordered(found))

    def of_role(self, *roles: str) -> list[SchemaField]:
        """The fields of some roles."""
        return [field for field in self.fields if field.role in roles]

    def without(self, name: str, reason: str) -> Schema:
        """The same, but for a field that does not count."""
        return Schema(
            tuple(
                SchemaField(name, "ignored", reason, "asked") if field.name == name else field
                for field in self.fields
            )
        )

    def with_runs(self, tags: Sequence[str]) -> Schema:
        """The same with scores of runs, which do not stand in the documents, as signals."""
        fields = [field for field in self.fields if field.name not in tags]
        runs = [SchemaField(tag, "signal", RUN, FIRST_STAGE) for tag in tags]
        return Schema((*fields, *runs))

    @property
    def main(self) -> str:
        """The field that is the text of a document, which a plain text stands for."""
        return next((field.name for field in self.of_role("text") if field.kind == MAIN), TEXT)

    @property
    def has_attributes(self) -> bool:
        """Whether documents are more than a text: else there is nothing to tell."""
        texts = self.of_role("text")
        return len(texts) > 1 or bool(self.of_role("signal", "category", "vector", "ignored"))

    def read(self, documents: Iterable[Any], *, fail: Fail = fail_in_document) -> ReadDocuments:
        """Texts, mappings or passages by this schema.

        A signal that is missing is NaN, a field that the schema does not know is counted.
        """
        records = [self._named(_record(document, n, fail)) for n, document in enumerate(documents)]
        known = {field.name for field in self.fields}
        report = SchemaReport({}, {})
        for record in records:
            for name in record.keys() - known:
                report.unknown[name] = report.unknown.get(name, 0) + 1
        texts = [name for name, *_ in self.of_role("text")] or [self.main]
        read = {
            name: [
                "" if (value := record.get(name)) is None else text_in(value, column, row)
                for row, record in enumerate(records)
            ]
            for name in texts
            for column in [_reading(name, fail)]
        }
        signals = {
            field.name: _signal(field, records, report, fail)
            for field in self.fields
            if field.role in ("signal", "category")
        }
        first = tuple(field.name for field in self.fields if field.kind == FIRST_STAGE)
        vectors = next(
            (_vectors(field, records, report, fail) for field in self.of_role("vector")), None
        )
        attributes = Attributes(read if len(texts) > 1 else {}, signals, first, vectors, self)
        whole = [" ".join(part for part in parts if part) for parts in zip(*read.values())]
        return ReadDocuments(whole, attributes, report)

    def _named(self, record: dict[str, Any]) -> dict[str, Any]:
        """The same with the text under its name here, and without what is known by name."""
        known = {field.name for field in self.fields}
        if self.main not in record:
            others = [name for name in record if name not in known]
            if (name := known_as("passage", others)) is not None:
                record[self.main] = record.pop(name)
        others = [name for name in record if name not in known]
        for name in assign(others, ("docid", "label", "score"), {}, ID_NAMES).values():
            del record[name]
        return record

    def warn_of_ignored(self, path: PathName | None = None) -> None:
        """Say which fields do not count, unless the caller wanted it so."""
        left = [f"{name} ({why})" for name, _, why, kind, _ in self.of_role("ignored") if not kind]
        if left:
            place = "" if path is None else f"{path}: "
            warn(f"{place}fields that are left out: {', '.join(left)}", LeftOutWarning)

    def table(self) -> list[tuple[str, str, str]]:
        """Name, role and reason of each field."""
        return [(name, role, reason) for name, role, reason, *_ in self.fields]

    def __str__(self) -> str:
        rows = [("field", "role", "because"), *self.table()]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        return "\n".join(
            f"{name:{widths[0]}}  {role:{widths[1]}}  {why}" for name, role, why in rows
        )


ID_NAMES = {"docid": ("id", "_id")}


def _record(document: Any, row: int, fail: Fail) -> dict[str, Any]:
    if isinstance(document, Passage):
        return flattened(document.record)
    if isinstance(document, str):
        return {TEXT: document}
    if not isinstance(document, Mapping):
        fail(row, TEXT, f"expected a text or an object with one, found {kind_of(document)}")
    for name in document:
        if not isinstance(name, str):
            fail(row, repr(name), "expected names that are texts")
    return flattened(document)


def _asked(
    fields: Names,
    signals: Names,
    ignore: Names,
    present: Sequence[str],
) -> dict[str, str]:
    """The role that the caller gives to each field."""
    asked: dict[str, str] = {}
    wanted = {"text": fields, "signal": signals, "ignored": ignore}
    for role, names in wanted.items():
        for name in names or ():
            if name not in present:
                raise DataError(f"no such field among {', '.join(present) or 'texts'}", field=name)
            if asked.setdefault(name, role) != role:
                raise DataError(f"expected one role, found {asked[name]} and {role}", field=name)
    return asked


def _kind_of(column: Column, asked: str | None, role: str | None) -> FieldKind:
    if asked == "ignored":
        return FieldKind("ignored", "as you say", "asked")
    if role in ROLES:
        for row, value in zip(column.rows, column.values):
            text_in(value, column, row)
        return FieldKind("text", f"the {'text' if role == 'passage' else role}", ROLES[role])
    if asked == "text":
        for row, value in zip(column.rows, column.values):
            text_in(value, column, row)
        return FieldKind("text", "as you say")
    if role is not None:
        return FieldKind("id" if role == "docid" else role, "by its name")
    if asked == "signal":
        return _signal_kind(column)
    if column.name == JUDGED:
        return FieldKind("ignored", "how the label came about", "asked")
    if known_as("label", [column.name]) is not None:
        return FieldKind("ignored", "a label by its name, beside another")
    return _first_stage(column.name, classify(column))


def _first_stage(name: str, found: FieldKind) -> FieldKind:
    if found.role == "signal" and found.reason == "numbers" and RETRIEVAL.search(name):
        return found._replace(reason="numbers, the score of a retrieval", kind=FIRST_STAGE)
    return found


def _signal_kind(column: Column) -> FieldKind:
    """That of a field which the caller calls a signal, though it may be constant, or an id."""
    if column.values and all(isinstance(value, str) for value in column.values):
        found = classify(column._replace(name="", n_documents=-1, n_texts=-1))
        if found.role == "signal":
            return _first_stage(column.name, found._replace(reason=f"as you say: {found.reason}"))
        return FieldKind("category", "as you say")
    for row, value in zip(column.rows, column.values):
        number_in(value, column, row)
    kind = FIRST_STAGE if RETRIEVAL.search(column.name) else ""
    return FieldKind("signal", "as you say", kind)


def _one_vector(found: dict[str, FieldKind]) -> dict[str, FieldKind]:
    """The same with one vector: the one that is called so, or the first."""
    vectors = [name for name, own in found.items() if own.role == "vector"]
    first, *others = sorted(vectors, key=lambda name: not found[name].kind) or [""]
    return found | {name: FieldKind("ignored", f"a vector beside {first}") for name in others}


def _ordered(found: Mapping[str, FieldKind]) -> tuple[SchemaField, ...]:
    """Title, text and other texts, in the order of the whole text; then all others."""
    place = {TITLE: 0, MAIN: 1}
    order = sorted(
        found, key=lambda name: place.get(found[name].kind, 2 if found[name].role == "text" else 3)
    )
    return tuple(SchemaField(name, *found[name]) for name in order)  # type: ignore[arg-type]


def _placed(fail: Fail, name: str) -> Callable[[int, str], NoReturn]:
    def failed(row: int, problem: str) -> NoReturn:
        fail(row, name, problem)

    return failed


def _reading(name: str, fail: Fail) -> Column:
    return Column(name, (), (), 0, 0, _placed(fail, name))


def _signal(
    field: SchemaField, records: Sequence[Mapping[str, Any]], report: SchemaReport, fail: Fail
) -> Any:
    column = _reading(field.name, fail)
    values = [record.get(field.name) for record in records]
    empty = [is_missing(value) for value in values]
    if any(empty):
        report.missing[field.name] = sum(empty)
    if field.role == "signal":
        return np.array(
            [
                np.nan if missing else number_in(value, column, row, field.kind)
                for row, (value, missing) in enumerate(zip(values, empty))
            ],
            np.float64,
        )
    read = np.empty(len(values), object)
    for row, (value, missing) in enumerate(zip(values, empty)):
        read[row] = None if missing else text_in(value, column, row).strip()
    return read


def _vectors(
    field: SchemaField, records: Sequence[Mapping[str, Any]], report: SchemaReport, fail: Fail
) -> Any:
    column = _reading(field.name, fail)
    vectors = np.full((len(records), field.dimension), np.nan, np.float32)
    for row, record in enumerate(records):
        if not is_missing(value := record.get(field.name)):
            vectors[row] = vector_in(value, column, row, field.dimension)
    if empty := int(np.isnan(vectors).any(axis=1).sum()):
        report.missing[field.name] = empty
    return vectors
