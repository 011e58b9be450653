"""Drift: what is flagged, what is not, and what is said about it."""

from __future__ import annotations

import json
from functools import reduce

import numpy as np
import pytest

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.text.drift import LOOKED_AT, Ranges, departures
from didyma.text.text_reranker import TextReranker
from tests.test_imports import modules_after

NAMES = ("bm25", "overlap", "kind", "length")


def batch(n_queries, random, *, shift=0.0):
    """Passages of one query resemble each other; a feature has few values, one is a query's own."""
    sizes = random.integers(1, 20, n_queries)
    query = np.repeat(np.arange(n_queries), sizes)
    own = random.normal(size=(n_queries, 4))[query]
    X = 0.8 * own + 0.6 * random.normal(size=own.shape)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = own[:, 2] > 0
    X[:, 3] += shift
    return X, Groups.from_qid(query)


@pytest.mark.parametrize("n_queries", [1, 3, 20, 150])
def test_a_batch_from_where_training_came_from_is_rarely_flagged(n_queries):
    random = np.random.default_rng(0)
    flagged = 0
    for _ in range(10):
        ranges = Ranges.fit(*batch(150, random), NAMES)
        for _ in range(20):
            drift = ranges.compare(*batch(n_queries, random))
            flagged += max(own.distance for own in drift.features) > drift.threshold
            assert drift.level == "like training"
    assert flagged <= 4  # of 200


def test_distances_shrink_as_the_threshold_does():
    """The threshold is no more than a few times what chance does, whatever the batch's size."""
    random = np.random.default_rng(0)
    ranges = Ranges.fit(*batch(2000, random), NAMES)
    for n_queries in (10, 100, 1000):
        drift = ranges.compare(*batch(n_queries, random))
        assert drift.threshold / 8 < drift.features[0].distance < drift.threshold


def test_a_shift_is_found_and_named():
    random = np.random.default_rng(0)
    ranges = Ranges.fit(*batch(200, random), NAMES)
    drift = ranges.compare(*batch(100, random, shift=-3.0))
    assert drift.level == "differs"
    assert drift.features[0].name == "length"
    assert drift.features[0].shift < -0.8
    assert str(drift).startswith("differs: length is lower (distance 0.8")
    assert "outside its range" in str(drift)
    assert [feature.name for feature in drift.differing] == ["length"]
    # The same shift is nothing that three queries could show.
    assert ranges.compare(*batch(3, random, shift=-3.0)).verdict == (
        "like training, as far as 3 queries can tell"
    )


def test_far_is_said_of_many_features():
    random = np.random.default_rng(0)
    X, groups = batch(200, random)
    drift = Ranges.fit(X, groups, NAMES).compare(5 * X + 5, groups)
    assert drift.level == "far"
    assert str(drift).startswith("far: ")
    assert "; and " in str(drift)


def test_what_matters_to_the_ranker_counts():
    random = np.random.default_rng(0)
    training, shifted = batch(200, random), batch(100, random, shift=-3.0)
    little, much = (
        Ranges.fit(*training, NAMES, importance=np.array([1.0, 1.0, 1.0, own]))
        for own in (0.01, 30.0)
    )
    assert little.compare(*shifted).level == "like training"
    assert little.compare(*shifted).differing == ()
    assert much.compare(*shifted).level == "far"
    assert much.compare(*shifted).features[0].name == "length"
    # Nothing is known of a ranker that looks at nothing.
    assert Ranges.fit(*training, NAMES, np.zeros(4)).compare(*shifted).level == "like training"


def test_the_number_of_passages_is_told_but_no_feature():
    random = np.random.default_rng(0)
    values = random.normal(size=(2000, 1))
    ranges = Ranges.fit(values, Groups.from_sizes([10] * 200, 2000), ["x"])
    drift = ranges.compare(values, Groups.from_sizes([20] * 100, 2000))
    assert drift.features[-1].name == "number of passages"
    assert drift.features[-1].distance == pytest.approx(1)


def test_a_spread_within_queries_is_found():
    """Values are the same over all queries, but no longer tell a query's passages apart."""
    random = np.random.default_rng(0)
    values = random.normal(size=2000)
    groups = Groups.from_sizes([10] * 200, 2000)
    ranges = Ranges.fit(values[:, None], groups, ["cosine"])
    drift = ranges.compare(np.sort(values)[:, None], groups)
    assert [feature.name for feature in drift.differing] == ["spread of cosine"]
    assert str(drift).startswith("far: spread of cosine is lower")
    wide = ranges.compare(np.where(values > 0, 3.0, -3.0)[:, None], groups)
    assert "cosine is spread otherwise" in str(wide)


