"""How well a sentence answers a question, from the two texts alone.

No model is downloaded and no parser is needed: everything is learned from the texts given to `fit`.

>>> questions = ["who wrote Emma ?", "who wrote Emma ?"]
>>> sentences = ["Emma was written by Jane Austen .", "A clock has two hands ."]
>>> similarity = TextSimilarity("paper").fit(questions, sentences)
>>> X = similarity.transform(list(zip(questions, sentences)))
>>> X.shape == (2, len(similarity.get_feature_names_out()))
True
>>> bool(X[0].sum() > X[1].sum())
True
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from math import log
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from didyma.errors import DataError
from didyma.features import lexical
from didyma.features.lexical import Collection

__all__ = ["TextSimilarity", "place_in_document", "question_kind", "stem"]

KINDS = ("paper", "extended")

_TOKEN = re.compile(r"[^\W_]+(?:[.,'-][^\W_]+)*|[^\w\s]")
_BRACKET = re.compile(r"-([lr])[rsc]b-", re.IGNORECASE)
_YEAR = re.compile(r"1\d\d\d|20\d\d")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP_WORDS = _set(
    "a about also am an and are as at be been being but by can could did do doe does doing done "
    "for from get got ha had has have having he her here him his how i if in into is it its many "
    "may me might much must my n no nor not of on or our s shall she should so such t than that "
    "the their them then there these they thi this those to us wa was we were what when where "
    "which who whom whose why will with would you your"
)
MONTHS = _set("january february march april june july august september october november december")
NUMBER_WORDS = _set(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty "
    "hundred thousand million billion dozen"
)
UNITS = _set(
    "% percent $ £ € dollars mile miles km kilometers kilometres feet foot ft inches meters metres "
    "m pounds kg tons acres square year years months weeks days hours minutes degrees million "
    "billion"
)
PLACE_WORDS = _set(
    "in at near located city county state country island region province district street river "
    "coast capital north south east west northern southern eastern western"
)
PERSON_WORDS = _set(
    "he she his her born president actor actress author writer founder director singer"
)
CAUSE_WORDS = _set("because due since cause causes caused reason therefore")
MEANS_WORDS = _set("by can process through used using")
PRONOUNS = _set("he she it they this these his her its their")
BEING = _set("is are was were")
ARTICLES = _set("a an the one")
COPULAS = BEING | {"refers", "means"}

TIME_NOUNS = _set("year years date day month time century")
PLACE_NOUNS = _set("city country state county place town continent location area island region")
QUANTITY_NOUNS = _set("percentage population number amount cost price temperature speed height age")
QUANTITY_ADJECTIVES = _set(
    "many much long old big tall far deep large high often fast hot cold heavy wide small late "
    "early"
)
QUESTION_KINDS = (
    *("person", "time", "place", "reason", "quantity"),
    *("manner", "definition", "thing", "other"),
)
BLOCK = 2048  # pairs at once, so that memory does not grow with their number

# A suffix, what replaces it, and the least number of letters before it; the first that fits.
_SUFFIXES = (
    *(("ational", "ate", 3), ("ization", "ize", 3), ("fulness", "ful", 3), ("iveness", "ive", 3)),
    *(("ement", "", 4), ("ation", "", 4), ("ity", "", 4), ("ment", "", 4), ("ness", "", 4)),
    *(("ing", "", 3), ("ion", "", 4), ("ied", "y", 2), ("er", "", 3), ("or", "", 4)),
    *(("ed", "", 3), ("ly", "", 3), ("al", "", 4), ("ic", "", 4), ("ous", "", 4), ("ive", "", 4)),
)


@lru_cache(maxsize=1 << 16)
def stem(term: str) -> str:
    """A term of `lexical.terms` without its English ending, so that related words meet.

    >>> [stem(term) for term in ("formed", "forming", "formation", "stopped", "reason")]
    ['form', 'form', 'form', 'stop', 'reason']
    """
    for suffix, replacement, least in _SUFFIXES:
        if term.endswith(suffix) and len(term) - len(suffix) >= least:
            term = term.removesuffix(suffix) + replacement
            break
    if len(term) > 3 and term[-1] == term[-2] and term[-1] not in "aeioulsz":
        return term[:-1]
    if len(term) > 3 and term.endswith("e"):
        return term[:-1]
    return term[:-1] + "y" if len(term) > 3 and term.endswith("i") else term


def question_kind(text: str) -> str:
    """What a question asks for, one of `QUESTION_KINDS`, from its question word and the next few.

    >>> [question_kind(text) for text in ("Who wrote it ?", "in what year", "how tall is K2")]
    ['person', 'time', 'quantity']
    """
    words = _TOKEN.findall(text.lower())
    for place, word in enumerate(words):
        following = words[place + 1 : place + 4]
        if word in ("who", "whom", "whose"):
            return "person"
        if word in ("when", "where", "why"):
            return {"when": "time", "where": "place", "why": "reason"}[word]
        if word == "how":
            is_quantity = bool(following) and following[0] in QUANTITY_ADJECTIVES
            return "quantity" if is_quantity else "manner"
        if word in ("what", "which", "name", "what's"):
            for kind, nouns in (
                ("time", TIME_NOUNS),
                ("place", PLACE_NOUNS),
                ("quantity", QUANTITY_NOUNS),
            ):
                if not nouns.isdisjoint(following):
                    return kind
            return "definition" if BEING.intersection(following[:1]) else "thing"
    return "other"


def place_in_document(questions: Sequence[str]) -> NDArray[np.float64]:
    """1 / place of each candidate among consecutive ones of its question; shape (n_pairs, 1).

    Where candidates stand in document order, as in WikiQA, their place tells much about them
    although it says nothing about the texts. It is no part of `TextSimilarity`; to use it, say so:
    ``np.hstack([similarity.transform(pairs), place_in_document(questions)])``. Where answers are
    listed first, as in TREC QA, the place gives the labels away and must not be used.

    >>> place_in_document(["a", "a", "b"]).ravel().tolist()
    [1.0, 0.5, 1.0]
    """
    places = [1 / (1 + n) for _, run in groupby(questions) for n, _ in enumerate(run)]
    return np.array(places, dtype=np.float64).reshape(-1, 1)


class TextSimilarity(BaseEstimator):
    """Features of (question, sentence) pairs, none of which depends on the order of candidates.

    ``kind="paper"`` has the similarities of Haponchyk & Moschitti (2019, section 5.1.1): tf-idf
    cosine, longest common substring and subsequence, Jaccard similarity and containment of word
    n-grams (n = 1, 2, 3), greedy string tiling and ESA. Two are replaced so that nothing need be
    downloaded: the concepts of ESA are the documents seen by `fit` (all sentences that were given
    with one question) instead of Wikipedia's articles, and a gappy subsequence kernel of the words
    stands in for the partial tree kernel.

    ``kind="extended"`` adds `lexical.FEATURES`; overlaps of stems without stop words, of prefixes,
    numbers and capitalised words; cues in the sentence (a number, a date, a name, "is a", …); and
    the products of cues and some overlaps with the kind of the question, so that a linear model can
    learn that *when* asks for a date.

    Parameters
    ----------
    kind : {"extended", "paper"}
    embeddings : mapping of str to array, optional
        Vectors of words in lower case. Adds the cosine of the idf-weighted means, and the mean over
        the question's words, by idf, of the best cosine with a word of the sentence.

    Attributes
    ----------
    words_, stems_ : Collection
        How rare each term and stem is among the distinct sentences.
    feature_names_ : tuple of str
    """

    def __init__(
        self, kind: str = "extended", *, embeddings: Mapping[str, ArrayLike] | None = None
    ) -> None:
        self.kind = kind
        self.embeddings = embeddings

    def fit(self, questions: Sequence[str], sentences: Sequence[str]) -> Self:
        """Learn how rare words are, and the concepts; ``sentences[i]`` goes with ``questions[i]``.

        Labels are never seen.
        """
        if self.kind not in KINDS:
            raise DataError(
                f"expected one of {', '.join(KINDS)}, found {self.kind!r}", field="kind"
            )
        if self.embeddings is not None:
            shapes = {np.shape(vector) for vector in self.embeddings.values()}
            if len(shapes) != 1 or len(*shapes) != 1:
                raise DataError("expected vectors of one length", field="embeddings")
        if len(questions) != len(sentences):
            raise DataError(f"{len(questions)} questions for {len(sentences)} sentences")
        texts = {sentence: _Text(sentence) for sentence in sentences}
        self.words_ = Collection.of(text.terms for text in texts.values())
        self.stems_ = Collection.of(text.stems or text.terms for text in texts.values())
        documents: dict[str, dict[str, None]] = {}
        for question, sentence in zip(questions, sentences):
            documents.setdefault(question, {})[sentence] = None
        self.concepts_ = _Concepts(
            [
                Counter(s for text in document for s in texts[text].stems)
                for document in documents.values()
            ]
        )
        self.feature_names_ = tuple(self._columns([("who", "a")]))
        return self

    def transform(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Features of each (question, sentence); shape (n_pairs, n_features)."""
        check_is_fitted(self)
        for n, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2:
                raise DataError(
                    f"expected a question and a sentence, found {pair!r}", field=f"pair {n}"
                )
        values = np.zeros((len(pairs), len(self.feature_names_)))
        for start in range(0, len(pairs), BLOCK):
            block = pairs[start : start + BLOCK]
            for column, found in zip(values.T, self._columns(block).values()):
                column[start : start + BLOCK] = found
        return values

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Name of each column."""
        check_is_fitted(self)
        return np.array(self.feature_names_, dtype=object)

    def _columns(self, pairs: Sequence[tuple[str, str]]) -> dict[str, NDArray[Any]]:
        """Each feature of all pairs, by name."""
        number: dict[str, int] = {}
        ends = [[number.setdefault(text, len(number)) for text in pair] for pair in pairs]
        left, right = np.array(ends, np.int64).T
        texts = [_Text(text) for text in number]
        both = [(texts[q], texts[s]) for q, s in ends]

        columns = _each(both, self.words_, {"tfidf_cosine": lexical.tfidf_cosine, **NGRAMS})
        columns |= _sequences([text.terms for text in texts], left, right)
        columns["esa"] = self.concepts_.cosine([text.stems for text in texts], left, right)
        if self.kind == "extended":
            columns |= self._extended(texts, both, left, right)
        if self.embeddings is not None:
            columns |= _embedded(texts, left, right, self.embeddings, self.words_)
        return columns

    def _extended(
        self,
        texts: Sequence[_Text],
        both: Sequence[tuple[_Text, _Text]],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
    ) -> dict[str, NDArray[Any]]:
        columns = {
            f"lexical_{name}": column for name, column in _each(both, self.words_, FURTHER).items()
        }
        columns |= _each(both, self.stems_, STEMMED)
        columns |= {
            f"stem_{name}": column
            for name, column in _sequences([text.stems for text in texts], left, right).items()
        }
        cues = np.array([sentence.cues for _, sentence in both], dtype=np.float64).T
        columns |= {f"cue_{name}": cue for name, cue in zip(CUES, cues)}
        columns["cue_new_number"] = np.array([bool(s.numbers - q.numbers) for q, s in both])
        kind = np.array([question.kind for question, _ in both])
        for name in (*(name for name in columns if name.startswith("cue_")), *BY_KIND):
            for asked in QUESTION_KINDS:
                columns[f"{asked}:{name}"] = np.where(kind == asked, columns[name], 0)
        return columns


class _Text(lexical._Text):
    """A text with what the features look at."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @cached_property
    def tokens(self) -> list[str]:
        """Words as they are written, numbers and marks; brackets of treebanks are brackets."""
        plain = _BRACKET.sub(lambda found: "()"[found[1].lower() == "r"], self.text)
        return _TOKEN.findall(plain)

    @cached_property
    def lower(self) -> list[str]:
        return [token.lower() for token in self.tokens]

    @cached_property
    def content(self) -> list[str]:
        """Terms that are no stop words."""
        return [term for term in self.terms if term not in STOP_WORDS]

    @cached_property
    def stems(self) -> list[str]:
        return [stem(term) for term in self.content]

    @cached_property
    def stem_set(self) -> frozenset[str]:
        return frozenset(self.stems)

    @cached_property
    def stem_counts(self) -> Counter[str]:
        return Counter(self.stems)

    @cached_property
    def prefixes(self) -> frozenset[str]:
        return frozenset(term[:4] for term in self.content)

    @cached_property
    def subject(self) -> frozenset[str]:
        """Stems before the first "is", "was", …; none where there is no such word."""
        end = next((n for n, token in enumerate(self.lower) if token in COPULAS), 0)
        return frozenset(stem(term) for term in lexical.terms(" ".join(self.tokens[:end])))

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(token for token in self.tokens if token[0].isdigit())

    @cached_property
    def capitalised(self) -> frozenset[str]:
        """Words with a capital, but for the first."""
        return frozenset(token.lower() for token in self.tokens[1:] if token[0].isupper())

    @cached_property
    def kind(self) -> str:
        return question_kind(self.text)

    @cached_property
    def cues(self) -> list[float]:
        return [float(cue(self)) for cue in CUES.values()]

    @cached_property
    def ngrams(self) -> tuple[set[tuple[str, ...]], ...]:
        """Sets of one, two and three neighbouring terms."""
        return tuple(set(zip(*(self.terms[start:] for start in range(n)))) for n in (1, 2, 3))


