"""TrigramTagger: a second-order hidden Markov model that tags words, with n-best lists."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from didyma import DataError
from didyma._core.applications import best_tags, n_best_tags
from didyma.model import Savable, Saved
from didyma.protocol import Estimator, check_is_fitted, check_random_state, clone

Guess: TypeAlias = tuple[list[str], float]
Integers: TypeAlias = NDArray[np.int64]
Vector: TypeAlias = NDArray[np.float64]

# Types of what was learned; the others are numbers.
TYPES = dict.fromkeys(
    ("trigram_keys", "lexicon_starts", "lexicon_tags", "context_starts", "context_tags"), np.int64
)
BLOCK = 1000  # sentences whose n best are kept as arrays at a time
_DIGIT = re.compile(r"\d")


class Runs(NamedTuple):
    """Tags with values, a run for each row: those of row r from starts[r] to starts[r + 1]."""

    starts: Integers
    tags: Integers
    values: Vector


class TrigramModel(NamedTuple):
    """Log-probabilities.

    ``steps[rows[a, b], c]`` is log P(c | a, b): pairs (a, b) that were never seen share a row.
    ``lexicon`` has for each entry w its tags c. Each is a row of ``contexts``, which has, in order,
    the tags b that were seen before it with their log P(w | b, c); for all others, this is the
    value in the lexicon.
    """

    rows: Integers
    steps: Vector
    lexicon: Runs
    contexts: Runs


@dataclass(eq=False, repr=False)
class TrigramTagger(Savable, Estimator):
    """Tags words by a second-order hidden Markov model (Thede & Harper 1999).

    The log-probability of tags t of words w is the sum over the words of

        log P(t_i | t_{i-2}, t_{i-1}) + log P(w_i | t_{i-1}, t_i)

    and of the end after them. Counts are smoothed with f(N) = x / (x + 1), x = log_a(N + 1) + b:

        P(t3 | t1, t2) = k N(t1 t2 t3) / N(t1 t2) + (1 - k) P(t3 | t2),     k = f(N(t1 t2 t3))
        P(t3 | t2)     = k N(t2 t3) / N(t2) + (1 - k) N(t3) / N,            k = f(N(t2 t3))
        P(w | t1, t2)  = k N(t1 t2 w) / N(t1 t2) + (1 - k) (N(t2 w) + prior P(t2 | s)) / N(t2)

    with k = f(N(t1 t2 w)) and s the suffix of w. As k depends on what is predicted, these add up to
    nearly 1 only. P(t | s) comes from rare words and is smoothed from shorter to longer suffixes,
    with f of how many words end so. Words with a digit, in capitals, with a first capital (at the
    beginning of a sentence, or elsewhere) and others are told apart. An unknown word has only this;
    a known one may also have tags that it was not seen with, if its suffix makes them likely.
    An unknown word that begins a sentence is looked up in lower case first.

    Parameters
    ----------
    a : float
        Base of the logarithm of counts, above 1.
    b : float
        Added to that logarithm, above 0.
    longest_suffix : int
        Letters of the longest suffix.
    rare : int
        Suffixes are learned from words seen at most so often.
    prior : float
        How many occurrences of a word its suffix counts for.
    threshold : float
        Least share that a tag not seen with a word must have: of the word's weight, or of that of
        the best tag of a suffix.

    Attributes
    ----------
    tags_ : list of str
        The tags, in order.
    words_ : list of str
        The known words.
    suffixes_ : list of str
        Kinds of words, each followed by a suffix.
    arrays_ : dict of arrays
        Log-probabilities; see `TrigramModel`.

    Examples
    --------
    >>> sentences = [["the", "dog", "barks"], ["a", "cat", "walks"], ["the", "cats", "bark"]]
    >>> tags = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V"]]
    >>> tagger = TrigramTagger().fit(sentences, tags)
    >>> tagger.predict([["a", "dog", "talks"]])
    [['D', 'N', 'V']]
    >>> [guess for guess, log_probability in tagger.n_best([["a", "cat"]], n=2)[0]]
    [['D', 'N'], ['D', 'V']]
    """

    a: float = 10.0
    b: float = 1.0
    longest_suffix: int = 10
    rare: int = 10
    prior: float = 1.0
    threshold: float = 0.003

    tags_: Annotated[list[str], Saved()] = field(init=False)
    words_: Annotated[list[str], Saved()] = field(init=False)
    suffixes_: Annotated[list[str], Saved()] = field(init=False)
    arrays_: Annotated[dict[str, NDArray[Any]], Saved()] = field(init=False)

    def fit(self, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> Self:
        """Learn from sentences, lists of words, and a list of tags for each."""
        self._check_parameters()
        _check_tags(sentences, tags)
        words = list(chain.from_iterable(sentences))
        labels = list(chain.from_iterable(tags))
        if not words:
            raise DataError("expected at least one word, found none", field="sentences")
        self.tags_, self.words_ = sorted(set(labels)), list(dict.fromkeys(words))
        corpus = _Corpus(
            _numbers(words, self.words_),
            _numbers(labels, self.tags_),
            np.fromiter((len(sentence) for sentence in sentences if len(sentence)), np.int64),
            len(self.tags_),
        )
        self.suffixes_, shares = self._suffix_shares(corpus)
        self.arrays_ = {**self._transitions(corpus), **self._emissions(corpus, shares)}
        self.__dict__.pop("_decoder", None)
        return self

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The most probable tags of each sentence."""
        check_is_fitted(self)
        _check_texts(sentences, "sentences")
        entries, starts = self._decoder.encode(sentences)
        tags = np.zeros(len(entries), np.int64)
        best_tags(self._decoder.model, entries, starts, tags)
        names = self._decoder.tags[tags].tolist()
        return [names[start : stop - 2] for start, stop in pairwise(starts.tolist())]

    def n_best(self, sentences: Sequence[Sequence[str]], n: int = 10) -> list[list[Guess]]:
        """The n most probable tags of each sentence, each with its log-probability, best first.

        There are fewer where the words have not as many tags; a sentence without words has one.
        """
        check_is_fitted(self)
        _check_texts(sentences, "sentences")
        if n < 1:
            raise DataError(f"expected at least 1, found {n}", field="n")
        return [
            guesses
            for first in range(0, len(sentences), BLOCK)
            for guesses in self._n_best(sentences[first : first + BLOCK], n)
        ]

    def jackknife(
        self,
        sentences: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        n: int = 10,
        n_folds: int = 10,
        random_state: Any = 0,
    ) -> list[list[Guess]]:
        """The n best tags of training sentences, each guessed by a tagger that has not seen it.

        Sentences are dealt to folds at random; those of a fold are tagged by a tagger with the same
        parameters that is fitted to all others. This one is neither used nor changed.
        """
        _check_tags(sentences, tags)
        if not 2 <= n_folds <= len(sentences):
            problem = f"expected 2 to {len(sentences)} (one a sentence), found {n_folds}"
            raise DataError(problem, field="n_folds")
        order = check_random_state(random_state).permutation(len(sentences))
        guesses: list[list[Guess]] = [[] for _ in sentences]
        for fold in range(n_folds):
            inside = order[fold::n_folds].tolist()
            outside = np.delete(order, np.s_[fold::n_folds]).tolist()
            tagger = clone(self).fit([sentences[i] for i in outside], [tags[i] for i in outside])
            for i, best in zip(inside, tagger.n_best([sentences[i] for i in inside], n)):
                guesses[i] = best
        return guesses

    def score(self, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> float:
        """Share of the words whose tag is right."""
        _check_tags(sentences, tags)
        guesses = chain.from_iterable(self.predict(sentences))
        right = [guess == tag for guess, tag in zip(guesses, chain.from_iterable(tags))]
        if not right:
            raise DataError("expected at least one word, found none", field="sentences")
        return sum(right) / len(right)

    def knows(self, word: str) -> bool:
        """Whether a word was seen in training."""
        check_is_fitted(self)
        return word in self._decoder.words

    def _check_state(self) -> None:
        _ = self._decoder

    @cached_property
    def _decoder(self) -> _Decoder:
        return _Decoder(self.tags_, self.words_, self.suffixes_, self.arrays_)

    def _n_best(self, sentences: Sequence[Sequence[str]], n: int) -> Iterator[list[Guess]]:
        entries, starts = self._decoder.encode(sentences)
        tags = np.zeros((n, len(entries)), np.int64)
        totals = np.empty((len(sentences), n))
        n_best_tags(self._decoder.model, entries, starts, tags, totals)
        names = self._decoder.tags[tags].tolist()
        for (start, stop), of_sentence in zip(pairwise(starts.tolist()), totals.tolist()):
            possible = [total for total in of_sentence if total > -math.inf]
            yield [(names[r][start : stop - 2], total) for r, total in enumerate(possible)]

    def _confidence(self, counts: ArrayLike) -> Vector:
        """How far to trust a frequency: f(N)."""
        x = np.log1p(np.asarray(counts, np.float64)) / math.log(self.a) + self.b
        return x / (x + 1.0)

    def _transitions(self, corpus: _Corpus) -> dict[str, NDArray[Any]]:
        """Log-probabilities of all pairs of tags, unless they follow a tag as seen in training."""
        a, b, c = corpus.triples
        n = corpus.n_tags + 1
        pairs = np.bincount(b * n + c, minlength=n * n).reshape(n, n)
        single = pairs.sum(axis=0)
        k = self._confidence(pairs)
        bigrams = k * pairs / pairs.sum(axis=1, keepdims=True) + (1.0 - k) * single / single.sum()
        keys, counts = np.unique((a * n + b) * n + c, return_counts=True)
        k = self._confidence(counts)
        before = np.bincount(a * n + b)[keys // n]
        trigrams = k * counts / before + (1.0 - k) * bigrams.ravel()[keys % (n * n)]
        unseen = np.log((1.0 - self._confidence(0)) * bigrams)
        unseen[-1, -1] = 0.0  # nothing but the end follows the end
        return {"bigrams": unseen, "trigram_keys": keys, "trigrams": np.log(trigrams)}

    def _suffix_shares(self, corpus: _Corpus) -> tuple[list[str], sp.csr_array]:
        """The kinds and suffixes of rare words, shortest first, and P(t | suffix) of each."""
        often = np.bincount(corpus.words)
        rare = often[corpus.words] <= max(self.rare, often.min())
        codes = (corpus.words * corpus.n_tags + corpus.tags) * 2 + corpus.begins
        codes, times = np.unique(codes[rare], return_counts=True)
        pairs, begins = np.divmod(codes, 2)
        words, tags = np.divmod(pairs, corpus.n_tags)
        chains = [
            _chain(self.words_[word], bool(begin), self.longest_suffix)
            for word, begin in zip(words.tolist(), begins.tolist())
        ]
        suffixes = sorted(dict.fromkeys(chain.from_iterable(chains)), key=len)
        sizes = np.fromiter(map(len, chains), np.int64)
        nodes = _numbers(list(chain.from_iterable(chains)), suffixes)
        counts = sp.csr_array(
            (np.repeat(times, sizes).astype(np.float64), (nodes, np.repeat(tags, sizes))),
            shape=(len(suffixes), corpus.n_tags),
        )
        parents = np.zeros(len(suffixes), np.int64)
        parents[nodes[1:]] = nodes[:-1]  # what stands before the empty suffix does not matter
        lengths = np.fromiter(map(len, suffixes), np.int64)
        starts = np.searchsorted(lengths, np.arange(lengths[-1] + 2))
        levels = [sp.csr_array(counts[:1] / counts[:1].sum())]
        for last, (start, stop) in zip(starts, pairwise(starts[1:])):
            level = counts[start:stop]
            total = level.sum(axis=1)
            k = self._confidence(total)
            shorter = levels[-1][parents[start:stop] - last]
            share = sp.csr_array(
                sp.diags_array(k / total) @ level + sp.diags_array(1 - k) @ shorter
            )
            levels.append(_drop_below(share, self.threshold * share.max(axis=1).toarray()))
        return suffixes, sp.csr_array(sp.vstack(levels))

    def _emissions(self, corpus: _Corpus, shares: sp.csr_array) -> dict[str, NDArray[Any]]:
        """Log-probabilities of words and suffixes with their tags, and of words after a tag."""
        n_tags, n = corpus.n_tags, corpus.n_tags + 1
        ones = np.ones(len(corpus.words))
        seen = sp.csr_array((ones, (corpus.words, corpus.tags)), shape=(len(self.words_), n_tags))
        suffixes = _Suffixes(self.suffixes_)
        nodes = [suffixes.find(word, begins=False) for word in self.words_]
        expected = self.prior * shares[nodes]
        expected = _drop_below(expected, self.threshold * (seen.sum(axis=1) + self.prior))
        weights = sp.csr_array(sp.vstack([seen + expected, self.prior * shares]))
        weights.sort_indices()
        tags = weights.indices.astype(np.int64)
        places = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr)) * n_tags + tags
        lexical = weights.data / np.bincount(corpus.tags)[tags]
        unseen = np.log((1.0 - self._confidence(0)) * lexical)
        keys = (corpus.words * n_tags + corpus.tags) * n + corpus.before
        keys, counts = np.unique(keys, return_counts=True)
        pairs, before = np.divmod(keys, n)
        place = np.searchsorted(places, pairs)
        pair_counts = np.bincount(corpus.before * n + corpus.tags)[before * n + pairs % n_tags]
        k = self._confidence(counts)
        contexts = k * counts / pair_counts + (1.0 - k) * lexical[place]
        return {  # the last entry is the boundary
            "lexicon_starts": np.append(weights.indptr, len(tags) + 1).astype(np.int64),
            "lexicon_tags": np.append(tags, n_tags),
            "lexicon": np.append(unseen, 0.0),
            "context_starts": np.searchsorted(place, np.arange(len(tags) + 2)),
            "context_tags": before,
            "contexts": np.log(contexts),
        }