def test_distance_is_that_of_both_distribution_functions():
    random = np.random.default_rng(0)
    old, new = random.normal(size=300), random.normal(0.5, 2, size=200)
    old_groups, new_groups = Groups.from_sizes([1] * 300, 300), Groups.from_sizes([1] * 200, 200)
    ranges = Ranges.fit(old[:, None], old_groups, ["x"])
    found = {f.name: f for f in ranges.compare(new[:, None], new_groups).features}
    values = np.concatenate([old, new])[:, None]
    exact = np.abs((old <= values).mean(axis=1) - (new <= values).mean(axis=1)).max()
    assert exact - 1 / 16 < found["x"].distance <= exact + 1e-6  # 33 quantiles are looked at
    assert found["x"].outside == pytest.approx(((new < old.min()) | (new > old.max())).mean())
    greater = np.sign(new - old[:, None]).mean()
    assert found["x"].shift == pytest.approx(greater, abs=0.03)
    assert max(found[name].distance for name in ("spread of x", "number of passages")) < 1e-6


def test_each_query_counts_as_one():
    """A query of a thousand passages is one query."""
    random = np.random.default_rng(0)
    X, groups = batch(200, random)
    ranges = Ranges.fit(X, groups, NAMES)
    big = np.concatenate([X, np.full((1000, 4), 9.0)])
    sizes = [*groups.sizes, 1000]
    drift = ranges.compare(big, Groups.from_sizes(sizes, len(big)))
    assert drift.features[0].distance < 0.02


def test_rounding_is_no_drift():
    """Neither of values that are all equal, nor of the spread of a constant."""
    random = np.random.default_rng(0)
    groups = Groups.from_sizes([7] * 50, 350)
    X = np.repeat(random.integers(1, 9, 50) / 10, 7)[:, None]
    drift = Ranges.fit(X, groups, ["x"]).compare(X * (1 + 4e-16), groups)
    assert drift.features[0].distance < 1e-6


def test_missing_values_are_values():
    random = np.random.default_rng(0)
    X, groups = batch(100, random)
    X[::2, 0] = np.nan
    ranges = Ranges.fit(X, groups, NAMES)
    assert ranges.compare(X, groups).level == "like training"
    full = batch(100, random)[0]
    X[:, 0] = np.resize(full[:, 0], len(X))
    assert any(feature.name == "bm25" for feature in ranges.compare(X, groups).differing)
    X[:, 0] = np.nan
    assert Ranges.fit(X, groups, NAMES).compare(X, groups).level == "like training"


def test_queries_without_passages_do_not_count():
    random = np.random.default_rng(0)
    X, groups = batch(50, random)
    ranges = Ranges.fit(X, groups, NAMES)
    with_empty = Groups.from_lists([0, *groups.sizes, 0])
    assert ranges.compare(X, with_empty).to_dict() == ranges.compare(X, groups).to_dict()
    assert Ranges.fit(X, with_empty, NAMES).n_queries == 50


def test_round_trip():
    random = np.random.default_rng(0)
    ranges = Ranges.fit(*batch(100, random), NAMES)
    known, values = ranges.state()
    restored = Ranges.from_state(known, json.loads(json.dumps(values)))
    other = batch(30, random, shift=1.0)
    found = restored.compare(*other).to_dict()
    assert found == ranges.compare(*other).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert sum(array.nbytes for array in known.values()) == 9 * 33 * 8 + 4 * 8
    with pytest.raises(ValueError, match=r"Ranges\.edges should be 9×33, but is 2×33"):
        Ranges.from_state({**known, "edges": known["edges"][:2]}, values)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 2)), r"X: expected 2 rows of 1 features, found shape \(3, 2\)"),
        (np.zeros((2, 1), object), "X: expected a dense matrix of numbers"),
        ([[0.0], [1.0]], "X: expected a dense matrix of numbers"),
    ],
)
def test_bad_input(X, message):
    groups = Groups.from_sizes([1, 1], 2)
    ranges = Ranges.fit(np.zeros((2, 1)), groups, ["x"])
    with pytest.raises(DataError, match=message):
        ranges.compare(X, groups)
    with pytest.raises(DataError, match=message):
        Ranges.fit(X, groups, ["x"])


def test_no_rows_are_refused():
    ranges = Ranges.fit(np.zeros((2, 1)), Groups.from_sizes([1, 1], 2), ["x"])
    with pytest.raises(DataError, match="expected at least one row"):
        ranges.compare(np.zeros((0, 1)), Groups.from_lists([0]))