Feature: TypeAlias = Callable[[_Text, _Text, Collection], float]


def _each(
    both: Sequence[tuple[_Text, _Text]], collection: Collection, features: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    return {
        name: np.array([feature(q, s, collection) for q, s in both], dtype=np.float64)
        for name, feature in features.items()
    }


def _jaccard(n: int) -> Feature:
    def jaccard(question: _Text, sentence: _Text, collection: Collection) -> float:
        a, b = question.ngrams[n - 1], sentence.ngrams[n - 1]
        common = len(a & b)
        return _share(common, len(a) + len(b) - common)

    return jaccard


def _containment(n: int) -> Feature:
    def containment(question: _Text, sentence: _Text, collection: Collection) -> float:
        a, b = question.ngrams[n - 1], sentence.ngrams[n - 1]
        return _share(len(a & b), len(a))

    return containment


NGRAMS: dict[str, Feature] = {
    **{f"jaccard_{n}": _jaccard(n) for n in (1, 2, 3)},
    **{f"containment_{n}": _containment(n) for n in (1, 2, 3)},
}


def stem_coverage(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Share of the question's stems that the sentence has."""
    return _share(len(question.stem_set & sentence.stem_set), len(question.stem_set))


def stem_idf_coverage(question: _Text, sentence: _Text, collection: Collection) -> float:
    """The same, each stem counted by its idf."""
    common = question.stem_set & sentence.stem_set
    return _share(_weigh(common, collection), _weigh(question.stem_set, collection))


def stem_idf_jaccard(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Stems of both as a share of those of either, by idf."""
    a, b = question.stem_set, sentence.stem_set
    return _share(_weigh(a & b, collection), _weigh(a | b, collection))


def stem_bm25(question: _Text, sentence: _Text, collection: Collection) -> float:
    """BM25 of stems."""
    weight, counts = lexical.BM25Weight(collection), sentence.stem_counts
    matched = question.stem_set & counts.keys()
    return sum(weight(term, counts[term], len(sentence.stems)) for term in sorted(matched))


def rarest_matched(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Greatest idf of a stem of the question that the sentence has."""
    return max(map(collection.idf, question.stem_set & sentence.stem_set), default=0.0)


def rarest_missing(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Greatest idf of a stem of the question that the sentence lacks."""
    return max(map(collection.idf, question.stem_set - sentence.stem_set), default=0.0)


def prefix_coverage(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Share of the first four letters of the question's words that begin one of the sentence."""
    return _share(len(question.prefixes & sentence.prefixes), len(question.prefixes))


def subject_coverage(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Coverage, by idf, of the question by what stands before "is", "was", … in the sentence."""
    common = question.stem_set & sentence.subject
    return _share(_weigh(common, collection), _weigh(question.stem_set, collection))


def opening_matched(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Whether the first content word of the sentence is one of the question."""
    return float(not question.stem_set.isdisjoint(sentence.stems[:1]))


def head_matched(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Whether the sentence has the question's first content word, often what is asked for."""
    return float(not sentence.stem_set.isdisjoint(question.stems[:1]))


def last_matched(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Whether the sentence has the question's last content word."""
    return float(not sentence.stem_set.isdisjoint(question.stems[-1:]))


def capitals_matched(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Share of the question's capitalised words that are capitalised in the sentence."""
    return _share(len(question.capitalised & sentence.capitalised), len(question.capitalised))


def numbers_matched(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Share of the question's numbers that the sentence has."""
    return _share(len(question.numbers & sentence.numbers), len(question.numbers))


def new_stems(question: _Text, sentence: _Text, collection: Collection) -> float:
    """Logarithm of one more than the number of stems that only the sentence has."""
    return log(1 + len(sentence.stem_set - question.stem_set))


STEMMED: dict[str, Feature] = {
    feature.__name__: feature
    for feature in (
        *(stem_coverage, stem_idf_coverage, stem_idf_jaccard, stem_bm25),
        *(rarest_matched, rarest_missing, prefix_coverage, subject_coverage),
        *(opening_matched, head_matched, last_matched),
        *(capitals_matched, numbers_matched, new_stems),
    )
}

FURTHER = {name: f for name, f in lexical.FEATURES.items() if name != "tfidf_cosine"}

# Overlaps whose worth depends on the kind of the question.
BY_KIND = ("stem_idf_coverage", "subject_coverage", "opening_matched", "lexical_length")


def _has(words: frozenset[str]) -> Callable[[_Text], float]:
    return lambda text: not words.isdisjoint(text.lower)


def _part(words: frozenset[str]) -> Callable[[_Text], float]:
    return lambda text: _share(sum(token in words for token in text.lower), len(text.lower))


def _is_name(tokens: Sequence[str]) -> bool:
    return any(a[0].isupper() and b[0].isupper() for a, b in pairwise(tokens[1:]))


def _is_definition(tokens: Sequence[str]) -> bool:
    return any(a in BEING and b in ARTICLES for a, b in pairwise(tokens))


# What in a sentence, whatever the question, may speak for one kind of answer or another.
CUES: dict[str, Callable[[_Text], float]] = {
    "number": lambda text: bool(text.numbers),
    "year": lambda text: any(map(_YEAR.fullmatch, text.numbers)),
    "month": _has(MONTHS),
    "number_word": _has(NUMBER_WORDS),
    "unit": _has(UNITS),
    "money": _has(_set("$ £ €")),
    "capitals": lambda text: _share(
        sum(token[0].isupper() for token in text.tokens[1:]), len(text.tokens)
    ),
    "name": lambda text: _is_name(text.tokens),
    "place": _part(PLACE_WORDS),
    "person": _has(PERSON_WORDS),
    "cause": _has(CAUSE_WORDS),
    "by": _has(_set("by")),
    "means": _has(MEANS_WORDS),
    "definition": lambda text: _is_definition(text.lower),
    "bracket": _has(_set("(")),
    "quote": _has(_set('` “ "')),
    "negation": lambda text: any(t == "not" or t.endswith("n't") for t in text.lower),
    "pronoun": lambda text: text.lower[:1] != [] and text.lower[0] in PRONOUNS,
    "full_stop": lambda text: text.lower[-1:] in (["."], ["!"], ["?"]),
    "fragment": lambda text: len(text.stems) < 4,
}


def _sequences(
    texts: Sequence[Sequence[str]], left: NDArray[np.int64], right: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Similarities of words in order: common runs as shares of the question, gappy kernel."""
    from didyma.kernels.similarity import common_runs, gappy_kernels

    number: dict[str, int] = {}
    words = np.array([number.setdefault(w, len(number)) for text in texts for w in text], np.int64)
    lengths = np.array([len(text) for text in texts])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    runs = common_runs(words, starts, left, right, 2) / np.maximum(lengths[left], 1)[:, None]
    every = np.arange(len(texts))
    own = np.sqrt(gappy_kernels(words, starts, every, every, 0.5, 2))
    norms = own[left] * own[right]
    cosines = gappy_kernels(words, starts, left, right, 0.5, 2) / np.where(norms > 0, norms, 1)
    return {
        "common_substring": runs[:, 0],
        "common_subsequence": runs[:, 1],
        "string_tiling": runs[:, 2],
        "subsequence_kernel": cosines.mean(axis=1),
    }


class _Concepts:
    """Explicit semantic analysis: a text as the concepts that its stems occur in.

    The weight of a stem in a concept is (1 + log tf) · log(1 + n / df), each concept scaled to
    length 1; a text is the sum over its stems of their weights in each concept, by idf.
    """

    def __init__(self, documents: Sequence[Counter[str]]) -> None:
        self.row = {
            term: row for row, term in enumerate(dict.fromkeys(t for d in documents for t in d))
        }
        counts = _counts(documents, self.row)
        rarity = np.log1p(len(documents) / np.maximum(np.bincount(counts.indices), 1))
        counts.data = (1 + np.log(counts.data)) * rarity[counts.indices]
        self.rarity = rarity
        self.weights = _scaled(counts).T.tocsr()

    def cosine(
        self,
        texts: Sequence[Sequence[str]],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Cosine of each pair of texts as vectors of concepts."""
        if not self.row:
            return np.zeros(len(left))
        found = _counts([Counter(text) for text in texts], self.row)
        found.data = found.data * self.rarity[found.indices]
        concepts = _scaled(found @ self.weights)
        return np.asarray(concepts[left].multiply(concepts[right]).sum(axis=1))


def _counts(texts: Sequence[Counter[str]], column: Mapping[str, int]) -> sp.csr_array:
    entries = [
        (row, column[term], count)
        for row, text in enumerate(texts)
        for term, count in text.items()
        if term in column
    ]
    rows, columns, counts = np.array(entries, np.int64).reshape(-1, 3).T
    shape = (len(texts), len(column))
    return sp.csr_array((counts.astype(np.float64), (rows, columns)), shape=shape)


def _scaled(rows: sp.csr_array) -> sp.csr_array:
    """Rows scaled to length 1, those of zeros left as they are."""
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    return sp.diags_array(1 / np.where(norms > 0, norms, 1)).tocsr() @ rows


def _embedded(
    texts: Sequence[_Text],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    embeddings: Mapping[str, ArrayLike],
    collection: Collection,
) -> dict[str, NDArray[Any]]:
    """Similarities of the vectors of words that have one."""
    size = len(np.asarray(next(iter(embeddings.values()))))
    means, directions, weights = [], [], []
    for text in texts:
        known = [word for word in dict.fromkeys(text.lower) if word in embeddings]
        vectors = np.array([embeddings[word] for word in known], np.float64).reshape(-1, size)
        idf = np.array([collection.idf(word) for word in known])
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        means.append(idf @ vectors)
        directions.append(vectors / np.where(norms > 0, norms, 1))
        weights.append(idf)
    total = np.array(means)
    norms = np.linalg.norm(total, axis=1)
    product = norms[left] * norms[right]
    aligned = [
        _share(weights[q] @ (directions[q] @ directions[s].T).max(axis=1), weights[q].sum())
        if len(weights[q]) and len(weights[s])
        else 0.0
        for q, s in zip(left.tolist(), right.tolist())
    ]
    return {
        "embedding_cosine": (total[left] * total[right]).sum(axis=1)
        / np.where(product > 0, product, 1),
        "embedding_alignment": np.array(aligned),
    }


def _weigh(terms: Iterable[str], collection: Collection) -> float:
    # Sorted, so that a sum does not depend on the order of a set.
    return sum(map(collection.idf, sorted(terms)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
