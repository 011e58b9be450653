"""Queries and passages as numbered words, and long passages as windows of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.data.lists import Lists
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable
from didyma.parameters import COUNT
from didyma.text.features.digests import with_places
from didyma.text.features.languages import check_language
from didyma.text.features.lexicon import Lexicon, Tokens, Vocabulary
from didyma.text.features.term_languages import detect_all

K1, B = 1.2, 0.75  # of BM25
LONGEST_QUERY = 512  # words; what a longer query has beyond them is not looked at
SAMPLE = 1000  # texts that tell the language


@dataclass(frozen=True, eq=False)
class Reading:
    """Lists of passages as rows of words, list by list.

    Text i has the tokens ``begins[i]`` to ``ends[i]``; query q is text ``queries[q]``, and its rows
    ``bounds[q]`` to ``bounds[q + 1]`` are the texts ``rows[bounds[q]:bounds[q + 1]]``. A passage
    that occurs twice is read once.

    Attributes
    ----------
    texts : list of str
    tokens : Tokens
    terms, stems : arrays of shape (n_tokens,)
        Numbers of each token's term and stem in ``lexicon``.
    term_idf, stem_idf : arrays
        Weight of each term and stem of the lexicon.
    is_stop : array
        Whether each term of the lexicon is a stop word.
    lists : Lists
        What was read, list by list; its rows are documents.
    document : array of shape (n_rows,)
        Document that each row is a window of.
    """

    vocabulary: Vocabulary
    lexicon: Lexicon
    texts: list[str]
    tokens: Tokens
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    queries: NDArray[np.int64]
    bounds: NDArray[np.int64]
    rows: NDArray[np.int64]
    terms: NDArray[np.int32]
    stems: NDArray[np.int32]
    term_idf: NDArray[np.float64]
    stem_idf: NDArray[np.float64]
    is_stop: NDArray[np.bool_]
    lists: Lists
    document: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def language(self) -> str | None:
        """Language of the texts."""
        return self.lexicon.language

    @property
    def query_of_row(self) -> NDArray[np.int64]:
        """Number of each row's query."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.bounds))

    @cached_property
    def overlaps(self) -> NDArray[np.float64]:
        """The columns of the small set (`SmallFeatures`), which several parts look at."""
        mean_length = self.vocabulary.mean_length
        return core.overlaps(self.numbered(), *self.lexicon.grams, mean_length, K1, B)

    def numbered(self, ends: NDArray[np.int64] | None = None) -> core.Reading:
        """What kernels look at; texts are read to ``ends``, if given."""
        return core.Reading(
            self.terms,
            self.stems,
            self.begins,
            self.ends if ends is None else ends,
            self.queries,
            self.bounds,
            self.rows,
            self.is_stop,
            self.term_idf,
            self.stem_idf,
        )