def test_asking_needs_numpy_alone():
    code = "import didyma.text.drift"
    assert not modules_after(code) & {"scipy", "sklearn", "ir_measures"}


def test_collections_differ_and_halves_of_one_do_not(shared_data):
    from didyma.data.texts.qa import read_wikiqa
    from didyma.text.features.bm25 import BM25
    from didyma.text.features.small import SmallFeatures
    from didyma.text.features.union import TextFeatures

    asked = read_wikiqa(shared_data / "wikiqa" / "dev.txt")
    order = np.random.default_rng(0).permutation(len(asked.groups))
    halves = [asked.select_lists(half) for half in (order[::2], order[1::2])]
    folder = shared_data / "rerank" / "cranfield"
    lines = {
        name: [line.split("\t", 1)[1] for line in (folder / name).read_text().splitlines()]
        for name in ("queries.tsv", "passages.tsv")
    }
    queries, texts = lines["queries.tsv"], lines["passages.tsv"]
    tops = BM25().fit(texts).top(queries, 10)
    abroad = Lists.of_texts(queries, [[texts[n] for n in places] for places, _ in tops])
    features = TextFeatures([SmallFeatures()]).fit(halves[0])

    def seen(lists):
        return features.transform(lists), lists.groups

    ranges = Ranges.fit(*seen(halves[0]), features.names)
    assert ranges.compare(*seen(halves[1])).level == "like training"
    assert ranges.compare(*seen(abroad)).level == "far"


def test_departures_are_those_of_correlations():
    random = np.random.default_rng(0)
    sizes = [4, 1, 0, 7, 3]
    groups = Groups.from_lists(sizes)
    new, old = random.normal(size=(2, sum(sizes)))
    old[-3:] = 5.0  # nothing to compare with
    found = departures(new, old, groups)
    expected = [1 - np.corrcoef(new[own], old[own])[0, 1] for own in (slice(4), slice(5, 12))]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(departures(1e-100 * new, old, groups), expected)
    order = random.permutation(len(new))
    mixed = Groups.from_qid(groups.codes[order])
    np.testing.assert_allclose(np.sort(departures(new[order], old[order], mixed)), sorted(expected))


def test_what_changes_little_of_the_order_does_little_harm():
    random = np.random.default_rng(0)
    training, other = batch(200, random), batch(200, random, shift=-3.0)
    little, much = np.full(200, 0.02), random.uniform(0.3, 0.7, size=200)
    ranges = Ranges.fit(*training, NAMES, departures=little)
    drift = ranges.compare(*other, little)
    assert not drift.warns
    assert str(drift).startswith(
        "harmless: features differ, but the order rests little on that; length is lower"
    )
    assert Ranges.fit(*training, NAMES, departures=much).compare(*other, much).warns
    # What is changed beyond training is untried, whatever features are like.
    like = ranges.compare(*training, little + 0.2)
    assert like.distance == 0
    assert like.untried == pytest.approx(0.2)
    assert like.verdict.startswith("differs: it changes 20% more of the order than in training")


def test_more_changes_by_chance_are_none():
    random = np.random.default_rng(0)
    training = batch(200, random)
    ranges = Ranges.fit(*training, NAMES, departures=random.uniform(0.3, 0.7, size=200))
    few = batch(5, random)
    excesses = [
        ranges.compare(*few, random.uniform(0.3, 0.7, size=5)).excess > 0 for _ in range(200)
    ]
    assert np.mean(excesses) < 0.04
    assert ranges.compare(*few, np.full(5, 1.0)).excess == pytest.approx(0.5, abs=0.05)


def test_probabilities_rest_on_features_of_their_own():
    """The order rests on the first feature, probabilities on the last, which is shifted."""
    random = np.random.default_rng(0)
    first, last = np.eye(4)[[0, 3]]
    ranges = Ranges.fit(*batch(200, random), NAMES, first, inputs=last)
    like, shifted = (ranges.compare(*batch(100, random, shift=shift)) for shift in (0.0, -3.0))
    assert (like.level, like.warns, like.inputs_distance) == ("like training", False, 0.0)
    assert (shifted.level, shifted.warns) == ("uncalibrated", True)
    assert [one.name for one in shifted.inputs] == ["length"]
    assert shifted.verdict.startswith(
        "uncalibrated: the order rests little on what differs, but probabilities do; length is"
    )
    assert shifted.to_dict()["inputs_distance"] == pytest.approx(shifted.inputs[0].distance)
    both = Ranges.fit(*batch(200, random), NAMES, last, inputs=last)
    assert "order and probabilities" in both.compare(*batch(100, random, shift=-3.0)).verdict
    restored = Ranges.from_state(*ranges.state())
    assert restored.compare(*batch(100, random, shift=-3.0)).level == "uncalibrated"
    known = Ranges.fit(*batch(200, random), NAMES, first)  # as of before 0.3
    assert known.compare(*batch(100, random, shift=-3.0)).level == "like training"
    assert "inputs" not in known.state()[1]


