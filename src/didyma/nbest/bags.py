"""Views of inputs and outputs: bags of features, or vectors that items come with.

A bag counts how often each suffix, n-gram or piece of a word occurs in a text.

>>> bag = Bag("suffixes").learn(["selling pressure", "the selling"])
>>> bag.names
('-ng', '-ing', '-ling', '-re', '-ure', '-sure', '-he', '-the')
>>> bag.count(["telling ring"]).toarray().tolist()
[[2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError, check_choice
from didyma.model import Saved
from didyma.nbest.formats import Input, Output, inputs_of, outputs_of
from didyma.parameters import check_parameter
from didyma.protocol import check_is_fitted
from didyma.ranking.featuriser import LearnedFeatures

TokenText: TypeAlias = "str | Sequence[str]"
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def suffixes(word: str, lengths: Sequence[int] = (2, 3, 4)) -> list[str]:
    """The ends of a word, as far as it is long enough.

    >>> suffixes("the")
    ['-he', '-the']
    """
    return [f"-{word[-n:]}" for n in lengths if len(word) >= n]


def character_pieces(word: str, lengths: Sequence[int] = (1, 2)) -> list[str]:
    """Characters in a row within a word.

    >>> character_pieces("abc")
    ['a', 'b', 'c', 'ab', 'bc']
    """
    return [word[i : i + n] for n in lengths for i in range(len(word) - n + 1)]


def ngrams(tokens: Sequence[str], lengths: Sequence[int] = (1, 2)) -> Iterator[str]:
    """Tokens in a row.

    >>> list(ngrams(["DT", "NN", "NN"]))
    ['DT', 'NN', 'NN', 'DT NN', 'NN NN']
    """
    for n in lengths:
        if n == 1:
            yield from tokens
        else:
            yield from map(" ".join, zip(*(tokens[k:] for k in range(n))))


class Memory(dict[Key, Value]):
    """A cache of what a function returns."""

    def __init__(self, function: Callable[[Key], Value]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self.function(key)
        return value


class FeatureColumns:
    """Names of features and the column of each.

    >>> vocabulary = FeatureColumns.count([["a", "b"], ["b"]], min_count=2)
    >>> vocabulary.names, vocabulary.columns(["b", "c", "b"])
    (('b',), [0, 0])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._column = {name: column for column, name in enumerate(self.names)}

    @classmethod
    def count(cls, rows: Iterable[Iterable[str]], min_count: int = 1) -> Self:
        """The names that occur at least so often, in the order in which they first do."""
        check_parameter("min_count", min_count)
        counts = Counter(chain.from_iterable(rows))
        return cls(name for name, n in counts.items() if n >= min_count)

    @classmethod
    def decode(cls, codes: NDArray[np.uint8]) -> Self:
        """The inverse of `encode`."""
        return cls(codes.tobytes().decode().split("\n") if len(codes) else ())

    def encode(self) -> NDArray[np.uint8]:
        """The names, none of which may be broken into lines, as an array for a model file."""
        text = "\n".join(self.names)
        if self.names and text.count("\n") >= len(self.names):
            raise DataError("a feature whose name has several lines cannot be saved")
        return np.frombuffer(bytearray(text.encode()), np.uint8)

    def __len__(self) -> int:
        return len(self.names)

    def columns(self, names: Iterable[str]) -> list[int]:
        """The column of each name that has one; others are left out."""
        columns = map(self._column.get, names)
        return [column for column in columns if column is not None]

    def matrix(self, rows: Iterable[Iterable[int]]) -> sp.csr_array:
        """How often each column occurs in each row; shape (n_rows, n_names)."""
        starts, columns = array("q", [0]), array("q")
        for row in rows:
            columns.extend(row)
            starts.append(len(columns))
        counts = sp.csr_array(
            (np.ones(len(columns)), np.asarray(columns), np.asarray(starts)),
            shape=(len(starts) - 1, len(self)),
        )
        counts.sum_duplicates()
        return counts

    def values(self, rows: Iterable[Mapping[str, float]]) -> sp.csr_array:
        """The value of each name in each row, 0 where it has none; shape (n_rows, n_names)."""
        starts, columns, values = array("q", [0]), array("q"), array("d")
        for row in rows:
            named = {name: value for name, value in row.items() if name in self._column}
            columns.extend(self.columns(named))
            values.extend(named.values())
            starts.append(len(columns))
        return sp.csr_array(
            (np.asarray(values), np.asarray(columns), np.asarray(starts)),
            shape=(len(starts) - 1, len(self)),
        )


