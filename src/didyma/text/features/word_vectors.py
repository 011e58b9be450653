"""Vectors of words, from any table or model that the user has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma._core.text import nearnesses
from didyma.errors import DataError
from didyma.model import Saved
from didyma.text.features.lexicon import Lexicon, Vocabulary
from didyma.text.features.part import Part
from didyma.text.features.reading import Reading
from didyma.values import kind_of

WORDLLAMA = "wordllama"
SAMPLE = 32  # words whose vectors a saved model remembers, to know its table again

Lookup: TypeAlias = Callable[[list[str]], NDArray[np.float32]]


class WordVectors(Part):
    """Nearness of a query and a passage as vectors of those content words that have one.

    vector_cosine
        Cosine of the sums of the distinct words' vectors, by idf.
    vector_coverage
        Mean over the query's words, by idf, of the best cosine with a word of the passage.
    vector_reverse_coverage
        Mean over the passage's words, by idf, of the best cosine with a word of the query.

    >>> from didyma.data.lists import Lists
    >>> from didyma.text.features.union import TextFeatures
    >>> table = {"ship": [1, 0.2], "boat": [1, 0.3], "tree": [0, 1]}
    >>> lists = Lists.of_texts(["ship"], [["a boat", "a tree", "the sky"]])
    >>> features = TextFeatures([WordVectors(table)]).fit(lists)
    >>> features.transform(lists)[:, 1].round(2).tolist()
    [1.0, 0.2, 0.0]

    Parameters
    ----------
    source : mapping, callable, or "wordllama"
        From terms (words in lower case) to vectors: a mapping has them; a callable turns a list of
        them into an array (n_terms, dimension). It is asked once about each word of the
        collection that was learned from, and about others whenever they are met.
        "wordllama" is the table inside the package of that name.

    A saved model holds no table, only its name if it has one; without, `attach` gives it back.
    """

    descriptions: ClassVar = {
        "vector_cosine": "similarity of the words' meanings",
        "vector_coverage": "each word of the question has a similar one",
        "vector_reverse_coverage": "each word of the passage has a similar one in the question",
    }
    _name: Annotated[str | None, Saved(key="source")]
    _terms: Annotated[list[str], Saved()]
    _sample: Annotated[NDArray[np.float32], Saved("terms", "dimension")]
    _lookup: Lookup | None = None
    _cache: _VectorCache | None = None

    def __init__(self, source: Any) -> None:
        self._name = WORDLLAMA if isinstance(source, str) else None
        self._lookup = None if source is None else _lookup(source)
        self._terms, self._sample = [], np.zeros((0, 0), np.float32)

    def attach(self, source: Any) -> Self:
        """Use a table again that is not part of a saved model; that it is the same is checked."""
        lookup = _lookup(source)
        if self._terms and not np.array_equal(lookup(self._terms), self._sample):
            raise DataError("other vectors than the model was trained with", field="vectors")
        self._lookup, self._cache = lookup, None
        return self

    def fit(self, reading: Reading) -> Self:
        """Remember some vectors."""
        vectors = self._vectors(reading)
        # A negative row counts from the end, where the second table stands in reverse.
        norms, every = (
            np.concatenate([first, second[::-1]])[vectors.rows]
            for first, second in (
                (vectors.known_norms, vectors.other_norms),
                (vectors.known, vectors.others),
            )
        )
        with_vector = np.flatnonzero(norms)[:SAMPLE]
        if not len(with_vector):
            raise DataError("expected vectors of some of the words, found none", field="vectors")
        terms = reading.lexicon.terms
        self._terms, self._sample = [terms[n] for n in with_vector], every[with_vector]
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Nearness of each row; shape (n_rows, 3)."""
        return nearnesses(reading.numbered(), *self._vectors(reading))

    def _check_state(self) -> None:
        if self._name is not None:  # others are attached
            self.attach(self._name)

    def _vectors(self, reading: Reading) -> _Vectors:
        """The vectors of the terms of a reading."""
        if self._lookup is None:
            raise DataError("expected the table the model was trained with", field="vectors")
        cache = self._cache
        if cache is None or cache.vocabulary is not reading.vocabulary:
            cache = self._cache = _VectorCache(reading.vocabulary)
        return cache.vectors_of(reading.lexicon, self._lookup)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cache": None}


