"""TrigramTagger against its formulas, written out over all sequences of tags, and on real text."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from didyma import model
from didyma.applications.tagging.tagger import TrigramTagger
from didyma.data import conll
from didyma.errors import DataError, ModelFileError

SENTENCES = [
    ["the", "dog", "saw", "the", "cat"],
    ["The", "cat", "saw", "a", "saw"],
    ["dogs", "bark"],
    ["Rex", "saw", "2", "dogs"],
    ["a", "NATO", "dog", "barks"],
    ["cats", "saw"],
    [],
    ["saw"],
]
TAGS = ["D N V D N", "D N V D N", "N V", "P V C N", "D P N V", "N V", "", "V"]
TAGS_OF = [tags.split() for tags in TAGS]
START = "<s>"


class Formulas:
    """P(t3 | t1, t2), P(w | t1, t2) and P(t | suffix) from dictionaries of counts."""

    def __init__(self, a: float, b: float, longest: int, rare: int, prior: float) -> None:
        self.a, self.b, self.longest, self.prior = a, b, longest, prior
        self.tags = sorted(set(" ".join(TAGS).split()))
        self.n: Counter[Any] = Counter()
        self.often = Counter(word for sentence in SENTENCES for word in sentence)
        self.endings: Counter[Any] = Counter()
        for sentence, tags in zip(SENTENCES, TAGS_OF):
            if not sentence:
                continue
            path = [START, START, *tags, START]
            for t1, t2, t3 in zip(path, path[1:], path[2:]):
                # contexts are counted as such, events as such
                self.n.update(
                    [("c2", t1, t2), ("3", t1, t2, t3), ("c1", t2), ("2", t2, t3), ("1", t3), "0"]
                )
            for i, (word, tag) in enumerate(zip(sentence, tags)):
                self.n.update(
                    [("e3", path[i + 1], tag, word), ("e2", path[i + 1], tag), ("e1", tag, word)]
                )
                self.n["t", tag] += 1
                if self.often[word] <= rare:
                    for key in self.keys(word, i == 0):
                        self.endings.update([(key, tag), key])

    def f(self, count: int) -> float:
        x = math.log(count + 1, self.a) + self.b
        return x / (x + 1)

    def keys(self, word: str, begins: bool) -> list[str]:
        if any(map(str.isdigit, word)):
            kind = "0"
        elif not word[0].isupper():
            kind = "a"
        elif begins:
            kind = "B"
        else:
            kind = "A" if word.isupper() and len(word) > 1 else "C"
        lengths = range(1, min(len(word), self.longest) + 1)
        return ["", kind] + [kind + word[len(word) - m :] for m in lengths]

    def transition(self, t1: str, t2: str, t3: str) -> float:
        n = self.n
        k = self.f(n["2", t2, t3])
        p2 = k * n["2", t2, t3] / n["c1", t2] + (1 - k) * n["1", t3] / n["0"]
        k = self.f(n["3", t1, t2, t3])
        seen = n["3", t1, t2, t3] / n["c2", t1, t2] if n["c2", t1, t2] else 0.0
        return k * seen + (1 - k) * p2

    def suffix(self, word: str, begins: bool, tag: str) -> float:
        share = 0.0
        for key in self.keys(word, begins):
            if self.endings[key]:
                k = 1.0 if key == "" else self.f(self.endings[key])
                share = k * self.endings[key, tag] / self.endings[key] + (1 - k) * share
        return share

    def emission(self, t1: str, t2: str, word: str, begins: bool) -> float:
        n = self.n
        if not self.often[word] and begins and self.often[word.lower()]:
            word = word.lower()
        begins = begins and not self.often[word]
        k = self.f(n["e3", t1, t2, word])
        seen = n["e3", t1, t2, word] / n["e2", t1, t2] if n["e2", t1, t2] else 0.0
        weight = n["e1", t2, word] + self.prior * self.suffix(word, begins, t2)
        return k * seen + (1 - k) * weight / n["t", t2]

    def log_probability(self, sentence: list[str], tags: tuple[str, ...]) -> float:
        path = [START, START, *tags]
        total = 0.0
        for i, (t1, t2, t3) in enumerate(zip(path, path[1:], path[2:])):
            emission = self.emission(t2, t3, sentence[i], i == 0)
            if not emission:
                return -math.inf
            total += math.log(self.transition(t1, t2, t3)) + math.log(emission)
        return total + math.log(self.transition(path[-2], path[-1], START))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ((10.0, 1.0, 10, 10, 1.0), "the dog barks"),
        ((10.0, 1.0, 10, 10, 1.0), "Dogs saw Rex"),  # begins with a word known in lower case
        ((2.0, 0.5, 2, 1, 0.3), "Cats saw 77 UNO"),  # unknown words of all kinds
        ((2.0, 0.5, 2, 1, 0.3), "Bo saw barking frogs"),
        ((10.0, 1.0, 0, 10, 2.0), "logs"),  # no suffixes at all
    ],
)
def test_scores_are_those_of_the_formulas(parameters: Any, sentence: str) -> None:
    words = sentence.split()
    formulas = Formulas(*parameters)
    tagger = TrigramTagger(*parameters, threshold=0.0).fit(SENTENCES, TAGS_OF)
    assert tagger.tags_ == formulas.tags
    every = {
        tags: formulas.log_probability(words, tags)
        for tags in product(formulas.tags, repeat=len(words))
    }
    possible = {tags: value for tags, value in every.items() if value > -math.inf}
    (found,) = tagger.n_best([words], n=10_000)
    assert {tuple(tags) for tags, _ in found} == set(possible)
    for tags, value in found:
        assert value == pytest.approx(possible[tuple(tags)], abs=1e-9)
    assert max(value for _, value in found) == found[0][1]
    assert tagger.predict([words]) == [found[0][0]]


def corpus(n: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of a small grammar in which a word has several tags."""
    choose = random.Random(seed).choice
    words = {
        "D": ["the", "a"],
        "N": ["dog", "saws", "walks", "fish", "plays"],
        "P": ["Ann", "Bob", "Rex", "Kim"],
        "V": ["saws", "walks", "fish", "plays", "barks"],
    }
    tags = [list(choose(["DNV", "PV", "DNVDN", "PVDN", "PVP"])) for _ in range(n)]
    sentences = [[choose(words[tag]) for tag in own] for own in tags]
    return [[first.capitalize(), *rest] for first, *rest in sentences], tags