class Reader(Serialisable):
    """Turns texts into numbered words; it learns their language and how rare words are.

    Nothing of what it reads is remembered, so threads share a reader.

    >>> lists = Lists.of_texts(["who wrote Emma"], [["Jane Austen wrote Emma.", "It is late."]])
    >>> reader = Reader.fit(lists)
    >>> reader.language
    'english'
    >>> reading = reader.read(Lists.of_texts(["wrote"], [["Who wrote Emma?"]]))
    >>> [reading.lexicon.terms[n] for n in reading.terms]
    ['wrote', 'who', 'wrote', 'emma']
    """

    vocabulary: Annotated[Vocabulary, Saved(inline=True)]

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @property
    def language(self) -> str | None:
        """Language of stop words and stems, or several with commas between them."""
        return self.vocabulary.language

    @classmethod
    def fit(cls, lists: Lists, language: str | None = "auto") -> Self:
        """Count the words of the distinct passages."""
        texts = list(dict.fromkeys(lists.texts))
        if language == "auto":
            distinct_queries = list(dict.fromkeys(lists.query_texts))
            language = language_of([*sample(texts), *sample(distinct_queries)])
        lexicon = Lexicon(check_language(language))
        tokens = lexicon.read(texts)
        return cls(lexicon.vocabulary(tokens.terms, tokens.begins))

    def read(self, lists: Lists) -> Reading:
        """The words of each query and of its passages."""
        queries, passages, groups = lists.query_texts, lists.texts, lists.groups
        number_of_query = {query: n for n, query in enumerate(dict.fromkeys(queries))}
        n_queries = len(number_of_query)
        number_of = {text: n for n, text in enumerate(dict.fromkeys(passages), n_queries)}
        texts = [*number_of_query, *number_of]
        lexicon, tables = Lexicon(self.language, self.vocabulary), self.vocabulary.tables
        tokens = lexicon.read(texts)
        begins, ends = tokens.begins[:-1], tokens.begins[1:].copy()
        ends[:n_queries] = np.minimum(ends, begins + LONGEST_QUERY)[:n_queries]
        rows = np.array([number_of[text] for text in passages], np.int64)
        return Reading(
            vocabulary=self.vocabulary,
            lexicon=lexicon,
            texts=texts,
            tokens=tokens,
            begins=begins,
            ends=ends,
            queries=np.array([number_of_query[query] for query in queries], np.int64),
            bounds=groups.starts,
            rows=rows[groups.rows],
            terms=tokens.terms,
            stems=lexicon.stem[tokens.terms],
            term_idf=tables.term_idf[lexicon.term_places],
            stem_idf=tables.stem_idf[lexicon.stem_places],
            is_stop=lexicon.is_stop,
            lists=lists.gathered(),
            document=np.arange(len(rows)),
        )

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The reader that has learned this."""
        return super().from_state(*with_places(arrays, values))


def cut_windows(
    reading: Reading, size: int
) -> tuple[Reading, NDArray[np.int64], NDArray[np.int32]]:
    """A reading of windows of at most ``size`` words, each half of one on, the last at the end.

    With it the row of each window, and where it stands in its passage, in code points.
    """
    COUNT.check(size, "window")
    step = (size + 1) // 2
    begins, ends = reading.begins[reading.rows], reading.ends[reading.rows]
    counts = 1 + np.maximum(0, -(-(ends - begins - size) // step))
    stops = np.concatenate([[0], np.cumsum(counts)])
    passage = np.repeat(np.arange(len(reading)), counts)
    place = np.arange(len(passage)) - stops[passage]
    last = np.maximum(ends - size, begins)
    begin = np.minimum(begins[passage] + place * step, last[passage])
    end = np.minimum(begin + size, ends[passage])
    spans = np.zeros((len(passage), 2), np.int32)
    filled = end > begin
    spans[filled, 0] = reading.tokens.starts[begin[filled]]
    spans[filled, 1] = reading.tokens.stops[end[filled] - 1]
    whole = counts[passage] == 1
    texts = [
        reading.texts[reading.rows[p]] if is_whole else reading.texts[reading.rows[p]][a:b]
        for p, is_whole, (a, b) in zip(passage, whole, spans.tolist())
    ]
    windows = replace(
        reading,
        texts=[*reading.texts, *texts],
        begins=np.concatenate([reading.begins, begin]),
        ends=np.concatenate([reading.ends, end]),
        bounds=stops[reading.bounds],
        rows=len(reading.texts) + np.arange(len(passage)),
        document=reading.document[passage],
    )
    return windows, passage, spans


def language_of(texts: list[str]) -> str | None:
    """The language of texts, by their words; if a real share is in others, these behind commas.

    >>> language_of(["It was late in the evening."])
    'english'
    """
    lexicon = Lexicon(None)
    tokens = lexicon.read(texts)
    return ",".join(detect_all(lexicon.terms, tokens.terms, tokens.begins)) or None


def sample(texts: list[str]) -> list[str]:
    """A thousand texts from all over a collection: what is sorted by language has each."""
    n_texts = min(len(texts), SAMPLE)
    return [texts[n * len(texts) // n_texts] for n in range(n_texts)]