class _Corpus:
    """Words and tags by number, one sentence after the other."""

    def __init__(self, words: Integers, tags: Integers, lengths: Integers, n_tags: int) -> None:
        self.words, self.tags, self.n_tags = words, tags, n_tags
        stops = np.cumsum(lengths)
        self.begins = np.zeros(len(words), np.bool_)
        self.begins[stops - lengths] = True
        # Each sentence with the tag n_tags for what stands twice before it and once after it
        sentence = np.arange(len(lengths))
        at = np.arange(len(words)) + 2 + 3 * np.repeat(sentence, lengths)
        stream = np.full(len(words) + 3 * len(lengths), n_tags)
        stream[at] = tags
        self.before = stream[at - 1]
        at = np.append(at, stops + 2 + 3 * sentence)
        self.triples = stream[at - 2], stream[at - 1], stream[at]


class _Suffixes:
    """Where words stand in the suffix model."""

    def __init__(self, suffixes: Sequence[str]) -> None:
        self.node_of = {suffix: node for node, suffix in enumerate(suffixes)}
        self.longest = max(map(len, suffixes)) - 1

    def find(self, word: str, *, begins: bool) -> int:
        """The longest suffix of a word that is known; the empty one always is."""
        present = (
            key for key in reversed(_chain(word, begins, self.longest)) if key in self.node_of
        )
        return self.node_of[next(present)]