class _Vectors(NamedTuple):
    """Vectors and norms in two tables: a term has row r of the first, or row ~r of the second."""

    rows: NDArray[np.int32]
    known: NDArray[np.float32]
    known_norms: NDArray[np.float32]
    others: NDArray[np.float32]
    other_norms: NDArray[np.float32]


class _Table(NamedTuple):
    """Vectors and norms by place in a vocabulary, where they are there."""

    is_there: NDArray[np.bool_]
    vectors: NDArray[np.float32]
    norms: NDArray[np.float32]


class _VectorCache:
    """Vectors of those words of a vocabulary that were asked for.

    Threads share it without a lock: a word is marked when its vector is there, and two threads that
    ask for one word write the same.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._table = self._empty(0)

    def vectors_of(self, lexicon: Lexicon, lookup: Lookup) -> _Vectors:
        """The vectors of the terms of a lexicon."""
        table, places = self._table, lexicon.term_places
        unknown = np.flatnonzero((places < 0) | ~table.is_there[places])
        answers = np.zeros((0, table.vectors.shape[1]), np.float32)
        if len(unknown):
            terms = lexicon.terms
            answers = lookup([terms[n] for n in unknown.tolist()])
            if not table.vectors.shape[1]:
                table = self._table = self._empty(answers.shape[1])
        norms = np.sqrt((answers**2).sum(axis=1))
        is_listed = places[unknown] >= 0
        listed = places[unknown[is_listed]]
        table.vectors[listed], table.norms[listed] = answers[is_listed], norms[is_listed]
        table.is_there[listed] = True
        rows, others = places.copy(), unknown[~is_listed]
        rows[others] = ~np.arange(len(others), dtype=np.int32)
        return _Vectors(rows, *table[1:], answers[~is_listed], norms[~is_listed])

    def _empty(self, width: int) -> _Table:
        n_terms = len(self.vocabulary.term_counts)
        vectors = np.zeros((n_terms, width), np.float32)
        return _Table(np.zeros(n_terms, np.bool_), vectors, np.zeros(n_terms, np.float32))


def _lookup(source: Any) -> Lookup:
    """From terms to an array of vectors, zeros where there is none."""
    if isinstance(source, str):
        if source != WORDLLAMA:
            raise DataError(f"expected {WORDLLAMA!r} or a table, found {source!r}", field="vectors")
        from didyma.text.encoders.static import SubwordTable

        return SubwordTable.installed()
    if isinstance(source, Mapping):
        shapes = {np.shape(vector) for vector in source.values()}
        if len(shapes) != 1 or len(*shapes) != 1:
            raise DataError("expected vectors of one length", field="vectors")
        return partial(_look_up, source, np.zeros(shapes.pop(), np.float32))
    if any(callable(getattr(source, method, None)) for method in ("encode", "embed")):
        raise DataError(
            f"expected vectors of single words, found {kind_of(source)}, which encodes sentences: "
            "give it as encoder=, or its method if single words are meant",
            field="vectors",
        )
    if not callable(source):
        raise DataError(
            f"expected a mapping or a callable, found {kind_of(source)}", field="vectors"
        )
    return partial(_ask, source)  # which, unlike a function in here, can be pickled


def _look_up(
    table: Mapping[str, Any], zero: NDArray[np.float32], terms: list[str]
) -> NDArray[np.float32]:
    return _checked([table.get(term, zero) for term in terms], len(terms))


def _ask(source: Callable[[list[str]], Any], terms: list[str]) -> NDArray[np.float32]:
    return _checked(source(terms), len(terms))


def _checked(vectors: Any, n: int) -> NDArray[np.float32]:
    array = np.asarray(vectors, np.float32)
    if array.ndim != 2 or len(array) != n or not np.isfinite(array).all():
        raise DataError(
            f"expected {n} finite vectors, found an array of shape {array.shape}", field="vectors"
        )
    return array
