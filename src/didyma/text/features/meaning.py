"""Cosines of a query and a document as vectors of a sentence encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.model import Saved
from didyma.text.encoders import Encoder, Fingerprint, resolve, restore
from didyma.text.features.part import Part
from didyma.text.features.reading import Reading
from didyma.text.features.small import NAMES
from didyma.text.vector_store import VectorStore

__all__ = ["AGREEMENT", "MEANING", "NO_VECTOR", "Meaning"]

MEANING, AGREEMENT, NO_VECTOR = "meaning", "meaning agreement", "meaning missing"
COVERAGE = NAMES.index("stem_idf_coverage")
SAMPLE = 64  # rows that the median is read off

Vectors = NDArray[np.float32]


class Meaning(Part):
    """Nearness of a query and a document, or a window of it, by an encoder.

    meaning
        Cosine of the two vectors. A document may bring its own along, else it is embedded.
    meaning agreement
        The cosine times the share of the query's stems, by idf, that the document has.
    meaning missing
        Whether there was no vector: the cosine is the median in training then.

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

    A saved model holds the name of the encoder and its vectors of a few texts, by which it is known
    again; what is no package with weights of its own is given back by `attach`.
    """

    _name: Annotated[str, Saved(key="encoder")]
    _fingerprint: Annotated[Fingerprint, Saved()]
    median_: Annotated[float, Saved()]
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
    ) -> None:
        self.encoder = None if encoder is None else resolve(encoder)
        self.store = None if store is None else VectorStore.at(store)
        self.budget, self.on_encoded = budget, on_encoded
        self._name = "" if self.encoder is None else self.encoder.name
        self._fingerprint = Fingerprint(np.zeros((0, 0), np.float32))
        self._sample: dict[str, Vectors] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return (MEANING, AGREEMENT, NO_VECTOR)

    @property
    def encoder_name(self) -> str:
        """What the encoder is called, nothing if there is none."""
        return self._name

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
        cosines = self._cosines(reading, rows)
        present = cosines[~np.isnan(cosines)]
        self.median_ = float(np.median(present)) if len(present) else 0.0
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Columns of each row; shape (n_rows, 3)."""
        cosines = self._cosines(reading, np.arange(len(reading)))
        is_missing = np.isnan(cosines)
        cosines[is_missing] = self.median_
        return np.stack([cosines, cosines * reading.overlaps[:, COVERAGE], is_missing], axis=1)

    def _cosines(self, reading: Reading, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of some rows, NaN where a vector is missing."""
        lists, query = reading.lists, reading.query_of_row[rows]
        queries = self._query_vectors(reading)
        cosines = np.full(len(rows), np.nan)
        if queries is None:
            return cosines
        given = None if lists.attributes is None else lists.attributes.vectors
        if given is not None:
            if given.shape[1] != queries.shape[1]:
                raise DataError(
                    f"expected vectors of {queries.shape[1]} numbers, as queries have, found "
                    f"{given.shape[1]}",
                    field="vectors",
                )
            cosines[:] = _cosines(given[reading.document[rows]], queries[query])
        if self.encoder is None or (self.budget == 0 and self.store is None):
            return cosines
        todo = np.flatnonzero(np.isnan(cosines) & np.isfinite(queries[query, 0]))
        if len(todo):
            texts = [reading.texts[n] for n in reading.rows[rows[todo]].tolist()]
            vectors = self._document_vectors(texts, query[todo].tolist())
            cosines[todo] = _cosines(vectors, queries[query[todo]])
        return cosines

    def _query_vectors(self, reading: Reading) -> Vectors | None:
        """A vector for each list, those given with the lists first; None if there are none."""
        given = reading.lists.query_vectors
        if given is not None and np.isfinite(given).all():
            return given
        if self.encoder is None:
            return given
        texts = [reading.texts[n] for n in reading.queries.tolist()]
        distinct = {text: n for n, text in enumerate(dict.fromkeys(texts))}
        vectors = self.encoder.encode_queries(list(distinct))
        own: Vectors = vectors[[distinct[text] for text in texts]]
        if given is None:
            return own
        return np.where(np.isfinite(given).all(axis=1, keepdims=True), given, own)

    def _document_vectors(self, texts: list[str], lists: list[int]) -> Vectors:
        """Vectors of texts; NaN for those beyond the budget of their list."""
        assert self.encoder is not None
        known = dict(self._sample)
        if self.store is not None:
            distinct = list(dict.fromkeys(texts))
            stored = self.store.get(self.encoder, distinct, "document", budget=0)
            known |= {
                text: vector for text, vector in zip(distinct, stored) if np.isfinite(vector[0])
            }
        wanted: dict[str, None] = {}
        spent: dict[int, int] = {}
        for text, number in zip(texts, lists):
            if text in known or text in wanted:
                continue
            if self.budget is None or spent.get(number, 0) < self.budget:
                spent[number] = spent.get(number, 0) + 1
                wanted[text] = None
        if wanted:
            known |= dict(zip(wanted, self._encoded(self.encoder, list(wanted))))
        if self.budget is None and not hasattr(self, "median_"):
            self._sample = known  # which are not embedded twice
        missing = np.full(self.encoder.dimension, np.nan, np.float32)
        return np.stack([known.get(text, missing) for text in texts])

    def _encoded(self, encoder: Encoder, texts: list[str]) -> Vectors:
        """Vectors of texts, made in batches, and kept if there is a store."""
        if self.store is not None:
            self.store.fill(encoder, texts, callback=self.on_encoded)
            return self.store.get(encoder, texts)
        vectors = np.empty((len(texts), encoder.dimension), np.float32)
        for start in range(0, len(texts), encoder.batch_size):
            batch = texts[start : start + encoder.batch_size]
            vectors[start : start + len(batch)] = encoder.encode_documents(batch)
            if self.on_encoded is not None:
                self.on_encoded(start + len(batch))
        return vectors

    def _check_state(self) -> None:
        if self._name:
            self.encoder = restore(self._name, self._fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_sample": {}, "on_encoded": None}


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
