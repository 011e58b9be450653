from __future__ import annotations

import json
from itertools import chain

import numpy as np
import pytest
from Stemmer import Stemmer

import didyma
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.text import BM25, SmallFeatures, TextFeatures
from didyma.text.features.languages import stop_words
from didyma.text.features.reading import Reader, language_of

ENGLISH = ("ship", "river", "bridge", "garden", "engine", "window", "teacher", "letter")
RUSSIAN = {  # a noun, and its genitive plural
    "корабль": "кораблей",
    "завод": "заводов",
    "учитель": "учителей",
    "автор": "авторов",
    "доктор": "докторов",
    "город": "городов",
    "солдат": "солдатами",
    "парк": "парками",
}
GERMAN = {
    "Schiff": "Schiffes",
    "Brücke": "Brücken",
    "Garten": "Gartens",
    "Lampe": "Lampen",
    "Lehrer": "Lehrers",
    "Brief": "Briefen",
    "Fenster": "Fensters",
    "Frage": "Fragen",
}


def english():
    return _lists(
        "what is it about the {}?",
        "It was one of the {} that are in the old town.",
        {word: word + "s" for word in ENGLISH},
    )


def russian():
    return _lists(
        "что это было и где {}?", "Это было не так, что из всех {} в старом доме.", RUSSIAN
    )


def german():
    return _lists(
        "was ist das mit der {}?", "Das ist nicht eine der {} in der alten Stadt.", GERMAN
    )


def _lists(query, passage, forms):
    """Each query asks for a word; its passages have other forms of it and of other words."""
    words = list(forms)
    queries = [query.format(word) for word in words]
    passages = [
        [passage.format(forms[words[(n + k) % len(words)]]) for k in (1, 0, 2)]
        for n in range(len(words))
    ]
    return Lists.of_texts(queries, passages, [[0, 1, 0]] * len(words))


def both(first, second):
    parts = first, second
    rows = [
        [[p.items[r] for r in p.groups.rows_of(q)] for q in range(len(p.groups))] for p in parts
    ]
    labels = [[[p.y[r] for r in p.groups.rows_of(q)] for q in range(len(p.groups))] for p in parts]
    return Lists.of_texts([*first.queries, *second.queries], [*chain(*rows)], [*chain(*labels)])


def precision(features, lists):
    """Mean AP of the order by stemmed BM25."""
    scores = features.transform(lists)[:, features.names.index("stem_bm25")]
    return didyma.evaluate(scores, lists.y, lists.groups, "AP").mean("AP")


@pytest.mark.parametrize("other", [russian, german])
def test_each_half_of_a_collection_ranks_as_alone(other):
    halves = english(), other()
    mixed = TextFeatures([SmallFeatures()]).fit(both(*halves))
    assert mixed.reader_.language == f"english,{other.__name__}"
    for half in halves:
        alone = TextFeatures([SmallFeatures()]).fit(half)
        assert alone.reader_.language in ("english", other.__name__)
        assert precision(mixed, half) >= precision(alone, half) == 1
    unstemmed = TextFeatures([SmallFeatures()], "english").fit(both(*halves))
    assert precision(unstemmed, halves[1]) < 1


def test_terms_have_the_stems_and_stop_words_of_their_language():
    lists = both(english(), russian())
    reader = Reader.fit(lists)
    lexicon = reader.read(lists).lexicon
    stemmers = {name: Stemmer(name, 0) for name in ("english", "russian")}
    for term, stem in zip(lexicon.terms, lexicon.stem):
        language = "english" if term.isascii() else "russian"
        of_same = [t for t, s in zip(lexicon.terms, lexicon.stem) if s == stem]
        expected = stemmers[language].stemWord(term)
        assert {stemmers[language].stemWord(other) for other in of_same} == {expected}
    is_stop = dict(zip(lexicon.terms, lexicon.is_stop.tolist()))
    for term, stops in is_stop.items():
        assert stops == (term in stop_words("english") | stop_words("russian"))


@pytest.mark.parametrize(
    ("other", "query", "passage"),
    [(russian, "космонавт", "космонавтов"), (german, "Zeitungen", "Zeitung")],
)
def test_words_that_training_has_not_seen_are_stemmed_in_their_language(other, query, passage):
    features = TextFeatures([SmallFeatures()], f"english,{other.__name__}")
    features.fit(both(english(), other()))
    coverage = features.names.index("stem_coverage")
    asked = Lists.of_texts([query, "astronaut"], [[passage], ["astronauts"]])
    assert features.transform(asked)[:, coverage].tolist() == [1, 1]


