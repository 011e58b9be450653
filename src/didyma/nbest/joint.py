"""Joint features of an input and a candidate, for models that are linear in them.

Three sets, of which the first two need candidates as long as their input (tags of words):

- "suffix": for each word, its suffixes with its tag, and with the tag before it too (the features
  of Collins & Koo's reranker in Jagarlamudi & Daumé 2012): ``-ing/NN``, ``-ing/DT NN``;
- "n-gram": tags in a row; the word, the words beside it and its pairs with them, each with the tag;
  the word with the tag before it too: ``DT NN``, ``w=selling/NN``, ``w-1=the/NN``,
  ``w=selling/DT NN``;
- "text": the candidate's own words, its pairs of words, and its length.

All sets add the numbers that come with a candidate: its ``features``, the entries of its ``vector``
and, if wanted, the decoder's score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Annotated, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError, check_choice
from didyma.model import Saved
from didyma.nbest.bags import FeatureColumns, ngrams, suffixes
from didyma.nbest.formats import Output, inputs_of, outputs_of
from didyma.protocol import check_is_fitted
from didyma.ranking.featuriser import LearnedFeatures

Window: TypeAlias = "tuple[str, ...]"
Vector: TypeAlias = "NDArray[np.float64]"
Code = TypeVar("Code", str, int)  # what rows are made of: names or columns

BEGIN, END = "<s>", "</s>"
DECODER, LENGTH = "decoder score", "length"
# Boosting asks whether a number is so many deviations above the mean of its list, or below it.
CUTS = (0.0, 0.5, 1.0, 1.5)
REMEMBERED = 1 << 16  # windows whose features are kept for the next candidate
TINY = 1e-9  # what is smaller, relative to the largest value of a number, is rounding


def suffix_features(window: Window) -> list[str]:
    """What the suffix set knows about (tag before, tag, word).

    >>> suffix_features(("DT", "NN", "ring"))
    ['-ng/NN', '-ng/DT NN', '-ing/NN', '-ing/DT NN', '-ring/NN', '-ring/DT NN']
    """
    before, tag, word = window
    return [f"{suffix}/{tags}" for suffix in suffixes(word) for tags in (tag, f"{before} {tag}")]


def ngram_features(window: Window) -> list[str]:
    """What the n-gram set knows about three tags in a row, the word of the last and its neighbours.

    >>> ngram_features(("<s>", "DT", "NN", "the", "ring", "is"))[:5]
    ['NN', 'DT NN', '<s> DT NN', 'w=ring/NN', 'w=ring/DT NN']
    """
    second, before, tag, left, word, right = window
    return [
        tag,
        f"{before} {tag}",
        f"{second} {before} {tag}",
        f"w={word}/{tag}",
        f"w={word}/{before} {tag}",
        f"w-1={left}/{tag}",
        f"w+1={right}/{tag}",
        f"w-1w={left} {word}/{tag}",
        f"ww+1={word} {right}/{tag}",
    ]


def _suffix_windows(words: Sequence[str], tags: Sequence[str]) -> Iterator[Window]:
    return zip([BEGIN, *tags], tags, words)


def _ngram_windows(words: Sequence[str], tags: Sequence[str]) -> Iterator[Window]:
    before = [BEGIN, *tags]
    return zip([BEGIN, *before], before, tags, [BEGIN, *words], words, [*words[1:], END])


# Aligned sets: the windows of a pair, and the features of a window.
ALIGNED: dict[str, tuple[Callable[..., Iterator[Window]], Callable[[Window], list[str]]]] = {
    "suffix": (_suffix_windows, suffix_features),
    "n-gram": (_ngram_windows, ngram_features),
}
SETS = ("auto", *ALIGNED, "text")


@dataclass(eq=False, repr=False)
class JointFeatures(LearnedFeatures):
    """N-best lists as one sparse matrix with a row for each candidate.

    Only differences within a list can change its order. So what all its candidates have equally
    often is left out there, features that make no difference in any training list get no column,
    and a number x becomes (x − mean of its list) / (deviation within training lists).

    Parameters
    ----------
    features : {"auto", "suffix", "n-gram", "text"}
        The set; "auto" is "suffix" if every candidate of the training lists has as many tokens as
        its input, otherwise "text".
    min_count : int
        In how many lists a feature must make a difference to be kept.
    decoder : bool
        Whether the decoder's score, where there is one, is a feature.
    binary : bool
        Whether numbers become indicators, as boosting needs them: ``lm > 0.5`` says that lm is
        more than half a deviation above the mean of its list.

    Attributes
    ----------
    features_ : str
        The set in use.
    vocabulary_ : FeatureColumns
        Names of the features that are counted.
    numbers_ : FeatureColumns
        Names of the numbers; those of the entries of a vector come last.
    vector_length_ : int
        How many entries the vectors of candidates have; 0 if there are none.
    deviations_ : array of shape (n_numbers,)
        Deviation of each number within lists, infinite if it never differs.

    >>> from didyma.nbest.formats import of_outputs
    >>> lists = of_outputs(["the ring"], [["DT NN", "DT VB"]], scores=[[-3.0, -5.0]])
    >>> joint = JointFeatures().fit(lists)
    >>> [joint.names[k] for k in (0, 6, 12)]
    ['-ng/NN', '-ng/VB', 'decoder score']
    >>> joint.transform(lists).toarray().astype(int)[:, [0, 6, 12]].tolist()
    [[1, 0, 1], [0, 1, -1]]
    """

    features: str = "auto"
    min_count: int = 1
    decoder: bool = True
    binary: bool = False

    features_: Annotated[str, Saved()] = field(init=False)
    vocabulary_: FeatureColumns = field(init=False)
    numbers_: FeatureColumns = field(init=False)
    vector_length_: Annotated[int, Saved()] = field(init=False)
    deviations_: Annotated[Vector, Saved("number_names_")] = field(init=False)

    def fit(self, lists: Lists) -> Self:
        """Learn which features make a difference, and the deviation of numbers."""
        self._check_parameters()
        check_choice(self.features, SETS, "features")
        outputs, lists = outputs_of(lists), lists.gathered()
        self.features_ = self.features
        if self.features == "auto":
            self.features_ = "suffix" if _first_unaligned(lists) is None else "text"
        rows = self._rows(lists, list[str])
        differing = (dict.fromkeys(chain.from_iterable(candidates)) for candidates in rows)
        self.vocabulary_ = FeatureColumns.count(differing, self.min_count)
        vectors = (output.vector for output in outputs if output.vector is not None)
        self.vector_length_ = len(next(vectors, ()))
        entries = [f"vector[{k}]" for k in range(self.vector_length_)]
        named = dict.fromkeys(chain.from_iterable(self._numbers(lists)))
        self.numbers_ = FeatureColumns([*named, *entries])
        squares = (self._centred(lists) ** 2).sum(axis=0)
        sizes = lists.groups.sizes
        deviations = np.sqrt(squares / max(sizes[sizes > 1].sum(), 1))
        self.deviations_ = np.where(deviations > 0, deviations, np.inf)
        return self

    def transform(self, lists: Lists) -> sp.csr_array:
        """Features of all candidates; shape (n_candidates, n_features)."""
        check_is_fitted(self, "vocabulary_")
        places, lists = np.argsort(lists.groups.rows), lists.gathered()
        rows = chain.from_iterable(self._rows(lists, self.vocabulary_.columns))
        blocks = [self.vocabulary_.matrix(rows)]
        if len(self.numbers_):
            numbers = self._centred(lists) @ sp.diags_array(1.0 / self.deviations_)
            if self.binary:
                blocks += [sp.csr_array(sign * numbers > cut) for sign in (1, -1) for cut in CUTS]
            else:
                blocks.append(numbers)
        return sp.csr_array(sp.hstack(blocks, format="csr", dtype=np.float64))[places]

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        check_is_fitted(self, "vocabulary_")
        numbers = list(self.numbers_.names)
        if self.binary:
            tests = [f"> {cut:g}" for cut in CUTS] + [f"< {0 - cut:g}" for cut in CUTS]
            numbers = [f"{name} {test}" for test in tests for name in numbers]
        return (*self.vocabulary_.names, *numbers)

    @property
    def uses_scores(self) -> bool:
        """Whether the decoder's scores make a feature."""
        return DECODER in self.numbers_.names

    def _check_state(self) -> None:
        n_numbers = len(self.numbers_)
        if self.features_ not in ("text", *ALIGNED):
            raise ValueError(f"there are no features {self.features_!r:.40}")
        if self.deviations_.shape != (n_numbers,) or not 0 <= self.vector_length_ <= n_numbers:
            raise ValueError(f"{n_numbers} numbers have other deviations")

    @property
    def names_(self) -> Annotated[NDArray[np.uint8], Saved("letters")]:
        """The vocabulary as an array, for model files."""
        return self.vocabulary_.encode()

    @names_.setter
    def names_(self, codes: NDArray[np.uint8]) -> None:
        self.vocabulary_ = FeatureColumns.decode(codes)

    @property
    def number_names_(self) -> Annotated[list[str], Saved()]:
        """Names of the numbers as plain values, for model files."""
        return list(self.numbers_.names)

    @number_names_.setter
    def number_names_(self, names: Sequence[str]) -> None:
        self.numbers_ = FeatureColumns(names)

    def _rows(
        self, lists: Lists, read: Callable[[Sequence[str]], list[Code]]
    ) -> Iterator[list[list[Code]]]:
        """For each list the features of each candidate that not all have equally often.

        ``read`` turns names into what rows are made of.
        """
        tokens = [output.text.split() for output in outputs_of(lists)]
        grouped = (tokens[start:stop] for start, stop in pairwise(lists.groups.starts.tolist()))
        if self.features_ == "text":
            for candidates in grouped:
                yield _differing([read(list(ngrams(words))) for words in candidates])
            return
        if (wrong := _first_unaligned(lists)) is not None:
            raise DataError(
                f"{self.features_} features need an input and candidates with as many tokens",
                field=f"list {str(lists.groups.names[wrong])!r}",
            )
        windows_of, features_of = ALIGNED[self.features_]
        remembered = lru_cache(REMEMBERED)(lambda window: read(features_of(window)))
        for input, candidates in zip(inputs_of(lists), grouped):
            words = (input.text or "").split()
            yield _aligned([windows_of(words, tags) for tags in candidates], remembered)

    def _numbers(self, lists: Lists) -> Iterator[dict[str, float]]:
        """The numbers of each candidate that have names."""
        for row, output in enumerate(outputs_of(lists)):
            numbers = dict(output.features or {})
            if self.features_ == "text":
                numbers[LENGTH] = len(output.text.split())
            if self.decoder and lists.scores is not None:
                numbers[DECODER] = float(lists.scores[row])
            yield numbers

    def _centred(self, lists: Lists) -> sp.csr_array:
        """All numbers, less the mean of their list; shape (n_candidates, n_numbers)."""
        values = self.numbers_.values(self._numbers(lists))
        if self.vector_length_:
            vectors = sp.csr_array(self._vectors(outputs_of(lists)))
            n_named = len(self.numbers_) - self.vector_length_
            values = sp.csr_array(sp.hstack([values[:, :n_named], vectors], format="csr"))
        if not values.nnz:
            return values
        sizes = lists.groups.sizes[lists.groups.sizes > 0]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        members = sp.csr_array((np.ones(starts[-1]), np.arange(starts[-1]), starts))
        mean = sp.diags_array(1.0 / sizes) @ (members @ values)
        centred = sp.csr_array(values - members.T @ mean)
        largest = np.asarray(abs(values).max(axis=0).todense()).ravel()
        centred.data[np.abs(centred.data) <= TINY * largest[centred.indices]] = 0.0
        centred.eliminate_zeros()
        return centred

    def _vectors(self, candidates: Sequence[Output]) -> Vector:
        vectors = [c.vector for c in candidates if c.vector is not None]
        lengths = {*map(len, vectors)} | ({0} if len(vectors) < len(candidates) else set())
        if wrong := lengths - {self.vector_length_}:
            raise DataError(
                f"expected {self.vector_length_} numbers for each candidate, as in training, "
                f"found {wrong.pop()}",
                field="vector",
            )
        return np.array(vectors).reshape(len(candidates), self.vector_length_)


