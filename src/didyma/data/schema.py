"""What each field of documents is: a text, a signal, a category, a vector, or left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.attributes import Attributes
from didyma.data.column_roles import assign, known_as
from didyma.data.field_kinds import (
    BESIDE,
    FIRST_STAGE,
    ID_NAMES,
    MAIN,
    TITLE,
    FieldKind,
    category_column,
    infer_kinds,
    number_column,
    text_column,
    vector_column,
)
from didyma.data.json_lines import number_of
from didyma.data.matrix import refuse_masked
from didyma.data.passage import TEXT, Fail, Passage, fail_in_document, flattened, id_of, records_of
from didyma.data.text_columns import text_array
from didyma.errors import DataError, warn_left_out
from didyma.files import PathName
from didyma.values import shown

RUN = "the scores of a run"  # why a signal is one
Names = Iterable[str] | None


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
        fields, signals, ignore : sequence of str, optional
            Fields that are texts, that are signals or categories, and that do not count.
        names : mapping, optional
            Names of fields by their roles (`didyma.data.column_roles`).
        taken : mapping, optional
            Fields that were read already, as id, label or score, or ignored since that stands
            beside the documents; they are not in the records, whose other fields are none of these.
        fail : callable
            Raises the error about a document, a field and a problem.
        """
        wanted = {"text": fields, "signal": signals, "ignored": ignore}
        kinds = infer_kinds(records_of(records, fail), wanted, names or {}, taken, fail)
        return cls(_ordered(kinds))

    @classmethod
    def of(cls, attributes: Attributes | None) -> Schema:
        """That of attributes, also of those that were not read from documents."""
        if attributes is None:
            return cls()
        if attributes.schema is not None:
            return attributes.schema
        vectors = attributes.vectors
        kinds = {name: FieldKind("text", "given") for name in attributes.fields}
        for name, values in attributes.signals.items():
            kind = FIRST_STAGE if name in attributes.first_stages else ""
            role = "signal" if values.dtype == np.float64 else "category"
            kinds[name] = FieldKind(role, "given", kind)
        if vectors is not None:
            kinds["vector"] = FieldKind("vector", "given", "named", vectors.shape[1])
        text, title = known_as("passage", attributes.fields), known_as("title", attributes.fields)
        for name_of_text, kind in ((text, MAIN), (title, TITLE)):
            if name_of_text is not None:
                kinds[name_of_text] = kinds[name_of_text]._replace(kind=kind)
        return cls(_ordered(kinds))

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

    def with_categories(self, names: Iterable[str], reason: str) -> Schema:
        """The same with fields that it does not know, or has left out, as categories."""
        used = {field.name for field in self.fields if field.role != "ignored"}
        new = [SchemaField(name, "category", reason) for name in names if name not in used]
        others = [field for field in self.fields if field.name not in {one.name for one in new}]
        return Schema((*others, *new))

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
        texts = [name for name, *_ in self.of_role("text")] or [self.main]
        records, unknown = self._named(records_of(documents, fail))
        report = SchemaReport({}, unknown)
        columns = {name: [record.get(name) for record in records] for name in texts}
        read = {name: text_column(values, name, fail) for name, values in columns.items()}
        signals: dict[str, NDArray[Any]] = {}
        vectors = None
        for name, role, _, kind, dimension in self.of_role("signal", "category", "vector"):
            values = [record.get(name) for record in records]
            if role == "vector":
                vectors = vector_column(values, name, dimension, fail)
                empty = np.isnan(vectors).any(axis=1)
            elif role == "signal":
                signals[name] = number_column(values, name, kind, fail)
                empty = np.isnan(signals[name])
            else:
                signals[name] = category_column(values, name, fail)
                empty = signals[name] == None  # noqa: E711 (of each)
            if n_empty := int(np.count_nonzero(empty)):
                report.missing[name] = n_empty
        first = tuple(field.name for field in self.fields if field.kind == FIRST_STAGE)
        attributes = Attributes(read if len(texts) > 1 else {}, signals, first, vectors, self)
        whole = [" ".join(filter(None, parts)) for parts in zip(*read.values())]
        return ReadDocuments(whole, attributes, report)

    def _named(self, records: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Records with the text under its name here, and how many have each unknown field.

        What is an id, a label or a score by its name is not unknown.
        """
        main = self.main
        declared = {main, *(field.name for field in self.fields)}
        texts: dict[tuple[str, ...], str | None] = {}  # by the fields of a document
        counts = Counter(map(tuple, records))
        unknown: Counter[str] = Counter()
        for names, n_documents in counts.items():
            others = [name for name in names if name not in declared]
            text = known_as("passage", others) if main not in names else None
            if text is not None:
                texts[names] = text
                others.remove(text)
            read = assign(others, ("docid", "label", "score"), {}, ID_NAMES).values()
            unknown.update(
                dict.fromkeys((name for name in others if name not in read), n_documents)
            )
        if texts:
            records = [
                record
                if (text := texts.get(tuple(record))) is None
                else {**record, main: record[text]}
                for record in records
            ]
        return records, dict(unknown)

    def warn_of_ignored(self, path: PathName | None = None) -> None:
        """Say which fields do not count, unless the caller wanted it so."""
        left = [f"{name} ({why})" for name, _, why, kind, _ in self.of_role("ignored") if not kind]
        if left:
            warn_left_out(f"fields that are left out: {', '.join(left)}", path)

    def table(self) -> list[tuple[str, str, str]]:
        """Name, role and reason of each field."""
        return [(name, role, reason) for name, role, reason, *_ in self.fields]

    def __str__(self) -> str:
        rows = [("field", "role", "because"), *self.table()]
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        return "\n".join(
            f"{name:{widths[0]}}  {role:{widths[1]}}  {why}" for name, role, why in rows
        )


def _ordered(kinds: Mapping[str, FieldKind]) -> tuple[SchemaField, ...]:
    """Title, text and other texts, in the order of the whole text; then all others."""
    place = {TITLE: 0, MAIN: 1}
    order = sorted(
        kinds, key=lambda name: place.get(kinds[name].kind, 2 if kinds[name].role == "text" else 3)
    )
    return tuple(SchemaField(name, *kinds[name]) for name in order)  # type: ignore[arg-type]


class FieldOptions(TypedDict, total=False):
    """What readers take of a `FieldChoice`, as keywords."""

    fields: Sequence[str]
    signals: Sequence[str]
    ignore: Sequence[str]
    schema: Schema | None


class FieldChoice(NamedTuple):
    """What a caller says about fields of documents, or the schema that a model was trained with."""

    fields: Sequence[str] = ()
    signals: Sequence[str] = ()
    ignore: Sequence[str] = ()
    schema: Schema | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of fields that are texts whatever they are called."""
        if self.schema is None:
            return tuple(self.fields)
        return tuple(field.name for field in self.schema.of_role("text"))

    def read(
        self,
        documents: Sequence[Any],
        *,
        names: Mapping[str, str] | None = None,
        taken: Mapping[str, str] | None = None,
        path: PathName | None = None,
        fail: Fail = fail_in_document,
    ) -> tuple[list[str], Attributes | None]:
        """Whole texts, and attributes if there are any; a warning says what does not count."""
        schema = self.schema
        if schema is None:
            fields, signals, ignore, _ = self
            schema = Schema.infer(
                documents,
                fields=fields,
                signals=signals,
                ignore=ignore,
                names=names,
                taken=taken,
                fail=fail,
            )
            schema.warn_of_ignored(path)
        texts, attributes, report = schema.read(documents, fail=fail)
        if self.schema is not None and report.unknown:
            warn_left_out(f"fields that the model does not know: {', '.join(report.unknown)}", path)
        return texts, attributes if schema.has_attributes else None


class Documents(NamedTuple):
    """Texts of documents and what else is known of each; None where nothing is."""

    texts: list[Any]
    attributes: Attributes | None = None
    labels: NDArray[np.float64] | None = None
    scores: NDArray[np.float64] | None = None
    docid: NDArray[Any] | None = None


def read_documents(documents: Sequence[Any], beside: Mapping[str, Any] | None = None) -> Documents:
    """Texts as they are, or mappings by what their fields are (`Schema.infer`).

    Documents may have labels, scores of the first stage and ids, all of them or none, unless these
    stand ``beside`` them (by role): those in the documents are then left out. So a label is never
    both what is learned and what it is learned from.

    >>> emma = {"text": "A novel.", "year": 1815, "label": 1}
    >>> documents = read_documents([emma, {"text": "Late.", "year": 2001, "label": 0}])
    >>> documents.labels.tolist(), documents.attributes.signals["year"].tolist()
    ([1.0, 0.0], [1815.0, 2001.0])
    """
    if not any(isinstance(document, (Mapping, Passage)) for document in documents):
        return Documents(list(documents))
    schema = Schema.infer(documents)
    columns: dict[str, Any] = {}
    for field in schema.of_role("label", "score", "id"):
        if (beside or {}).get(field.role) is not None:
            schema = schema.without(field.name, BESIDE)
            continue
        values = [_value(document, field.name) for document in documents]
        if field.role == "id":
            if None in values:
                schema = schema.without(field.name, "not all documents have one")
                continue
            columns["id"] = text_array([id_of(value, field.name) for value in values])
            continue
        columns[field.role] = np.array(
            [number_of(value, f"document {n}, {field.name}") for n, value in enumerate(values)]
        )
    schema.warn_of_ignored()
    texts, attributes, _ = schema.read(documents)
    _check_texts(texts, documents, schema)
    further = attributes if schema.has_attributes else None
    return Documents(texts, further, columns.get("label"), columns.get("score"), columns.get("id"))


def _value(document: Any, name: str) -> Any:
    return flattened(document).get(name) if isinstance(document, Mapping) else None


def _check_texts(texts: Sequence[str], documents: Sequence[Any], schema: Schema) -> None:
    """Refuse a document that has no field with a text; an empty text is one."""
    names = [field.name for field in schema.of_role("text")]
    for n, (text, document) in enumerate(zip(texts, documents)):
        fields = flattened(document) if isinstance(document, Mapping) and not text else {TEXT: text}
        if all(fields.get(name) is None for name in (*names, TEXT)):
            present = ", ".join(map(str, fields)) or "no fields"
            raise DataError(f"expected a text among {present}", field=f"document {n}")


def read_queries(
    queries: Iterable[Any], vectors: ArrayLike | None = None
) -> tuple[list[Any], NDArray[np.float32] | None]:
    """Queries and their vectors: texts, or mappings with a text and perhaps a vector.

    >>> texts, vectors = read_queries([{"text": "who?", "vector": [1, 0]}, "why?"])
    >>> texts, vectors.tolist()
    (['who?', 'why?'], [[1.0, 0.0], [nan, nan]])
    """
    texts: list[Any] = []
    own_vectors: list[Any] = []
    for n, query in enumerate(queries):
        text, vector = query_of(query, f"query {n}")
        texts.append(text)
        own_vectors.append(vector)
    if vectors is None:
        return texts, stacked(own_vectors, lambda n: f"query {n}, vector")
    if any(vector is not None for vector in own_vectors):
        raise DataError("queries have vectors already: give no others", field="query_vectors")
    refuse_masked(vectors, "query_vectors")
    return texts, stacked(list(np.asarray(vectors)), lambda n: f"query_vectors, {n}")


def query_of(query: Any, place: str) -> tuple[Any, Any]:
    """Text and vector of a query; what is no mapping is as it is."""
    if not isinstance(query, Mapping):
        return query, None
    rest = {str(name): value for name, value in query.items()}
    vector = known_as("vector", rest)
    text = known_as("query", rest, ("text",))
    if text is None:
        raise DataError(f"expected a text among {', '.join(rest) or 'no fields'}", field=place)
    if others := [name for name in rest if name not in (text, vector)]:
        names = ", ".join(others)
        raise DataError(f"expected a text and a vector, found also {names}", field=place)
    if not isinstance(rest[text], str):
        raise DataError(f"expected a text, found {shown(rest[text])}", field=f"{place}, {text}")
    return rest[text], None if vector is None else rest[vector]


def stacked(vectors: Sequence[Any], place: Any) -> NDArray[np.float32] | None:
    """Vectors of one length as rows, NaN where there is none; None if there are none at all."""
    first = next((n for n, vector in enumerate(vectors) if vector is not None), None)
    if first is None:
        return None
    rows: NDArray[np.float32] | None = None
    for n, vector in enumerate(vectors):
        if vector is None:
            continue
        try:
            with np.errstate(over="ignore"):  # what is too great is told below
                row = np.asarray(vector, np.float32)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"expected numbers, found {vector!r:.40}", field=place(n)) from None
        if rows is None:
            rows = np.full((len(vectors), row.size), np.nan, np.float32)
        if row.shape != rows.shape[1:] or not row.size:
            expected = f"expected a vector of {rows.shape[1] or 'some'} numbers"
            raise DataError(f"{expected}, found shape {row.shape}", field=place(n))
        if not np.isfinite(row).all():
            raise DataError(f"expected finite numbers, found {vector!r:.40}", field=place(n))
        rows[n] = row
    return rows
