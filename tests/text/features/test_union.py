"""Features of texts against slow, plain definitions, and the laws they obey."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from didyma._core.text import set_hash_bits
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.execution import interruptible
from didyma.text.features import extended, lexicon
from didyma.text.features.digests import digests_of
from didyma.text.features.extended import ExtendedFeatures
from didyma.text.features.languages import stop_words
from didyma.text.features.part import FirstStage
from didyma.text.features.reading import LONGEST_QUERY
from didyma.text.features.small import SmallFeatures
from didyma.text.features.union import TextFeatures
from tests.text.features import reference
from tests.text.features.texts import languages, texts

QUERIES = ["who wrote Emma?", "the flow over a wing"]
PASSAGES = [
    ["Jane Austen wrote Emma in 1815.", "It is late.", ""],
    ["Flows over wings, the flow.", "Pressure of a flow over the wing"],
]
LISTS = Lists.of_texts(QUERIES, PASSAGES)


def one(query, passage):
    return Lists.of_texts([query], [[passage]])


def fitted(*parts, language="auto"):
    return TextFeatures(parts or [SmallFeatures()], language).fit(LISTS)


@st.composite
def collections(draw):
    language = draw(languages)
    queries = draw(st.lists(texts(language), min_size=1, max_size=3))
    passages = [draw(st.lists(texts(language), max_size=3)) for _ in queries]
    return language, queries, [*passages[:-1], [*passages[-1], "北 x"]]


@given(collections())
@settings(deadline=None)
def test_the_small_set_is_its_definition(given):
    language, queries, passages = given
    features = TextFeatures([SmallFeatures()], language).fit(Lists.of_texts(queries, passages))
    found = features.transform(Lists.of_texts(queries, passages))
    collection = reference.Collection([p for part in passages for p in part], language)
    pairs = [collection.pair(q, p) for q, part in zip(queries, passages) for p in part]
    expected = [[pair.value(name) for name in features.names] for pair in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@given(collections())
@settings(deadline=None)
def test_the_extended_set_is_its_definition(given):
    language, queries, passages = given
    features = TextFeatures([ExtendedFeatures()], language).fit(Lists.of_texts(queries, passages))
    names, found = list(features.names), features.transform(Lists.of_texts(queries, passages))
    collection = reference.Collection([p for part in passages for p in part], language)
    pairs = [[collection.pair(q, p) for p in part] for q, part in zip(queries, passages)]
    at = names.index("concepts")
    lists = [[s for pair in set_of(part) for s in content(pair, pair.passage)] for part in pairs]
    cosines = [
        reference.concept_cosine(lists, content(pair, pair.query), content(pair, pair.passage))
        for part in pairs
        for pair in part
    ]
    np.testing.assert_allclose(found[:, at], cosines, rtol=1e-5, atol=1e-12)
    del names[at]
    expected = [[pair.value(name) for name in names] for part in pairs for pair in part]
    np.testing.assert_allclose(np.delete(found, at, 1), expected, rtol=1e-12, atol=1e-15)


def set_of(pairs):
    """The pairs with distinct passages."""
    return {pair.text: pair for pair in pairs}.values()


def content(pair, terms):
    stop = stop_words(pair.collection.language)
    return [pair.collection.stem(term) for term in terms if term not in stop]


@given(collections(), collections())
@settings(deadline=None)
def test_a_row_depends_on_its_query_and_passage_alone(fitting, given):
    language, queries, passages = fitting
    features = TextFeatures([ExtendedFeatures()], language).fit(Lists.of_texts(queries, passages))
    _, queries, passages = given
    together = features.transform(Lists.of_texts(queries, passages))
    alone = [
        TextFeatures.from_state(*features.state()).transform(one(query, passage))[0]
        for query, part in zip(queries, passages)
        for passage in part
    ]
    assert together.tolist() == [row.tolist() for row in alone]


def test_a_state_is_arrays_and_json():
    features = fitted(ExtendedFeatures(), FirstStage())
    arrays, record = features.state()
    again = TextFeatures.from_state(load(save(arrays)), json.loads(json.dumps(record)))
    scores = [[3.0, 2.0, 1.0], [0.0, 1.0]]
    assert again.names == features.names
    assert again.reader_.language == features.reader_.language == "english"
    X, Y = (
        f.transform(Lists.of_texts(QUERIES, PASSAGES, scores=scores)) for f in (features, again)
    )
    assert X.tobytes() == Y.tobytes()


@pytest.mark.parametrize(("language", "count"), [("english", 283), ("german", 47), (None, 47)])
def test_only_languages_with_cues_have_products_with_kinds(language, count):
    features = fitted(ExtendedFeatures(), language=language)
    assert len(features.names) == len(set(features.names)) == count
    assert features.transform(LISTS).shape == (5, count)


def test_columns_in_lists_compare_passages_with_those_beside_them():
    lists = Lists.of_texts(["flow", "wing", "none"], [["flow flow", "a flow", "x"], ["wing"], []])
    features = TextFeatures([SmallFeatures()], "english", None, ["length", "bm25"]).fit(lists)
    X, names = features.transform(lists), features.names
    assert names[-2:] == ("length in list", "bm25 in list")
    for name in ("length", "bm25"):
        own = X[:3, names.index(name)]
        expected = (own - own.mean()) / own.std()
        assert X[:3, names.index(f"{name} in list")] == pytest.approx(expected)
    assert X[3, -2:].tolist() == [0, 0]  # which stands alone
    again = TextFeatures.from_state(*features.state())
    assert again.transform(lists).tobytes() == X.tobytes()
    few = features.with_columns(["bm25", "length in list"])
    assert few.names == (*SmallFeatures().names, "length in list")
    assert few.transform(lists)[:, -1].tolist() == X[:, -2].tolist()


def test_known_stems_come_from_the_state():
    arrays, record = fitted().state()
    arrays["reader/stem_of"][:] = 0  # all words are one
    X = TextFeatures.from_state(arrays, record).transform(
        Lists.of_texts(["emma"], [["austen wrote"]])
    )
    assert X[0, SmallFeatures().names.index("stem_coverage")] == 1


@pytest.mark.parametrize("part", [SmallFeatures(), ExtendedFeatures()])
def test_nothing_of_what_is_asked_is_remembered(part):
    features = fitted(part)
    X, before = features.transform(LISTS), pickle.dumps(features)
    words = [f"{letter}{n}" for letter in "xжé" for n in range(10_000)]
    features.transform(Lists.of_texts(["x1 ж2"], [[" ".join(words), "flow"]]))
    assert pickle.dumps(features) == before
    assert features.transform(LISTS).tobytes() == X.tobytes()


@given(collections(), collections(), st.integers(0, 3))
@settings(deadline=None)
def test_words_are_told_apart_by_their_characters(fitting, asked, bits):
    def values():
        language, queries, passages = fitting
        lists = Lists.of_texts(queries, passages)
        features = TextFeatures([ExtendedFeatures()], language).fit(lists)
        return features.transform(lists), features.transform(Lists.of_texts(*asked[1:]))

    expected = values()
    set_hash_bits(bits)  # of all words many meet in one slot
    try:
        found = values()
    finally:
        set_hash_bits(32)
    assert [X.tobytes() for X in found] == [X.tobytes() for X in expected]


def hashed(state):
    """A state as it was written when files had hashes of words in the place of their texts."""
    arrays, record = dict(state[0]), state[1]
    hashes, order = {}, {}
    for kind in ("term", "stem"):
        texts = arrays.pop(f"reader/{kind}s").tobytes().decode().split("\n")[:-1]
        hashes[kind] = np.frombuffer(digests_of(texts), np.uint64)
        order[kind] = np.argsort(hashes[kind])
        arrays[f"reader/{kind}_hashes"] = hashes[kind][order[kind]]
        arrays[f"reader/{kind}_counts"] = arrays[f"reader/{kind}_counts"][order[kind]]
    arrays["reader/stem_of"] = hashes["stem"][arrays["reader/stem_of"]][order["term"]]
    stems = hashes["stem"][arrays.pop("0/stems")]
    starts, by_hash = arrays["0/starts"], np.argsort(stems)
    entries = [np.arange(starts[s], starts[s + 1]) for s in by_hash]
    arrays["0/hashes"] = stems[by_hash]
    arrays["0/starts"] = np.cumsum([0, *map(len, entries)])
    for name in ("0/concepts", "0/weights"):
        arrays[name] = arrays[name][np.concatenate(entries)]
    return arrays, record


@given(collections(), collections())
@settings(deadline=None)
def test_a_state_of_hashes_is_used_as_it_was(fitting, asked):
    language, queries, passages = fitting
    features = TextFeatures([ExtendedFeatures()], language).fit(Lists.of_texts(queries, passages))
    old = TextFeatures.from_state(*hashed(features.state()))
    again = TextFeatures.from_state(*old.state())
    lists = Lists.of_texts(*asked[1:])
    X = features.transform(lists).tobytes()
    assert old.transform(lists).tobytes() == again.transform(lists).tobytes() == X


def test_a_damaged_state_of_hashes_is_refused():
    arrays, record = hashed(fitted(ExtendedFeatures()).state())
    for name in ("reader/stem_of", "0/hashes", "reader/term_hashes"):
        with pytest.raises(ValueError):
            TextFeatures.from_state({**arrays, name: arrays[name][::-1] + np.uint64(1)}, record)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("terms", lambda texts: texts[:-1]),
        ("terms", lambda texts: np.append(texts, np.uint8(10))),
        ("terms", lambda texts: texts.astype(np.int64)),
        ("stem_of", lambda places: places - 1),
        ("stem_of", lambda places: places + 1),
        ("stem_of", lambda places: places[:-1]),
        ("term_counts", lambda counts: -counts),
    ],
)
def test_a_damaged_vocabulary_is_refused(name, wrong):
    arrays, record = fitted().state()
    arrays[f"reader/{name}"] = wrong(arrays[f"reader/{name}"])
    with pytest.raises(ValueError):
        TextFeatures.from_state(arrays, record)


def test_reading_can_be_ended_between_chunks(monkeypatch):
    monkeypatch.setattr(lexicon, "CHUNK", 10)
    calls = []

    def check():
        calls.append(1)
        if len(calls) == 3:
            raise TimeoutError

    features = fitted()
    with interruptible(check), pytest.raises(TimeoutError):
        features.transform(LISTS)
    assert len(calls) == 3
    features.transform(LISTS)
    assert len(calls) == 3


def test_the_first_stage_gives_score_and_rank():
    scores = [[2.0, 3.0, 2.0], [0.5, -1.0]]
    X = fitted(FirstStage()).transform(Lists.of_texts(QUERIES, PASSAGES, scores=scores))
    assert X.tolist() == [[2, 1 / 2], [3, 1], [2, 1 / 2], [0.5, 1], [-1, 1 / 2]]
    with pytest.raises(DataError, match="scores: expected the first stage's scores, found none"):
        fitted(FirstStage()).transform(LISTS)


def test_empty_texts_have_no_overlap():
    X = fitted().transform(Lists.of_texts(["", "who", "?!"], [["", "who"], [""], ["?!"]]))
    assert np.isfinite(X).all()
    assert not np.delete(X, [1], axis=0).any()
    assert np.isfinite(
        fitted(ExtendedFeatures()).transform(Lists.of_texts([""], [["", "who"]]))
    ).all()


def test_no_passages_and_no_queries():
    assert fitted().transform(Lists.of_texts([], [])).shape == (0, 16)
    assert fitted().transform(Lists.of_texts(["a", "b"], [[], []])).shape == (0, 16)


def test_a_query_of_stop_words_alone_counts_them():
    X = fitted().transform(Lists.of_texts(["what is it"], [["It is what it is.", "Jane Austen"]]))
    assert X[0, 5:9].all()
    assert not X[1, :15].any()


def test_of_a_long_query_the_first_words_count():
    words = [f"w{n}" for n in range(2 * LONGEST_QUERY)]
    passages = [" ".join(words), " ".join(words[LONGEST_QUERY:]), words[LONGEST_QUERY]]
    long, short = " ".join(words), " ".join(words[:LONGEST_QUERY])
    X = fitted().transform(Lists.of_texts([long, short], [passages, passages]))
    assert X[:3].tobytes() == X[3:].tobytes()
    assert X[0, 2] == 1
    assert not X[1:3, :13].any()  # characters may meet


@pytest.mark.parametrize("n", [48, 49, 98, 103])
def test_a_tile_counts_in_a_query_of_any_length(n):
    words = [f"w{k}" for k in range(n)]
    features = fitted(ExtendedFeatures(), language=None)
    X = features.transform(one(" ".join(words), "w3 w4"))  # 2 / 49 · 49 is less than 2
    assert X[0, features.names.index("word_tiling")] == 2 / n


def test_a_passage_of_ten_megabytes():
    passage = "the flow of air over a wing 12 " * 350_000
    assert len(passage) > 10_000_000
    features = fitted(ExtendedFeatures())
    X = features.transform(Lists.of_texts(["flow over wings"], [[passage, "flow over wings"]]))
    names = features.names
    assert np.isfinite(X).all()
    assert X[:, names.index("stem_coverage")].tolist() == [1, 1]
    assert X[0, names.index("length")] == pytest.approx(np.log(1 + 8 * 350_000))


def test_unusual_characters_are_between_words():
    X = fitted().transform(
        Lists.of_texts(["flow wing"], [["flow\x00wing", "flow\ud800wing", "flow wing"]])
    )
    assert X[0].tolist() == X[1].tolist() == X[2].tolist()


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (Lists.of_texts([None], [["a"]]), "query 0: expected a text, found none"),
        (Lists(["a"]), "queries: expected the text of each query, found none"),
        (Lists(np.eye(1), queries=["a"]), "items: expected texts, found a matrix"),
        (
            Lists.of_texts(["who", "how"], [["a"], ["a", b"b"]]),
            "query 1, passage 1: expected a text, found bytes b'b'",
        ),
        (
            Lists.of_texts(["who"], [["a", 1.5]]),
            "query 0, passage 1: expected a text, found float 1.5",
        ),
    ],
)
def test_what_is_no_list_of_texts(lists, message):
    with pytest.raises(DataError) as error:
        fitted().transform(lists)
    assert str(error.value) == message
    with pytest.raises(DataError):
        TextFeatures([SmallFeatures()]).fit(lists)


def test_only_the_first_lists_are_concepts(monkeypatch):
    monkeypatch.setattr(extended, "MOST_CONCEPTS", 1)
    few = fitted(ExtendedFeatures())
    names = few.names
    X = few.transform(Lists.of_texts(["flow", "Emma"], [["flow"], ["Emma"]]))
    assert X[:, names.index("concepts")].tolist() == [0, 1]  # the second list is no concept


@pytest.mark.parametrize(("most", "strongest"), [(2**18, 4), (13, 2), (10, 1)])
def test_concepts_have_the_strongest_entries_of_each_stem(monkeypatch, most, strongest):
    """Fewer of each where there are many stems."""
    passages = [[f"flow {'flow ' * n} ship{'s' * (n % 2)} tree{n}"] for n in range(5)]
    lists = Lists.of_texts(["flow"] * 5, passages)

    def entries():
        table = TextFeatures([ExtendedFeatures()], None).fit(lists).parts[0].concepts_
        pairs = list(zip(table.weights.tolist(), table.concepts.tolist()))
        return [pairs[a:b] for a, b in pairwise(table.starts.tolist())]

    whole = entries()
    monkeypatch.setattr(extended, "STRONGEST", 4)
    monkeypatch.setattr(extended, "MOST_ENTRIES", most)
    few = entries()
    assert sum(map(len, few)) <= most
    assert [sorted(own) for own in few] == [sorted(own)[-strongest:] for own in whole]


def test_features_that_are_not_fitted():
    with pytest.raises(DataError, match="call fit first"):
        _ = TextFeatures([ExtendedFeatures()]).names
    with pytest.raises(DataError, match="call fit first"):
        TextFeatures([SmallFeatures()]).transform(LISTS)
    with pytest.raises(DataError, match="at least one passage that has words"):
        TextFeatures([SmallFeatures()]).fit(Lists.of_texts(["a"], [["!", ""]]))
    with pytest.raises(DataError, match="language"):
        TextFeatures([SmallFeatures()], "latin").fit(LISTS)