# What a text is cut into: pieces of each word, or n-grams of words; and lengths to begin with.
PIECES: dict[str, Callable[[str, Sequence[int]], list[str]]] = {
    "suffixes": suffixes,
    "characters": character_pieces,
}
VECTORS = "vectors"
KINDS = {"suffixes": (2, 3, 4), "n-grams": (1, 2), "characters": (1, 2)}


@dataclass(eq=False, repr=False)
class Bag(LearnedFeatures):
    """Texts as sparse counts of their features; those that training did not show are left out.

    As a featuriser it counts what is in the items of `Lists`, texts or outputs.

    Parameters
    ----------
    kind : {"suffixes", "n-grams", "characters"}
        Ends of words, words (or tags) in a row, or characters in a row within a word.
    lengths : sequence of int, optional
        Their lengths: 2, 3, 4 for suffixes and 1, 2 for others by default.
    min_count : int
        How often a feature must occur in training to be kept.

    Attributes
    ----------
    vocabulary_ : FeatureColumns

    >>> bag = Bag("n-grams", min_count=2).learn([["DT", "NN"], "DT NN NN"])
    >>> bag.names
    ('DT', 'NN', 'DT NN')
    """

    kind: str = "suffixes"
    lengths: Sequence[int] | None = None
    min_count: int = 1

    vocabulary_: FeatureColumns = field(init=False)

    def fit(self, lists: Lists) -> Self:
        """Learn the features of the items."""
        self._check_parameters()
        return self.learn(_texts(lists))

    def transform(self, lists: Lists) -> sp.csr_array:
        """How often each feature occurs in each item; shape (n_rows, n_features)."""
        return self.count(_texts(lists))

    def learn(self, texts: Iterable[TokenText]) -> Self:
        """Learn the features of texts, each a list of tokens or text with white space between."""
        features = self._features()
        self.vocabulary_ = FeatureColumns.count(map(features, _tokenised(texts)), self.min_count)
        return self

    def count(self, texts: Iterable[TokenText]) -> sp.csr_array:
        """How often each feature occurs in each text; shape (n_texts, n_features)."""
        check_is_fitted(self, "vocabulary_")
        vocabulary = self.vocabulary_
        if self.kind in PIECES:
            columns = Memory[str, list[int]](lambda word: vocabulary.columns(self._pieces(word)))
            cut = _tokenised(texts)
            return vocabulary.matrix(
                chain.from_iterable(columns[word] for word in text) for text in cut
            )
        return vocabulary.matrix(map(vocabulary.columns, map(self._features(), _tokenised(texts))))

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        check_is_fitted(self, "vocabulary_")
        return self.vocabulary_.names

    @property
    def names_(self) -> Annotated[NDArray[np.uint8], Saved("letters")]:
        """The vocabulary as an array, for model files."""
        check_is_fitted(self, "vocabulary_")
        return self.vocabulary_.encode()

    @names_.setter
    def names_(self, codes: NDArray[np.uint8]) -> None:
        self.vocabulary_ = FeatureColumns.decode(codes)

    def _features(self) -> Callable[[Sequence[str]], Iterable[str]]:
        """The function that cuts a text into features."""
        self._check()
        if self.kind in PIECES:
            pieces = Memory(self._pieces)
            return lambda tokens: chain.from_iterable(pieces[word] for word in tokens)
        return lambda tokens: ngrams(tokens, self._lengths)

    def _pieces(self, word: str) -> list[str]:
        return PIECES[self.kind](word, self._lengths)

    @property
    def _lengths(self) -> Sequence[int]:
        return KINDS[self.kind] if self.lengths is None else self.lengths

    def _check(self) -> None:
        check_choice(self.kind, KINDS, "kind")
        if not self._lengths or min(self._lengths) < 1:
            raise DataError(f"expected lengths from 1 up, found {self.lengths!r}", field="lengths")


