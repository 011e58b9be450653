"""Slow, plain definitions of words and of the features of texts."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log, sqrt

from didyma.features.text.characters import fold, kind_of
from didyma.features.text.languages import stemmer, stop_words
from didyma.features.text.lexicon import grams_of
from didyma.kernels.words import BETWEEN, DIGIT, LETTER, MARK, POINT, UNSPACED

LETTERS = {LETTER: "L", DIGIT: "D", MARK: "M", POINT: "P", UNSPACED: "U", BETWEEN: "B"}
WORD = re.compile(r"[LD](?:[LDM]|(?<=D)P(?=D))*|(?:UM*)+")


def spans(text):
    """Where words stand."""
    kinds = "".join(LETTERS[kind_of(character)] for character in text)
    for found in WORD.finditer(kinds):
        if found[0][0] != "U":
            yield found.span()
            continue
        characters = [part.span() for part in re.finditer("UM*", found[0])]
        pairs = [(a, d) for (a, _), (_, d) in pairwise(characters)] or characters
        yield from ((found.start() + a, found.start() + b) for a, b in pairs)


class Collection:
    """Counts of a collection's terms and stems."""

    def __init__(self, passages, language):
        self.language, self.stem = language, stemmer(language)
        texts = [self.terms(text) for text in dict.fromkeys(passages)]
        self.n = len(texts)
        self.term_counts = Counter(term for text in texts for term in set(text))
        self.stem_counts = Counter(s for text in texts for s in {self.stem(t) for t in text})
        self.mean_length = sum(map(len, texts)) / len(texts)

    def terms(self, text):
        return [fold(text[a:b]) for a, b in spans(text)]

    def idf(self, term):
        return self._weigh(self.term_counts[term])

    def stem_idf(self, stem):
        return self._weigh(self.stem_counts[stem])

    def _weigh(self, m):
        return log(1 + (self.n - m + 0.5) / (m + 0.5))

    def pair(self, query, passage):
        return Pair(self, self.terms(query), self.terms(passage))


class Pair:
    """A query and a passage; each feature is a method."""

    def __init__(self, collection, query, passage):
        self.collection, self.query, self.passage = collection, query, passage
        stop = stop_words(collection.language)
        if all(term in stop for term in query):
            stop = frozenset()
        self.stop = stop
        self.asked = [collection.stem(term) for term in query if term not in stop]
        self.places = [
            (place, collection.stem(term)) for place, term in enumerate(passage) if term not in stop
        ]
        self.found = [stem for _, stem in self.places]

    def weight(self, idf, tf):
        length = len(self.passage) / self.collection.mean_length
        return idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * length))

    def idf_sum(self, stems):
        return sum(self.collection.stem_idf(stem) for stem in stems)

    def bm25(self):
        tf = Counter(self.passage)
        return sum(self.weight(self.collection.idf(t), tf[t]) for t in self.query if t in tf)

    def tfidf_cosine(self):
        a, b = (
            {t: (1 + log(tf)) * self.collection.idf(t) for t, tf in Counter(text).items()}
            for text in (self.query, self.passage)
        )
        product = sum(a[t] * b[t] for t in a.keys() & b.keys())
        return share(product, sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values())))

    def word_coverage(self):
        return coverage(set(self.query), set(self.passage))

    def word_jaccard(self):
        return jaccard(set(self.query), set(self.passage))

    def pair_coverage(self):
        return coverage(set(pairwise(self.query)), set(pairwise(self.passage)))

    def stem_bm25(self):
        tf = Counter(self.found)
        return sum(
            self.weight(self.collection.stem_idf(s), tf[s]) for s in set(self.asked) & tf.keys()
        )

    def stem_coverage(self):
        return coverage(set(self.asked), set(self.found))

    def stem_idf_coverage(self):
        common = set(self.asked) & set(self.found)
        return share(self.idf_sum(common), self.idf_sum(set(self.asked)))

    def stem_idf_jaccard(self):
        a, b = set(self.asked), set(self.found)
        return share(self.idf_sum(a & b), self.idf_sum(a | b))

    def stem_substring(self):
        return share(substring(self.asked, self.found), len(self.asked))

    def stem_subsequence(self):
        return share(subsequence(self.asked, self.found), len(self.asked))

    def proximity(self):
        wanted = set(self.asked) & set(self.found)
        if len(wanted) < 2:
            return 0.0
        hits = [(place, stem) for place, stem in self.places if stem in wanted]
        width = min(
            b - a + 1
            for a, _ in hits
            for b, _ in hits
            if wanted <= {stem for place, stem in hits if a <= place <= b}
        )
        return share(len(wanted) - 1, width - 1)

    def earliness(self):
        first = dict(reversed([(stem, place) for place, stem in self.places]))
        early = sum(
            self.collection.stem_idf(stem) * (1 - first[stem] / len(self.passage))
            for stem in set(self.asked) & first.keys()
        )
        return share(early, self.idf_sum(set(self.asked)))

    def grams(self):
        return [
            {gram for term in text if term not in self.stop for gram in grams_of(term)}
            for text in (self.query, self.passage)
        ]

    def gram_coverage(self):
        return coverage(*self.grams())

    def gram_jaccard(self):
        return jaccard(*self.grams())

    def length(self):
        return log(1 + len(self.passage))


def coverage(a, b):
    return share(len(a & b), len(a))


def jaccard(a, b):
    return share(len(a & b), len(a | b))


def share(part, whole):
    return part / whole if whole else 0.0


def runs(a, length):
    return {tuple(a[i : i + length]) for i in range(len(a) - length + 1)}


def substring(a, b):
    return max(n for n in range(len(a) + 1) if n == 0 or runs(a, n) & runs(b, n))


def subsequence(a, b):
    """Longest common subsequence, by the definition on suffixes."""
    if not a or not b:
        return 0
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            same = a[i] == b[j]
            table[i][j] = 1 + table[i + 1][j + 1] if same else max(table[i + 1][j], table[i][j + 1])
    return table[0][0]
