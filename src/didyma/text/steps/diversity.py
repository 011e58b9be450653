"""Maximal marginal relevance: documents that resemble better ones come later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.field_kinds import vector_in
from didyma.errors import DataError
from didyma.execution import check_interruption
from didyma.ranking.ranked import Ranked
from didyma.text.features.lexicon import Lexicon
from didyma.text.steps.step import Step, Values, check_weight, in_document

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VECTOR, WORDS = "vector", "words"

Similarity: TypeAlias = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True)
class Diversity(Step):
    """Picks documents one after the other, by relevance and by what was not yet picked.

    Each time the one is next that has the greatest

        (1 − weight) · value − weight · greatest similarity to one that was picked.

    That is maximal marginal relevance (Carbonell and Goldstein, 1998), with λ = 1 − weight. It is
    the last of all steps.

    >>> from didyma.ranking import Ranking
    >>> from didyma.text import take_steps
    >>> texts = ["Ida Roth built it.", "It was built by Ida Roth.", "The castle burned down."]
    >>> found = Ranking(Ranked(n, 0.9 - n / 10, text=text) for n, text in enumerate(texts))
    >>> [one.index for one in take_steps(found, [Diversity(0.3)])]
    [0, 2, 1]

    Parameters
    ----------
    weight : float
        Of similarity against relevance, in (0, 1].
    by : str, optional
        What makes documents similar: "words", the cosine of their words (`word_vectors`); or a
        field: the cosine where it has vectors, below 0 as 0, else 1 where values are equal. Unless
        given, the field "vector" if all documents have one, else words.
    """

    weight: float
    by: str | None = None
    name = "diversity"
    is_last = True

    def __post_init__(self) -> None:
        check_weight(self.weight)

    @property
    def fields(self) -> tuple[str, ...]:
        """The field that was asked for."""
        return () if self.by in (None, WORDS) else (self.by,)

    def values(
        self, documents: Sequence[Ranked], values: Values, top_k: int
    ) -> tuple[Values, list[str]]:
        """The value that each has when it is picked; others stay below all of these."""
        similarity = similarity_of(documents, self.by)
        relevant = (1 - self.weight) * values
        nearest, near = np.zeros(len(documents)), np.full(len(documents), -1)
        marginal, is_left = relevant.copy(), np.ones(len(documents), np.bool_)
        for _ in range(min(top_k, len(documents))):
            check_interruption()
            pick = int(np.argmax(np.where(is_left, marginal, -np.inf)))
            is_left[pick] = False
            closer = np.where(is_left, similarity(pick), 0.0)
            near[closer > nearest] = pick
            nearest = np.maximum(nearest, closer)
            marginal[is_left] = (relevant - self.weight * nearest)[is_left]
        return marginal, [
            "like none before" if other < 0 else _like(documents[other], nearest[n])
            for n, other in enumerate(near.tolist())
        ]


def _like(other: Ranked, similarity: float) -> str:
    name = f"document {other.index}" if other.id is None else f"{other.id!s:.40}"
    return f"like {name} by {similarity:.2f}"


def similarity_of(documents: Sequence[Ranked], by: str | None) -> Similarity:
    """The similarity of one document to each."""
    if by is None:
        has_all = all(document.metadata.get(VECTOR) is not None for document in documents)
        by = VECTOR if has_all else WORDS
    if by == WORDS:
        rows = word_vectors([document.text for document in documents])
        return lambda n: rows @ rows[[n]].toarray()[0]
    values = [document.metadata.get(by) for document in documents]
    if any(isinstance(value, list | tuple | np.ndarray) for value in values):
        vectors = _vectors(documents, values, by)
        return lambda n: np.maximum(vectors @ vectors[n], 0.0)
    groups = _groups(documents, values, by)
    return lambda n: ((groups == groups[n]) & (groups >= 0)).astype(np.float64)


def word_vectors(texts: Sequence[str]) -> csr_array:
    """Rows of unit length whose products are the cosines of texts.

    A word that occurs c times in a text, and in d of all n texts, weighs (1 + log c) · log(1 + n/d)
    in it: what all documents share, as the words of a query, hardly counts.

    >>> rows = word_vectors(["a castle", "the castle", "rain"])
    >>> (rows @ rows.T).toarray().round(2)
    array([[1. , 0.3, 0. ],
           [0.3, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    from scipy.sparse import csr_array

    tokens = Lexicon(None).read(texts)
    row = np.repeat(np.arange(len(texts)), np.diff(tokens.begins))
    shape = (len(texts), int(tokens.terms.max(initial=-1)) + 1)
    counts = csr_array((np.ones(len(row)), (row, tokens.terms)), shape=shape)
    counts.sum_duplicates()
    in_texts = np.bincount(counts.indices, minlength=shape[1])
    counts.data = (1 + np.log(counts.data)) * np.log1p(len(texts) / in_texts[counts.indices])
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts.data /= np.repeat(lengths, np.diff(counts.indptr))
    return counts


def _vectors(documents: Sequence[Ranked], values: list[Any], by: str) -> NDArray[np.float64]:
    """Vectors of unit length; of documents without one, zeros."""
    dimension = len(next(one for one in values if isinstance(one, list | tuple | np.ndarray)))

    def fail(row: int, problem: str) -> Any:
        raise DataError(problem, field=in_document(documents[row], by))

    vectors = np.zeros((len(values), dimension))
    for row, value in enumerate(values):
        if value is not None:
            vectors[row] = vector_in(value, fail, row, dimension)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(lengths == 0, 1.0, lengths)
    return unit


def _groups(documents: Sequence[Ranked], values: list[Any], by: str) -> NDArray[np.int64]:
    """A number for each value; -1 where there is none."""
    numbers: dict[Any, int] = {}
    groups = []
    for document, value in zip(documents, values):
        if not isinstance(value, str | int | float | None):
            raise DataError(
                f"expected a text, a number or a vector, found {value!r:.40}",
                field=in_document(document, by),
            )
        groups.append(-1 if value is None else numbers.setdefault(value, len(numbers)))
    return np.array(groups, np.int64)
