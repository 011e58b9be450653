"""Slow, plain definitions of words and of the features of texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files
from itertools import combinations, pairwise
from math import log, sqrt

from didyma._core.text import BETWEEN, DIGIT, LETTER, MARK, POINT, UNSPACED
from didyma.text.features.characters import fold, kind_of
from didyma.text.features.languages import stems_of, stop_words

LETTERS = {LETTER: "L", DIGIT: "D", MARK: "M", POINT: "P", UNSPACED: "U", BETWEEN: "B"}
CUES = json.loads(files("didyma.text.features").joinpath("cues", "english.json").read_text())
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


def grams_of(term):
    """Three characters in a row of ^term$, or single ones of scripts without spaces."""
    if kind_of(term[0]) == UNSPACED:
        return set(term)
    ends = f"^{term}$"
    return {ends[i : i + 3] for i in range(len(term))}


class Collection:
    """Counts of a collection's terms and stems."""

    def __init__(self, passages, language):
        self.language = language
        texts = [self.terms(text) for text in dict.fromkeys(passages)]
        self.n = len(texts)
        self.term_counts = Counter(term for text in texts for term in set(text))
        self.stem_counts = Counter(s for text in texts for s in {self.stem(t) for t in text})
        self.mean_length = sum(map(len, texts)) / len(texts)

    def stem(self, term):
        return stems_of([term], self.language)[0]

    def terms(self, text):
        return [fold(text[a:b]) for a, b in spans(text)]

    def idf(self, term):
        return self._weigh(self.term_counts[term])

    def stem_idf(self, stem):
        return self._weigh(self.stem_counts[stem])

    def _weigh(self, m):
        return log(1 + (self.n - m + 0.5) / (m + 0.5))

    def pair(self, query, passage):
        return Pair(self, query, passage)


class Pair:
    """A query and a passage; each feature is a method."""

    def __init__(self, collection, query_text, passage_text):
        query, passage = collection.terms(query_text), collection.terms(passage_text)
        self.query_text, self.text = query_text, passage_text
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

    # The extended set.

    def word_substring(self):
        return share(substring(self.query, self.passage), len(self.query))

    def word_subsequence(self):
        return share(subsequence(self.query, self.passage), len(self.query))

    def word_tiling(self):
        return share(tiles(self.query, self.passage), len(self.query))

    def word_gappy(self):
        return gappy_cosine(self.query, self.passage)

    def stem_tiling(self):
        return share(tiles(self.asked, self.found), len(self.asked))

    def stem_gappy(self):
        return gappy_cosine(self.asked, self.found)

    def word_idf_coverage(self):
        common, asked = (
            sum(self.collection.idf(term) for term in terms)
            for terms in (set(self.query) & set(self.passage), set(self.query))
        )
        return share(common, asked)

    def pair_jaccard(self):
        return jaccard(runs(self.query, 2), runs(self.passage, 2))

    def triple_coverage(self):
        return coverage(runs(self.query, 3), runs(self.passage, 3))

    def triple_jaccard(self):
        return jaccard(runs(self.query, 3), runs(self.passage, 3))

    def rarest_matched(self):
        common = set(self.asked) & set(self.found)
        return max(map(self.collection.stem_idf, common), default=0.0)

    def rarest_missing(self):
        missing = set(self.asked) - set(self.found)
        return max(map(self.collection.stem_idf, missing), default=0.0)

    def prefix_coverage(self):
        a, b = ({t[:4] for t in x if t not in self.stop} for x in (self.query, self.passage))
        return coverage(a, b)

    def subject_coverage(self):
        ends = [n for n, term in enumerate(self.passage) if term in self.words("copula")]
        subject = {stem for place, stem in self.places if ends and place < ends[0]}
        common = set(self.asked) & subject
        return share(self.idf_sum(common), self.idf_sum(set(self.asked)))

    def opening_matched(self):
        return not set(self.asked).isdisjoint(self.found[:1])

    def head_matched(self):
        return not set(self.found).isdisjoint(self.asked[:1])

    def last_matched(self):
        return not set(self.found).isdisjoint(self.asked[-1:])

    def capitals_matched(self):
        a, b = (
            {fold(word) for word in written(text)[1:] if word[0].isupper()}
            for text in (self.query_text, self.text)
        )
        return coverage(a, b)

    def numbers_matched(self):
        return coverage(numbers(self.query), numbers(self.passage))

    def new_stems(self):
        return log(1 + len(set(self.found) - set(self.asked)))

    # Cues.

    def words(self, trait):
        if self.collection.language != "english":
            return frozenset()
        return frozenset(CUES["traits"][trait].split())

    def has(self, trait):
        return not self.words(trait).isdisjoint(self.passage)

    def cue_capitals(self):
        words = written(self.text)
        return share(sum(word[0].isupper() for word in words[1:]), len(words))

    def cue_name(self):
        words = written(self.text)
        return any(a[0].isupper() and b[0].isupper() for a, b in pairwise(words[1:]))

    def cue_place(self):
        return share(sum(term in self.words("place") for term in self.passage), len(self.passage))

    def cue_definition(self):
        return any(
            a in self.words("being") and b in self.words("article")
            for a, b in pairwise(self.passage)
        )

    def cue_pronoun(self):
        return not self.words("pronoun").isdisjoint(self.passage[:1])

    def cue_fragment(self):
        return len(self.found) < 4

    def cue_new_number(self):
        return bool(numbers(self.passage) - numbers(self.query))

    def cue_number(self):
        return bool(numbers(self.passage))

    def cue_year(self):
        return any(re.fullmatch(r"1\d\d\d|20\d\d", term) for term in self.passage)

    def cue_unit(self):
        return self.has("unit") or not set("$£€%").isdisjoint(self.text)

    def cue_money(self):
        return not set("$£€").isdisjoint(self.text)

    def cue_bracket(self):
        return "(" in self.text or "-lrb-" in self.text.lower()

    def cue_quote(self):
        return not set('"`“').isdisjoint(self.text)

    def cue_full_stop(self):
        return bool(re.search(r"[.!?。！？।؟]\s*\Z", self.text))

    def value(self, name):
        """Value of a column."""
        kind, _, rest = name.rpartition(":")
        if kind:
            return self.value(rest) * (kind == question_kind(self.query))
        if name.startswith("cue_") and not hasattr(self, name):
            return self.has(name.removeprefix("cue_"))
        return float(getattr(self, name)())


