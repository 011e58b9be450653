"""`TextReranker`: from texts and judgements to a model in one file."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import didyma
from didyma.data.lists import Lists
from didyma.errors import DataError, ModelFileError
from didyma.ranking import Joined
from didyma.ranking.svm import SVMRanker
from didyma.text import FirstStage, SmallFeatures, TextFeatures
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made

QUERY = "when does the ship of the storm sail?"
TEXTS = ["A ship ship ship.", "The ship of the storm sails in 1902.", "It is late."]
DOCUMENTS = [
    {"text": TEXTS[0], "id": "a", "year": 1815},
    {"text": TEXTS[1], "id": "b", "metadata": {"page": 3}},
    TEXTS[2],
]


@pytest.fixture(scope="module")
def lists():
    return made()


@pytest.fixture(scope="module")
def reranker(lists):
    return TextReranker().fit(lists)


def test_it_learns_and_says_so(reranker):
    assert reranker.gate_.passed
    assert reranker.gate_.value > reranker.gate_.baseline_value
    assert "What was learned" in str(reranker.gate_)
    other = made(seed=1)
    order = TextReranker(quick=True).fit(made(3)).featuriser  # any reader will do
    bm25 = order.transform(other)[:, order.names.index("bm25")]
    baseline = didyma.evaluate(bm25, other.y, qid=other.qid).mean("AP")
    assert reranker.evaluate(other).mean("AP") > baseline


def test_documents_come_back_as_they_were(reranker):
    best, *rest = reranker.rank(QUERY, DOCUMENTS)
    assert (best.index, best.id, best.text) == (1, "b", TEXTS[1])
    assert best.metadata == {"page": 3}
    assert {found.index: found.metadata for found in rest} == {0: {"year": 1815}, 2: {}}
    assert 0 < rest[-1].score < rest[0].score < best.score < 1
    raw = reranker.predict(Lists.of_texts([QUERY], [TEXTS]))
    assert [found.raw for found in [best, *rest]] == sorted(raw, reverse=True)
    assert reranker.rank(QUERY, DOCUMENTS, top_k=1) == [best]
    assert reranker.rank(QUERY, []) == []


def test_the_forms_of_input_are_one(lists):
    own = [lists.select_lists([n]) for n in range(len(lists.groups))]
    nested = [list(part.items) for part in own], [part.y.tolist() for part in own]
    flat = [lists.queries[code] for code in lists.groups.codes], lists.items, lists.y
    found = [
        TextReranker(quick=True).fit(lists),
        TextReranker(quick=True).fit(lists.queries, *nested),
        TextReranker(quick=True).fit(*flat),
    ]
    scores = [[r.raw for r in reranker.rank(QUERY, DOCUMENTS)] for reranker in found]
    assert scores[0] == scores[1] == scores[2]


def test_round_trip_to_the_bit(reranker, tmp_path):
    path = tmp_path / "model"
    reranker.save(path)
    again = didyma.load(path)
    assert isinstance(again, TextReranker)
    other = made(seed=2)
    assert again.predict(other).tobytes() == reranker.predict(other).tobytes()
    assert again.rank(QUERY, DOCUMENTS) == reranker.rank(QUERY, DOCUMENTS)
    assert again.rank(QUERY, TEXTS).notes == ()
    assert again.gate_ == reranker.gate_
    assert again.trials_ == reranker.trials_
    assert again.drift(other) == reranker.drift(other)
    assert again.explain(QUERY, DOCUMENTS) == reranker.explain(QUERY, DOCUMENTS)
    assert again.calibration_.threshold(0.5) == reranker.calibration_.threshold(0.5)
    assert again.calibration_report() == reranker.calibration_report()
    again.save(tmp_path / "again")
    assert (tmp_path / "again").stat().st_size == path.stat().st_size
    with pytest.raises(ModelFileError, match="holds a TextReranker, not a SVMRanker"):
        didyma.SVMRanker.load(path)


@pytest.mark.parametrize("kind", ["reranker", "additive"])
def test_a_loaded_model_needs_neither_scikit_learn_nor_scipy(kind, request, tmp_path):
    request.getfixturevalue(kind).save(tmp_path / "model")
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('sklearn', 'scipy', 'ir_measures', 'pandas'))\n"
        "import didyma\n"
        f"loaded = didyma.load({str(tmp_path / 'model')!r})\n"
        f"loaded.rank({QUERY!r}, {DOCUMENTS!r}, explain=True)\n"
        f"loaded.drift(didyma.Lists.of_texts([{QUERY!r}], [{TEXTS!r}]))\n"
        "loaded.calibration_.threshold(0.5)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_give_the_bits_of_one(reranker, tmp_path):
    reranker.save(tmp_path / "model")
    queries = made(30, seed=3)
    asked = [
        (query, list(queries.select_lists([n]).items)) for n, query in enumerate(queries.queries)
    ]
    expected = [reranker.rank(*question) for question in asked]
    fresh = didyma.load(tmp_path / "model")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda question: fresh.rank(*question), asked * 2))
    assert found == expected * 2


def test_the_first_stage_is_used_where_it_is_given():
    lists = made(scores=True)
    reranker = TextReranker(quick=True).fit(lists)
    assert {order.name for order in reranker.gate_.opponents} == {
        *("first_score", "stem_bm25", "bm25", "z-sum", "RRF")
    }
    assert reranker.uses_scores
    given = [0.0, 3.0, 1.0]
    assert len(reranker.rank(QUERY, DOCUMENTS, scores=given)) == 3
    with pytest.raises(DataError, match="scores: expected the first stage's scores, found none"):
        reranker.rank(QUERY, DOCUMENTS)


@pytest.mark.parametrize("kind", ["TextReranker", "Reranker"])
def test_scores_that_it_was_trained_without_are_refused_where_they_are_given(kind, reranker):
    if kind == "Reranker":
        reranker = didyma.Reranker(TextFeatures([SmallFeatures()]), SVMRanker(C=1.0)).fit(made())
    assert not reranker.uses_scores
    for ask in (reranker.rank, reranker.explain):
        with pytest.raises(DataError, match=r"scores: .* trained without .*: leave them out, or"):
            ask(QUERY, DOCUMENTS, scores=[0.0, 3.0, 1.0])
    lists = made(10, scores=True)
    without = replace(lists, scores=None)
    assert np.array_equal(reranker.predict(lists), reranker.predict(without))


@pytest.mark.parametrize("place", ["alone", "joined"])
def test_scores_that_it_was_trained_with_are_asked_for(place):
    features = TextFeatures([SmallFeatures(), FirstStage()])
    featuriser = features if place == "alone" else Joined([features])
    reranker = didyma.Reranker(featuriser, SVMRanker(C=1.0)).fit(made(scores=True))
    assert reranker.uses_scores
    assert len(reranker.rank(QUERY, DOCUMENTS, scores=[0.0, 3.0, 1.0])) == 3
    for ask in (reranker.rank, reranker.explain):
        with pytest.raises(DataError, match="scores: expected the first stage's scores, found no"):
            ask(QUERY, DOCUMENTS)
    with pytest.raises(DataError, match="scores: expected the first stage's scores, found none"):
        reranker.predict(made(10))


def test_where_nothing_is_to_be_learned_the_order_stays():
    rng = np.random.default_rng(0)
    lists = made(30, scores=True)
    lists = Lists.of_texts(
        lists.queries,
        [[f"{w} {n}" for n in rng.permutation(6)] for w in rng.choice(["x", "y"], 30)],
        [rng.permutation([1, 0, 0, 0, 0, 0]) for _ in range(30)],
    )
    reranker = TextReranker().fit(lists)
    assert not reranker.gate_.passed
    assert "so the order is that of" in reranker.gate_.verdict
    assert reranker.model_.weights == {reranker.gate_.baseline: 1.0}


@pytest.mark.parametrize(
    ("queries", "passages", "labels", "message"),
    [
        ([3], [["b", "c"]], [[1, 0]], "query 0: expected a text, found int 3"),
        (["a"], [["b", "c"]], [[1]], "labels: expected 2 values in list 0, found 1"),
        (["a"], None, [[1, 0]], "expected queries, passages and labels"),
        (["a"], ["b", "c"], [1, 0], "passages: 2 passages for 1 queries: expected a list of pass"),
        (["a", "a"], ["b", "c"], [1], "labels: expected 2 numbers, found shape"),
        ("a", [["b"]], [[1]], "queries: expected a list, found str 'a'"),
        (
            ["a"],
            [["b"], "c"],
            [[1], [1]],
            "passages of query 1: expected a list of texts, found st",
        ),
        ([], [], [], "labels: expected judged passages, found none"),
    ],
)
def test_what_cannot_be_learned_from(queries, passages, labels, message):
    with pytest.raises(DataError, match=message):
        TextReranker(quick=True).fit(queries, passages, labels)


def test_a_title_is_read_as_in_files(reranker):
    (one,) = reranker.rank(QUERY, [{"title": "The ship", "text": "sails.", "_id": 7}])
    (other,) = reranker.rank(QUERY, ["The ship sails."])
    assert (one.text, one.id, one.raw) == ("The ship sails.", 7, other.raw)


def test_long_documents_are_as_good_as_their_best_window(lists):
    reranker = TextReranker(quick=True, window=20).fit(lists)
    answer = "The ship of the storm sails in 1902."
    long = "nothing here " * 50 + answer + " nothing there" * 50
    best, other = reranker.rank(QUERY, ["It is late.", long])
    assert best.index == 1
    assert "ship of the storm" in long[slice(*best.window)]
    assert other.window is None
    (explanation,) = reranker.explain(QUERY, [long])
    assert explanation.raw == pytest.approx(best.raw, abs=1e-9)
    assert {long[span.start : span.stop] for span in explanation.spans} == {
        "ship",
        "storm",
        "sails",
    }


def test_vectors_of_words_are_no_part_of_a_file(tmp_path):
    """Words that are written otherwise: only vectors can tell, and a loaded model asks for them."""
    table = {"auto": [1.0, 0.0], "car": [1.0, 0.1], "fruit": [0.0, 1.0], "apple": [0.1, 1.0]}
    pairs = {"auto": "car", "fruit": "apple"}
    lists = Lists.of_texts(
        [f"{asked} {n}" for n in range(10) for asked in pairs],
        [["the car", "the apple"]] * 20,
        [[float(pairs[asked] == word) for word in ("car", "apple")] for asked in pairs] * 10,
    )
    reranker = TextReranker(vectors=table).fit(lists)
    assert "vectors" in reranker.gate_.kept
    assert reranker.rank("auto", ["an apple", "a car"])[0].index == 1
    reranker.save(tmp_path / "model")
    again = didyma.load(tmp_path / "model")
    with pytest.raises(DataError, match="vectors: expected the table the model was trained with"):
        again.rank("auto", ["a car"])
    with pytest.raises(DataError, match="other vectors than the model was trained with"):
        again.attach({word: [0.5, 0.5] for word in table})
    assert again.attach(table).predict(lists).tobytes() == reranker.predict(lists).tobytes()


@pytest.fixture(scope="module")
def additive():
    """A reranker whose search had additive rankers only."""
    from didyma.text import candidates as choice

    whole = choice.candidates

    def additive(*given, **options):
        return [own for own in whole(*given, **options) if own.additive][:1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "candidates", additive)
        return TextReranker().fit(made(60, seed=4))


def test_an_additive_reranker_is_one_as_any_other(additive, tmp_path):
    assert additive.model_.name == "AdditiveSVMRanker"
    assert "additive" in additive.gate_.verdict
    additive.save(tmp_path / "model")
    again = didyma.load(tmp_path / "model")
    other = made(seed=5)
    assert again.predict(other).tobytes() == additive.predict(other).tobytes()
    estimator = additive.model_.estimator
    rows = other.with_items(additive.featuriser.transform(other), additive.featuriser.names)
    assert estimator.predict(rows).tobytes() == again.predict(other).tobytes()
    (first, *_), ranked = again.explain(QUERY, DOCUMENTS), again.rank(QUERY, DOCUMENTS)
    (same,) = (found for found in ranked if found.index == 0)
    assert (first.raw, first.score) == (same.raw, same.score)
    amounts = sum(part.amount for part in first.contributions)
    assert first.intercept + amounts == pytest.approx(first.raw)
    assert again.ranges_.importance.sum() == pytest.approx(1)
    assert again.drift(other).level == "like training"
    assert 0 < first.score < 1


@pytest.fixture(scope="module")
def in_query():
    """One whose features are scaled within queries, so that its rows need each other."""
    ranker = make_pipeline(didyma.QueryMinMaxScaler(), SVMRanker(C=1.0))
    return didyma.Reranker(TextFeatures([SmallFeatures()], window=6), ranker).fit(made())


@pytest.mark.parametrize("which", ["reranker", "in_query"])
def test_explanations_add_up_to_the_scores_of_the_ranking(which, request):
    asked = request.getfixturevalue(which)
    documents = [*TEXTS, "It rains. " * 300 + TEXTS[1] + " It rains." * 300]
    found = asked.explain(QUERY, documents)
    assert [own.text for own in found] == documents
    for ranked in asked.rank(QUERY, documents):
        own = found[ranked.index]
        assert (own.raw, own.score) == (ranked.raw, ranked.score)
        total = own.intercept + sum(part.amount for part in own.contributions)
        assert total == pytest.approx(own.raw, abs=1e-9)
        for span in own.spans:
            words = own.text[span.start : span.stop].lower()
            assert any(words[:4] == word.lower()[:4] for word in span.matched)
            if ranked.window is not None:
                assert ranked.window[0] <= span.start
                assert span.stop <= ranked.window[1]
    assert [TEXTS[1][s.start : s.stop] for s in found[1].spans] == ["ship", "storm", "sails"]
    assert found[3].spans
    assert found[2].spans == ()


def test_a_relative_explanation(reranker):
    first, second, _ = reranker.explain(QUERY, TEXTS)
    relative = second.above(first)
    assert relative.distance == pytest.approx(second.raw - first.raw)
    assert str(relative).startswith("above by")


def test_scores_keep_the_order_and_have_a_threshold(reranker):
    other = made(seed=1)
    raw = reranker.predict(other)
    order = np.argsort(-raw, kind="stable")
    assert np.all(np.diff(reranker.order_calibration_(raw)[order]) <= 0)
    threshold = reranker.calibration_.threshold(0.9)
    chances = np.zeros(len(other))
    for n, query in enumerate(other.queries):
        rows = other.groups.rows_of(n)
        for one in reranker.rank(query, [other.items[row] for row in rows]):
            chances[rows[one.index]] = one.probability
    above = chances >= threshold.score
    assert other.y[above].mean() > 0.7


def test_drift(reranker):
    like = reranker.drift(made(seed=1))
    assert like.level == "like training"
    abroad = Lists.of_texts(
        ["Wo liegt Bonn?"] * 30, [["Bonn liegt am Rhein und hat eine Universität. " * 5] * 3] * 30
    )
    assert reranker.drift(abroad).level == "uncalibrated"  # there is nothing to order
    assert set(reranker.ranges_.names) >= set(reranker.model_.features.names)
    json.dumps(reranker.drift(abroad).to_dict())


@pytest.mark.parametrize(
    "ask",
    [
        lambda own: own.rank("a", ["b"]),
        lambda own: own.explain("a", ["b"]),
        lambda own: own.drift(Lists.of_texts(["a"], [["b"]])),
        lambda own: own.baseline(Lists.of_texts(["a"], [["b"]])),
        lambda own: own.save("nowhere"),
    ],
)
def test_a_reranker_that_is_not_fitted(ask):
    with pytest.raises(DataError, match="call fit first"):
        ask(TextReranker())


def test_sets_of_features(tmp_path):
    lists = made(12)
    for features, wanted in (("small", "small set"), ("extended", "extended set")):
        reranker = TextReranker(features=features).fit(lists)
        assert all(trial["rung"].startswith(wanted) for trial in reranker.trials_)
        reranker.save(tmp_path / "model")
        assert didyma.load(tmp_path / "model").features == features
    assert {trial["rung"].split()[0] for trial in TextReranker().fit(lists).trials_} > {"small"}
    with pytest.raises(DataError, match="features: expected one of 'auto', 'small', 'extended'"):
        TextReranker(features="large").fit(lists)