def _texts(lists: Lists) -> Iterator[str]:
    return (item if isinstance(item, str) else item.text for item in lists.items)


def _tokenised(texts: Iterable[TokenText]) -> Iterator[Sequence[str]]:
    if isinstance(texts, str):
        raise DataError("expected texts, found one text")
    for text in texts:
        yield text.split() if isinstance(text, str) else text


class GivenVectors(LearnedFeatures):
    """The entries of the vector that each item has, all of one length.

    >>> lists = Lists([Output("NN", vector=np.array([1.0, 2.0]))])
    >>> GivenVectors().fit(lists).transform(lists).tolist()
    [[1.0, 2.0]]
    """

    length_: Annotated[int, Saved()]

    @property
    def names(self) -> tuple[str, ...]:
        """The number of each entry."""
        check_is_fitted(self, "length_")
        return tuple(map(str, range(self.length_)))

    def fit(self, lists: Lists) -> Self:
        """Learn their length."""
        self.length_ = _stacked_vectors(lists).shape[1]
        return self

    def transform(self, lists: Lists) -> NDArray[np.float64]:
        """The vector of each item; shape (n_rows, length)."""
        check_is_fitted(self, "length_")
        rows = _stacked_vectors(lists)
        if len(rows) and rows.shape[1] != self.length_:
            raise DataError(
                f"expected vectors of length {self.length_}, found {rows.shape[1]}", field="vectors"
            )
        return rows.reshape(len(rows), self.length_)


View: TypeAlias = Bag | GivenVectors


def learn_views(
    lists: Lists, input_view: str, output_view: str, min_count: int
) -> tuple[View, View]:
    """The views of inputs and of outputs; outputs learn from references too, if they are bags.

    "auto" is vectors where all items have them, else suffixes of inputs and n-grams of outputs.
    """
    inputs, outputs = inputs_of(lists), outputs_of(lists)
    of_input = _view(input_view, "suffixes", inputs, min_count)
    of_output = _view(output_view, "n-grams", outputs, min_count)
    right = [Output(input.reference) for input in inputs if input.reference is not None]
    of_input.fit(Lists(written_inputs(lists) if isinstance(of_input, Bag) else inputs))
    of_output.fit(Lists([*right, *outputs] if isinstance(of_output, Bag) else outputs))
    for view, side in ((of_input, "inputs"), (of_output, "outputs")):
        if not view.names:
            raise DataError(f"{side} have no feature that occurs so often", field="min_count")
    return of_input, of_output


def _view(kind: str, default: str, items: Sequence[Any], min_count: int) -> View:
    if kind == "auto":
        kind = default if any(item.vector is None for item in items) else VECTORS
    return GivenVectors() if kind == VECTORS else Bag(kind, min_count=min_count)


def written_inputs(lists: Lists) -> list[Input]:
    """The inputs, once it is sure that all of them have texts."""
    inputs = list(inputs_of(lists))
    for name, input in zip(lists.groups.names, inputs):
        if input.text is None:
            raise DataError("expected an input, found none", field=f"list {str(name)!r}")
    return inputs


def _stacked_vectors(lists: Lists) -> NDArray[np.float64]:
    vectors = [item.vector for item in lists.items]
    lengths = {0 if vector is None else len(vector) for vector in vectors}
    if 0 in lengths or len(lengths) > 1:
        raise DataError(f"expected vectors of one length, found {sorted(lengths)}", field="vectors")
    return np.array(vectors, dtype=np.float64).reshape(len(vectors), max(lengths, default=0))