class _Decoder:
    """What was learned, as the kernels want it."""

    def __init__(
        self,
        tags: Sequence[str],
        words: Sequence[str],
        suffixes: Sequence[str],
        arrays: dict[str, NDArray[Any]],
    ) -> None:
        self.tags = np.array([*tags, ""], dtype=object)
        self.words = {word: entry for entry, word in enumerate(words)}
        self.suffixes = _Suffixes(suffixes)
        self.boundary = len(words) + len(suffixes)
        lexicon, contexts = (
            Runs(arrays[f"{name}_starts"], arrays[f"{name}_tags"], arrays[values])
            for name, values in (("lexicon", "lexicon"), ("context", "contexts"))
        )
        n = len(self.tags)
        bigrams, keys = arrays["bigrams"], arrays["trigram_keys"]
        sound = (
            all(array.dtype == TYPES.get(name, np.float64) for name, array in arrays.items())
            and bigrams.shape == (n, n)
            and "" in self.suffixes.node_of
            and keys.shape == arrays["trigrams"].shape
            and np.all((keys >= 0) & (keys < n**3))
            and _are_valid(lexicon, self.boundary + 1, n)
            and _are_valid(contexts, len(lexicon.tags), n)
            and lexicon.tags[-1] == n - 1
        )
        if not sound:
            raise ValueError("its arrays do not fit together")
        seen, row = np.unique(keys // n, return_inverse=True)
        rows = np.tile(np.arange(n), (n, 1))
        rows.ravel()[seen] = n + np.arange(len(seen))
        steps = bigrams[np.append(np.arange(n), seen % n)]
        steps[n + row, keys % n] = arrays["trigrams"]
        self.model = TrigramModel(rows, steps, lexicon, contexts)

    def encode(self, sentences: Iterable[Sequence[str]]) -> tuple[Integers, Integers]:
        """Sentences as a stream of entries, and where each starts."""
        entries, starts = [self.boundary, self.boundary], [2]
        for sentence in sentences:
            numbers = [self.words.get(word, -1) for word in sentence]
            if -1 in numbers:
                numbers = [
                    self.unknown(sentence[i], begins=i == 0) if entry < 0 else entry
                    for i, entry in enumerate(numbers)
                ]
            entries += numbers
            entries += (self.boundary, self.boundary)
            starts.append(len(entries))
        return np.array(entries), np.array(starts)

    def unknown(self, word: str, *, begins: bool) -> int:
        """The entry of a word that was not seen."""
        if begins and (entry := self.words.get(word.lower())) is not None:
            return entry
        return len(self.words) + self.suffixes.find(word, begins=begins)


def _chain(word: str, begins: bool, longest: int) -> list[str]:
    """Nothing, the kind of a word, and its kind with its suffixes, up to the longest.

    >>> _chain("Paris", False, 2)
    ['', 'C', 'Cs', 'Cis']
    """
    if _DIGIT.search(word):
        kind = "0"
    elif not word[:1].isupper():
        kind = "a"
    elif begins:
        kind = "B"
    else:
        kind = "A" if len(word) > 1 and word.isupper() else "C"
    return ["", kind, *[kind + word[-n:] for n in range(1, min(len(word), longest) + 1)]]


def _drop_below(shares: sp.csr_array, least: ArrayLike) -> sp.csr_array:
    """What is not less than a value for each row."""
    sparse = sp.csr_array(shares)
    sparse.data[sparse.data < np.repeat(np.ravel(least), np.diff(sparse.indptr))] = 0.0
    sparse.eliminate_zeros()
    return sparse


def _are_valid(runs: Runs, n_rows: int, n_tags: int) -> bool:
    starts, tags, values = runs
    return bool(
        starts.shape == (n_rows + 1,)
        and tags.shape == values.shape == (starts[-1],)
        and starts[0] == 0
        and np.all(np.diff(starts) >= 0)
        and np.all((tags >= 0) & (tags < n_tags))
    )


def _numbers(texts: Sequence[str], vocabulary: Sequence[str]) -> Integers:
    number_of = {text: number for number, text in enumerate(vocabulary)}
    return np.fromiter(map(number_of.__getitem__, texts), np.int64, len(texts))


def _check_texts(sentences: Sequence[Sequence[str]], field: str) -> None:
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise DataError("expected a list of texts, found a text", field=f"{field}[{i}]")
        for text in sentence:
            if not isinstance(text, str):
                raise DataError(f"expected texts, found {text!r}", field=f"{field}[{i}]")


def _check_tags(sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> None:
    _check_texts(sentences, "sentences")
    _check_texts(tags, "tags")
    if len(sentences) != len(tags):
        problem = (
            f"expected as many lists as there are sentences, {len(sentences)}, found {len(tags)}"
        )
        raise DataError(problem, field="tags")
    for i, (words, labels) in enumerate(zip(sentences, tags)):
        if len(words) != len(labels):
            problem = f"expected {len(words)} tags, one for each word, found {len(labels)}"
            raise DataError(problem, field=f"tags[{i}]")