def _first_unaligned(lists: Lists) -> int | None:
    """The first list that has no input, or a candidate with another number of tokens."""
    inputs = inputs_of(lists)
    lengths = [-1 if input.text is None else len(input.text.split()) for input in inputs]
    wrong = np.array(lengths) < 0
    for number, output in zip(lists.groups.codes.tolist(), outputs_of(lists)):
        wrong[number] |= len(output.text.split()) != lengths[number]
    return int(wrong.argmax()) if wrong.any() else None


def _aligned(
    windows: Sequence[Iterator[Window]], features_of: Callable[[Window], list[Code]]
) -> list[list[Code]]:
    """The features of each candidate, from its windows; those of windows that all share only where
    others make a difference in them.
    """
    rows: list[list[Code]] = [[] for _ in windows]
    shared: list[Code] = []
    for place in zip(*windows):
        if place.count(place[0]) == len(place):
            shared += features_of(place[0])
        else:
            for row, window in zip(rows, place):
                row += features_of(window)
    differing = set().union(*rows)
    repeated = [feature for feature in shared if feature in differing]
    return [row + repeated for row in rows]


def _differing(rows: Sequence[list[Code]]) -> list[list[Code]]:
    """The features of each candidate, without those that all have equally often."""
    counts = [set(Counter(row).items()) for row in rows]
    constant = dict(set.intersection(*counts)) if counts else {}
    return [[feature for feature in row if feature not in constant] for row in rows]
