"""Documents and queries as users have them, column by column: what `Lists` are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.attributes import Attributes
from didyma.data.column_roles import known_as
from didyma.data.field_roles import BESIDE
from didyma.data.json_lines import number_of
from didyma.data.passage import TEXT, Passage, flattened, id_of
from didyma.data.schema import Schema
from didyma.data.text_columns import text_array
from didyma.errors import DataError
from didyma.values import shown


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