def science(n_queries: int, random: np.random.Generator) -> Lists:
    """Abstracts on what acts on what, and questions most of whose words the right one has."""
    agents = ("electron", "protein", "enzyme", "lattice", "neutrino", "membrane", "plasma", "gene")
    verbs = ("scattering", "binding", "folding", "transport", "decay", "oscillation", "growth")
    filler = np.array(["we", "measure", "the", "rate", "under", "temperature", "and", "compare"])
    queries, passages, labels = [], [], []
    for _ in range(n_queries):
        (a, b), verb = random.choice(agents, 2, replace=False), random.choice(verbs)
        queries.append(f"effect of {a} density on {verb} in {b} systems at low temperature")
        own = []
        for k in range(8):
            x, y = (a, b) if k == 0 else random.choice(agents, 2, replace=False)
            word = verb if k < 2 else random.choice(verbs)
            rest = " ".join(random.choice(filler, 50))
            own.append(f"The {word} of {x} in {y} systems is studied. {rest} with {x} density.")
        passages.append(own)
        labels.append([1.0] + [0.0] * 7)
    return Lists.of_texts(queries, passages, labels)


def test_flights_and_passwords_are_not_harmless_to_a_model_of_abstracts():
    random = np.random.default_rng(0)
    reranker = TextReranker(quick=True).fit(science(60, random))
    assert reranker.drift(science(40, random)).level == "like training"
    asked = [("book", "flight"), ("reset", "password"), ("cancel", "seat"), ("change", "email")]
    queries = [f"how do I {verb} my {thing}?" for verb, thing in asked * 15]
    answers = [
        [f"To {verb} it, open settings.", f"Your {thing} is shown on the first page.", "Call us."]
        for verb, thing in asked * 15
    ]
    drift = reranker.drift(Lists.of_texts(queries, answers))
    assert drift.is_uncalibrated
    assert drift.warns
    assert drift.level not in ("like training", "harmless")
    assert "probabilities" in drift.verdict


def test_sums_of_single_queries_are_compared_as_all_at_once():
    rng = np.random.default_rng(0)
    sizes = [LOOKED_AT, 1, 7, 12, 3] * 8
    X = rng.normal(size=(sum(sizes), 3)).round(1)
    X[:, 2] = 0.7  # constant
    X[rng.random(len(X)) < 0.1, 1] = np.nan
    groups, departed = Groups.from_lists(sizes), rng.random(len(sizes))
    ranges = Ranges.fit(
        rng.normal(size=(400, 3)), Groups.from_lists([10] * 40), ("a", "b", "c"), None, departed
    )
    whole = ranges.compare(X, groups, departed)
    parts = np.split(X, np.cumsum(sizes)[:-1])
    observed = [ranges.observe(part, departed[[n]]) for n, part in enumerate(parts)]
    drift = ranges.judge(reduce(lambda a, b: a + b, observed))
    assert drift.n_queries == whole.n_queries == len(sizes)
    assert [one.name for one in drift.features] == [one.name for one in whole.features]
    for own, other in zip(drift.features, whole.features):
        assert own[1:] == pytest.approx(other[1:], abs=1e-6)
    for name in ("distance", "threshold", "departure", "excess", "untried"):
        assert getattr(drift, name) == pytest.approx(getattr(whole, name))


def test_of_many_documents_some_are_looked_at():
    rng = np.random.default_rng(1)
    ranges = Ranges.fit(rng.normal(size=(400, 1)), Groups.from_lists([10] * 40), ("a",))
    X = rng.normal(size=(1000, 1))
    observed = ranges.observe(X, np.zeros(0))
    step = -(-1000 // LOOKED_AT)
    some = X[::step].astype(np.float32)
    assert observed.upto[0].tolist() == pytest.approx(
        [(some[:, 0] <= edge).mean() for edge in ranges.edges[0]]
    )
    spread = np.float32(X.std())
    assert observed.upto[1].tolist() == [float(spread <= edge) for edge in ranges.edges[1]]
    assert observed.upto[2].tolist() == [float(edge >= 1000) for edge in ranges.edges[2]]