def test_a_small_language_is_learned_and_its_unknown_words_too() -> None:
    tagger = TrigramTagger(rare=1000).fit(*corpus(300))
    assert tagger.score(*corpus(100, seed=1)) > 0.98
    assert tagger.predict([["The", "frog", "barks"], ["Tim", "walks"]]) == [
        ["D", "N", "V"],
        ["P", "V"],
    ]
    assert tagger.knows("dog")
    assert not tagger.knows("frog")


def test_the_first_of_the_n_best_is_what_is_predicted() -> None:
    sentences, tags = corpus(50)
    tagger = TrigramTagger().fit(sentences, tags)
    lists = tagger.n_best(sentences, n=5)
    assert [guesses[0][0] for guesses in lists] == tagger.predict(sentences)
    for guesses in lists:
        values = [value for _, value in guesses]
        assert values == sorted(values, reverse=True)
        assert len({tuple(way) for way, _ in guesses}) == len(guesses) <= 5


def test_blocks_of_sentences_do_not_change_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences, tags = corpus(20)
    tagger = TrigramTagger().fit(sentences, tags)
    whole = tagger.n_best(sentences, n=3)
    monkeypatch.setattr("didyma.applications.tagging.tagger.BLOCK", 3)
    assert tagger.n_best(sentences, n=3) == whole


def test_lists_of_training_data_come_from_taggers_of_other_folds() -> None:
    sentences, tags = corpus(30)
    tagger = TrigramTagger(prior=0.5)
    lists = tagger.jackknife(sentences, tags, n=4, n_folds=3, random_state=5)
    assert not hasattr(tagger, "tags_")
    assert len(lists) == len(sentences)
    order = np.random.RandomState(5).permutation(30).tolist()
    for fold in range(3):
        inside = order[fold::3]
        outside = [i for i in range(30) if i not in inside]
        other = clone(tagger).fit([sentences[i] for i in outside], [tags[i] for i in outside])
        expected = other.n_best([sentences[i] for i in inside], n=4)
        for i, guesses in zip(inside, expected):
            assert [way for way, _ in lists[i]] == [way for way, _ in guesses]
            assert [x for _, x in lists[i]] == pytest.approx([x for _, x in guesses])
    assert tagger.jackknife(sentences, tags, n=4, n_folds=3, random_state=5) == lists
    assert tagger.jackknife(sentences, tags, n=4, n_folds=3, random_state=6) != lists


def test_empty_sentences_and_single_words() -> None:
    tagger = TrigramTagger().fit([["yes"], []], [["I"], []])
    assert tagger.predict([[], ["yes"], ["no"]]) == [[], ["I"], ["I"]]
    assert tagger.predict([]) == tagger.n_best([]) == []
    lists = tagger.n_best([[], ["yes"], [""]], n=3)
    assert lists[0] == [([], 0.0)]
    assert [way for way, _ in lists[1]] == [["I"]]
    assert [way for way, _ in lists[2]] == [["I"]]


