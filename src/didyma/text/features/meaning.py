"""Cosines of a query and a document as vectors of a sentence encoder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from math import inf, isfinite
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.execution import time_left
from didyma.model import Saved
from didyma.text.encoders import Encoder, Fingerprint, resolve, restore
from didyma.text.features.part import Part
from didyma.text.features.reading import Reading
from didyma.text.features.small import NAMES
from didyma.text.vector_store import VectorStore

MEANING, AGREEMENT, NO_VECTOR = "meaning", "meaning agreement", "meaning missing"
COVERAGE = NAMES.index("stem_idf_coverage")
SAMPLE = 64  # rows that the median is read off
BRIEF = 8  # texts of a batch where there is a deadline

Vectors = NDArray[np.float32]


class Meaning(Part):
    """Nearness of a query and a document, or a window of it, by an encoder.

    meaning
        Cosine of the two vectors. A document may bring its own along, else it is embedded.
    meaning agreement
        The cosine times the share of the query's stems, by idf, that the document has.
    meaning missing
        Whether there was no vector: the cosine is the median in training then.
    meaning.FIELD
        Cosine of the query and a text field, the median where the field is empty.

    >>> from didyma.data.lists import Lists
    >>> from didyma.text.features.union import TextFeatures
    >>> def letters(texts):
    ...     return [[text.count(letter) + 0.1 for letter in "abc"] for text in texts]
    >>> lists = Lists.of_texts(["aab"], [["ba", "cc", "b"]])
    >>> features = TextFeatures([Meaning(letters)]).fit(lists)
    >>> features.transform(lists)[:, 0].round(2).tolist()
    [0.95, 0.11, 0.54]

    Parameters
    ----------
    encoder : as `didyma.text.encoders.resolve` takes it, or None
        Without one, queries and documents must bring their vectors along.
    store : VectorStore or path, optional
        Where vectors of documents are kept: what it has is not embedded, what it lacks is added in
        batches, so that a run which was interrupted goes on where it was.
    budget : int, optional
        Texts of a list that are embedded at most; those beyond it have no vector.
    on_encoded : callable, optional
        Called with the number of texts that were embedded, after each batch. Not saved.
    fields : sequence of str
        Text fields of documents that are embedded as well.

    A saved model holds the name of the encoder and its vectors of a few texts, by which it is known
    again; what is no package with weights of its own is given back by `attach`.
    """

    descriptions: ClassVar = {
        MEANING: "similarity of meaning",
        AGREEMENT: "similarity of meaning, and words in common",
        NO_VECTOR: "no vector",
    }
    _name: Annotated[str, Saved(key="encoder")]
    _fingerprint: Annotated[Fingerprint, Saved()]
    median_: Annotated[float, Saved()]
    fields: Annotated[tuple[str, ...], Saved(default=())]
    field_medians_: Annotated[tuple[float, ...], Saved(default=())]
    encoder: Encoder | None = None
    store: VectorStore | None = None
    budget: int | None = None
    on_encoded: Callable[[int], object] | None = None

    def __init__(
        self,
        encoder: Any = None,
        store: Any = None,
        budget: int | None = None,
        on_encoded: Callable[[int], object] | None = None,
        fields: Sequence[str] = (),
    ) -> None:
        self.encoder = None if encoder is None else resolve(encoder)
        self.store = None if store is None else VectorStore.at(store)
        self.budget, self.on_encoded, self.fields = budget, on_encoded, tuple(fields)
        self._name = "" if self.encoder is None else self.encoder.name
        self._fingerprint = Fingerprint(np.zeros((0, 0), np.float32))
        self._sample: dict[str, Vectors] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return (*self.descriptions, *(f"{MEANING}.{field}" for field in self.fields))

    def attach(self, encoder: Any = None, store: Any = None) -> Self:
        """Use an encoder again that is not part of a saved model, and vectors that are kept."""
        if encoder is not None:
            self.encoder = restore(self._name, self._fingerprint, encoder)
        if store is not None:
            self.store = VectorStore.at(store)
        return self

    def fit(self, reading: Reading) -> Self:
        """Remember the encoder's fingerprint, and the median of some cosines."""
        if self.encoder is not None:
            self._fingerprint = self.encoder.fingerprint
        vars(self).pop("median_", None)
        rows = np.unique(np.linspace(0, len(reading) - 1, SAMPLE).astype(np.int64))
        self.median_, *others = map(_median, self._cosines(reading, rows))
        self.field_medians_ = tuple(others)
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Columns of each row; shape (n_rows, n_columns)."""
        _late.set(0)
        cosines = self._cosines(reading, np.arange(len(reading)))
        is_missing = np.isnan(cosines)
        medians = np.array([self.median_, *self.field_medians_])
        whole, *fields = np.where(is_missing, medians[:, None], cosines)
        agreement = whole * reading.overlaps[:, COVERAGE]
        return np.stack([whole, agreement, is_missing[0], *fields], axis=1)

    def _cosines(self, reading: Reading, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of some rows, NaN where a vector is missing; shape (1 + n_fields, n_rows)."""
        query, document = reading.query_of_row[rows], reading.document[rows]
        queries = self._query_vectors(reading)
        cosines = np.full((1 + len(self.fields), len(rows)), np.nan)
        if queries is None:
            return cosines
        attributes = reading.lists.attributes
        document_vectors = None if attributes is None else attributes.vectors
        if document_vectors is not None:
            if document_vectors.shape[1] != queries.shape[1]:
                raise DataError(
                    f"expected vectors of {queries.shape[1]} numbers, as queries have, found "
                    f"{document_vectors.shape[1]}",
                    field="vectors",
                )
            cosines[0] = _cosines(document_vectors[document], queries[query])
        if self.encoder is None or (self.budget == 0 and self.store is None):
            return cosines
        columns = [[reading.texts[n] for n in reading.rows[rows].tolist()]]
        for field in self.fields:
            field_texts = () if attributes is None else attributes.fields.get(field, ())
            columns.append([field_texts[n] if len(field_texts) else "" for n in document.tolist()])
        is_asked = np.isfinite(queries[query, 0])
        spent: dict[int, int] = {}
        for number, texts in enumerate(columns):
            is_there = np.array([number == 0 or bool(text.strip()) for text in texts], bool)
            todo = np.flatnonzero(np.isnan(cosines[number]) & is_asked & is_there)
            if len(todo):
                wanted = [texts[n] for n in todo.tolist()]
                vectors = self._document_vectors(wanted, query[todo].tolist(), spent)
                cosines[number, todo] = _cosines(vectors, queries[query[todo]])
        return cosines

    def _query_vectors(self, reading: Reading) -> Vectors | None:
        """A vector for each list, those given with the lists first; None if there are none."""
        vectors = reading.lists.query_vectors
        if self.encoder is None or (vectors is not None and np.isfinite(vectors).all()):
            return vectors
        texts = [reading.texts[n] for n in reading.queries.tolist()]
        distinct = {text: n for n, text in enumerate(dict.fromkeys(texts))}
        encoded = self.encoder.encode_queries(list(distinct))[[distinct[text] for text in texts]]
        if vectors is None:
            return encoded
        return np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, encoded)

    def _document_vectors(
        self, texts: list[str], lists: list[int], spent: dict[int, int]
    ) -> Vectors:
        """Vectors of texts; NaN for those beyond what is left of the budget of their list."""
        assert self.encoder is not None
        vector_of = dict(self._sample)
        if self.store is not None:
            distinct = list(dict.fromkeys(texts))
            stored = self.store.get(self.encoder, distinct, "document", budget=0)
            vector_of |= {
                text: vector for text, vector in zip(distinct, stored) if np.isfinite(vector[0])
            }
        wanted: dict[str, None] = {}
        for text, number in zip(texts, lists):
            if text in vector_of or text in wanted:
                continue
            if self.budget is None or spent.get(number, 0) < self.budget:
                spent[number] = spent.get(number, 0) + 1
                wanted[text] = None
        if wanted:
            vector_of |= dict(zip(wanted, self._encoded(self.encoder, list(wanted))))
        if self.budget is None and not hasattr(self, "median_"):
            self._sample = vector_of  # which are not embedded twice
        missing = np.full(self.encoder.dimension, np.nan, np.float32)
        return np.stack([vector_of.get(text, missing) for text in texts])

    def _encoded(self, encoder: Encoder, texts: list[str]) -> Vectors:
        """Vectors of texts, made in batches, and kept if there is a store; NaN if time is over."""
        has_deadline = isfinite(time_left())
        if self.store is not None and not has_deadline:
            self.store.fill(encoder, texts, callback=self.on_encoded)
            return self.store.get(encoder, texts)
        vectors = np.full((len(texts), encoder.dimension), np.nan, np.float32)
        size, seconds = min(encoder.batch_size, BRIEF if has_deadline else inf), 0.0
        for start in range(0, len(texts), int(size)):
            if time_left() <= seconds:
                _late.set(_late.get() + len(texts) - start)
                break
            began = time.monotonic()
            batch = texts[start : start + int(size)]
            vectors[start : start + len(batch)] = (
                encoder.encode_documents(batch)
                if self.store is None
                else self.store.get(encoder, batch)
            )
            seconds = time.monotonic() - began  # as long as the next may take
            if self.on_encoded is not None:
                self.on_encoded(start + len(batch))
        return vectors

    def _check_state(self) -> None:
        if len(self.fields) != len(self.field_medians_):
            raise ValueError("expected a median for each field")
        if self._name:
            self.encoder = restore(self._name, self._fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_sample": {}, "on_encoded": None}


def _median(values: NDArray[np.float64]) -> float:
    """The median of those that are not NaN, 0 of none."""
    present = values[~np.isnan(values)]
    return float(np.median(present)) if len(present) else 0.0


_late: ContextVar[int] = ContextVar("late", default=0)


def texts_too_late() -> int:
    """How many texts were not embedded by the last call on this thread, as time was over."""
    return _late.get()


def _cosines(first: Vectors, second: Vectors) -> NDArray[np.float64]:
    """Cosine of each row of two matrices; 0 where one is zero, NaN where one is missing."""
    products = np.einsum("ij,ij->i", first, second, dtype=np.float64)
    lengths = np.sqrt(
        np.einsum("ij,ij->i", first, first, dtype=np.float64)
        * np.einsum("ij,ij->i", second, second, dtype=np.float64)
    )
    cosines: NDArray[np.float64] = np.divide(
        products, lengths, out=np.zeros(len(products)), where=lengths != 0
    )
    return cosines