def test_a_name_is_one_word_in_all_languages():
    features = TextFeatures([SmallFeatures()]).fit(both(english(), german()))
    asked = Lists.of_texts(
        ["who is it of the Schiff Aurora?"], [["Das ist die Aurora.", "Das ist es."]]
    )
    bm25 = features.transform(asked)[:, features.names.index("stem_bm25")]
    assert bm25[0] > 0 == bm25[1]


@pytest.mark.parametrize("stops", [False, True])
def test_a_stop_word_of_one_language_is_a_word_of_another(stops):
    english, german = ["the men of the town are in it"], ["der Mann ist alt und er ist hier"]
    (german if stops else english)[0] += " war"
    lists = Lists.of_texts(["the war"], [english + german])
    lexicon = Reader.fit(lists, "english,german").read(lists).lexicon
    is_stop = dict(zip(lexicon.terms, lexicon.is_stop.tolist()))
    assert is_stop["war"] is stops
    assert is_stop["der"]
    assert not is_stop["men"]


def test_a_row_depends_on_its_query_and_passage_alone():
    features = TextFeatures([SmallFeatures()]).fit(both(english(), german()))
    pairs = ["Zeitungen of the ships", "Fragen zu newspapers"]
    company = Lists.of_texts(["Zeitung ship"], [[*pairs, "Das ist die Zeitung der Briefe"]])
    for n, pair in enumerate(pairs):
        alone = features.transform(Lists.of_texts(["Zeitung ship"], [[pair]]))
        assert (alone[0] == features.transform(company)[n]).all()


def test_features_of_several_languages_are_saved():
    lists = both(english(), german())
    features = TextFeatures([SmallFeatures()]).fit(lists)
    arrays, values = features.state()
    again = TextFeatures.from_state(arrays, json.loads(json.dumps(values)))
    asked = Lists.of_texts(["Zeitungen und ships"], [["die Zeitung", "of the ship"]])
    assert (features.transform(asked) == again.transform(asked)).all()
    assert again.reader_.language == "english,german"
    with pytest.raises(ValueError, match="language of each term"):
        TextFeatures.from_state(
            {name: array for name, array in arrays.items() if "term_languages" not in name}, values
        )


def test_one_language_is_saved_as_before():
    arrays, values = Reader.fit(english()).state()
    assert values["language"] == "english"
    assert "term_languages" not in arrays


def test_languages_can_be_named():
    lists = both(english(), russian())
    reader = Reader.fit(lists, "russian , english")
    assert reader.language == "russian,english"
    with pytest.raises(DataError, match=r"language: expected auto.*'english,klingon'"):
        Reader.fit(lists, "english,klingon")


def test_a_few_texts_in_another_language_are_no_language_of_the_collection():
    texts = [f"It was one of the {word}s that are in the town." for word in ENGLISH] * 20
    assert language_of([*texts, "Das ist nicht eine der Brücken in der Stadt."]) == "english"
    others = [f"Das ist nicht eine der {word} in der Stadt." for word in GERMAN] * 3
    assert language_of([*texts, *others]) == "english,german"
    assert language_of([*others, *texts]) == "english,german"


def test_an_index_stems_several_languages():
    lists = both(english(), russian())
    passages = list(dict.fromkeys(lists.items))
    index = BM25("english,russian").fit(passages)
    features = TextFeatures([SmallFeatures()], "english,russian").fit(lists)
    for query, word in (("ship", "ships"), ("корабль", "кораблей")):
        [(places, scores)] = index.top([query], 1)
        assert word in passages[places[0]]
        asked = Lists.of_texts([query], [[passages[places[0]]]])
        assert features.transform(asked)[0, features.names.index("stem_bm25")] == scores[0]
    again = BM25.from_state(*index.state())
    assert again.top(["корабль"], 3)[0][1].tolist() == index.top(["корабль"], 3)[0][1].tolist()


def test_guesses_are_the_most_likely_by_trigrams():
    lexicon = Reader.fit(both(english(), german())).vocabulary.languages
    for term in ("zeitungen", "newspapers", "Frühling"):
        grams = [f"^{term}$"[n : n + 3] for n in range(len(term))]
        likelihood = []
        for number in range(2):
            own = [t for t, n in zip(lexicon.terms, lexicon.numbers) if n == number]
            counts = [sum(gram in f"^{t}$" for t in own) for gram in grams]
            likelihood.append(np.log((1 + np.array(counts)) / (1 + len(own))).sum())
        assert lexicon.guess([term]) == [int(np.argmax(likelihood))]