def written(text):
    return [text[a:b] for a, b in spans(text)]


def numbers(terms):
    return {term for term in terms if term[0].isdigit()}


def question_kind(terms):
    """The first question word decides, with what follows it."""
    for n, term in enumerate(terms):
        rest = terms[n + 1 : n + 4]
        if term in ("who", "whom", "whose"):
            return "person"
        if term in ("when", "where", "why"):
            return {"when": "time", "where": "place", "why": "reason"}[term]
        if term == "how":
            return "quantity" if rest[:1] and rest[0] in CUES["quantity"].split() else "manner"
        if term in ("what", "which", "name"):
            for kind in ("time", "place", "quantity"):
                if set(rest) & set(CUES["following"][kind].split()):
                    return kind
            return "definition" if rest[:1] and rest[0] in CUES["definition"].split() else "thing"
    return "other"


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


def tiles(a, b, shortest=2):
    """Words covered by common substrings, the longest taken first."""
    a, b, covered = list(a), list(b), 0
    while True:
        found = [
            (-n, i, j)
            for i in range(len(a))
            for j in range(len(b))
            for n in range(shortest, min(len(a) - i, len(b) - j) + 1)
            if a[i : i + n] == b[j : j + n]
        ]
        if not found:
            return covered
        n, i, j = min(found)
        a[i : i - n], b[j : j - n] = [f"a{covered}"] * -n, [f"b{covered}"] * -n
        covered -= n


def gappy(a, b, m, decay=0.5):
    """Sum over pairs of equal subsequences of m words."""
    return sum(
        decay ** (s[-1] - s[0] + t[-1] - t[0] + 2)
        for s in combinations(range(len(a)), m)
        for t in combinations(range(len(b)), m)
        if [a[i] for i in s] == [b[j] for j in t]
    )


def gappy_cosine(a, b):
    return sum(share(gappy(a, b, m), sqrt(gappy(a, a, m) * gappy(b, b, m))) for m in (1, 2)) / 2


def concept_cosine(lists, query, passage, strongest=32):
    """Cosine of two lists of stems as vectors of concepts, each a list of stems."""
    n = len(lists)
    df = Counter(stem for concept in lists for stem in set(concept))
    rarity = {stem: log(1 + n / count) for stem, count in df.items()}
    entries = {stem: {} for stem in df}
    for k, concept in enumerate(lists):
        weights = {s: (1 + log(tf)) * rarity[s] for s, tf in Counter(concept).items()}
        norm = sqrt(sum(w * w for w in weights.values()))
        for s, w in weights.items():
            entries[s][k] = w * rarity[s] / norm
    greatest = max((w for own in entries.values() for w in own.values()), default=1)
    steps = {
        s: {
            k: max(round(255 * own[k] / greatest), 1)
            for k in sorted(own, key=lambda k: -own[k])[:strongest]
        }
        for s, own in entries.items()
    }
    a, b = (
        [sum(steps.get(s, {}).get(k, 0) for s in text) for k in range(n)]
        for text in (query, passage)
    )
    product = sum(x * y for x, y in zip(a, b))
    return share(product, sqrt(sum(x * x for x in a) * sum(y * y for y in b)))