def test_words_that_are_all_frequent_still_teach_suffixes() -> None:
    tagger = TrigramTagger(rare=1).fit([["walks", "Rex"]] * 20, [["V", "P"]] * 20)
    assert tagger.predict([["talks", "Max"]]) == [["V", "P"]]


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    sentences, tags = corpus(40)
    tagger = TrigramTagger(rare=3, prior=0.7).fit(sentences, tags)
    tagger.save(tmp_path / "tagger.safetensors")
    loaded = TrigramTagger.load(tmp_path / "tagger.safetensors")
    assert loaded.get_params() == tagger.get_params()
    assert loaded.n_best(sentences, 3) == tagger.n_best(sentences, 3)
    assert model.describe(tmp_path / "tagger.safetensors")["class"] == "TrigramTagger"


def test_unsound_models_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    sentences, tags = corpus(10)
    for name, wrong in (
        ("lexicon_tags", lambda x: x + 1),
        ("lexicon_starts", lambda x: x[::-1].copy()),
        ("context_starts", lambda x: x + 1),
        ("context_tags", lambda x: x - 100),
        ("trigram_keys", lambda x: x + 10**6),
        ("bigrams", lambda x: x[1:]),
        ("trigrams", lambda x: x[1:]),
    ):
        tagger = TrigramTagger().fit(sentences, tags)
        tagger.arrays_[name] = wrong(tagger.arrays_[name])
        tagger.save(path)
        with pytest.raises(ModelFileError, match="do not fit together"):
            TrigramTagger.load(path)


def test_fitting_again_forgets_what_was_learned() -> None:
    tagger = TrigramTagger().fit([["a"]], [["X"]])
    assert tagger.predict([["a"]]) == [["X"]]
    assert tagger.fit([["a"]], [["Y"]]).predict([["a"]]) == [["Y"]]


@pytest.mark.parametrize(
    ("sentences", "tags", "message"),
    [
        ([["a", "b"]], [["X"]], r"tags\[0\]: expected 2 tags, one for each word, found 1"),
        ([["a"]], [], "tags: expected as many lists as there are sentences, 1, found 0"),
        (["a b"], [["X", "Y"]], r"sentences\[0\]: expected a list of texts, found a text"),
        ([["a", 3]], [["X", "Y"]], r"sentences\[0\]: expected texts, found 3"),
        ([["a"]], [[None]], r"tags\[0\]: expected texts, found None"),
        ([[]], [[]], "sentences: expected at least one word, found none"),
    ],
)
def test_bad_sentences_are_refused(sentences: Any, tags: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TrigramTagger().fit(sentences, tags)


@pytest.mark.parametrize(
    "parameters",
    [
        *({"a": 1.0}, {"b": 0.0}, {"prior": 0.0}, {"prior": math.nan}, {"rare": 0}),
        *({"longest_suffix": -1}, {"threshold": 1.0}),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"^{next(iter(parameters))}: expected"):
        TrigramTagger(**parameters).fit([["a"]], [["X"]])


def test_bad_calls_are_refused() -> None:
    tagger = TrigramTagger()
    with pytest.raises(NotFittedError):
        tagger.predict([["a"]])
    with pytest.raises(DataError, match="n_folds: expected 2 to 1"):
        tagger.jackknife([["a"]], [["X"]], n_folds=2)
    tagger.fit([["a"]], [["X"]])
    with pytest.raises(DataError, match="n: expected at least 1, found 0"):
        tagger.n_best([["a"]], n=0)
    with pytest.raises(DataError, match="found a text"):
        tagger.predict(["a b"])
    with pytest.raises(DataError, match="at least one word"):
        tagger.score([[]], [[]])
    assert tagger.score([["a"]], [["never seen"]]) == 0.0


@pytest.mark.parametrize(
    ("language", "column", "least"),
    [("vi_vtb_ud2.0/vi", conll.Field.XPOS, 0.85), ("vi_vtb_ud2.0/vi", conll.Field.UPOS, 0.87)],
)
def test_accuracy_on_a_treebank(
    shared_data: Path, language: str, column: conll.Field, least: float
) -> None:
    train, test = (
        conll.read(shared_data / "ud" / f"{language}-ud-{part}.conllu")
        for part in ("train", "test")
    )
    tagger = TrigramTagger().fit([s.words for s in train], [s.column(column) for s in train])
    assert tagger.score([s.words for s in test], [s.column(column) for s in test]) > least
