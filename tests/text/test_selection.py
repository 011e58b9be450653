"""The search: what is tried, that held-out scores are held out, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

from didyma.data.lists import Lists
from didyma.learning.scoring import linear_scores
from didyma.model import Model
from didyma.ranking.svm import SVMRanker
from didyma.text.baselines import Opponent
from didyma.text.candidates import (
    DEVIATIONS,
    LINEAR,
    ORDER,
    SINGLE,
    Aim,
    Candidate,
    candidates,
    clipping,
)
from didyma.text.features import SmallFeatures, TextFeatures
from didyma.text.selection import CrossValidation, JudgedFeatures, decide
from didyma.text.training_data import Target
from tests.text.texts import made

COLUMNS = ("bm25", "stem_bm25", "length")
ORDERS = [Opponent.single("stem_bm25"), Opponent.single("bm25")]


@pytest.fixture(scope="module")
def search():
    lists = made(20)
    features = TextFeatures([SmallFeatures()]).fit(lists)
    target = Target.of(lists.y, lists.groups)
    featured = JudgedFeatures.of(lists, features.windowed(lists), features.names, target, by="bm25")
    found = CrossValidation(featured, target, ORDERS)
    found.run(
        [
            Candidate("few", COLUMNS, (0.1, 1.0)),
            Candidate("few", COLUMNS, (0.1, 1.0), additive=True),
        ]
    )
    return found


def trial_with(search, *, additive=False, blend=SINGLE):
    found = (
        t for t in search.trials if (t.candidate.additive, t.C, t.blend) == (additive, 1, blend)
    )
    return next(found)


def test_held_out_scores_are_of_models_that_did_not_see_the_query(search):
    rows, _ = search.judged.columns(COLUMNS)
    codes, lists = search.judged.lists.groups.codes, search.judged.lists
    trial = trial_with(search)
    for fold in range(search.n_folds):
        train = search.fold[codes] != fold
        mean, deviation = rows[train].mean(axis=0), rows[train].std(axis=0)
        scaled = np.clip((rows - mean) / deviation, -DEVIATIONS, DEVIATIONS)
        *_, svm = SVMRanker("ap").path(lists.with_items(scaled).select(train), None, [0.1, 1.0])
        expected = linear_scores(scaled, svm.coef_)
        assert trial.scores[~train] == pytest.approx(expected[~train], abs=1e-4)


def test_folds_have_as_many_queries(search):
    counts = np.bincount(search.fold[search.usable])
    assert counts.max() - counts.min() <= 1


def test_a_mix_is_half_of_each(search):
    whole, half = trial_with(search), trial_with(search, blend=ORDER)
    model = search.final(half)
    assert set(model.weights) == set(COLUMNS)
    learned = search.final(whole).weights
    place = COLUMNS.index(search.baseline.name)
    mixed, alone = (np.array([w[name] for name in COLUMNS]) for w in (model.weights, learned))
    others = np.arange(3) != place
    ratio = mixed[others] / alone[others]
    assert ratio[0] == pytest.approx(ratio[1])  # of all but the baseline's column
    assert mixed[place] > ratio[0] * alone[place]


def test_the_model_is_that_of_scikit_learn(search):
    rows, _ = search.judged.columns(COLUMNS)
    model = search.final(trial_with(search))
    lists = Lists(rows, feature_names=COLUMNS)
    again = Model.of(model.estimator)
    assert again.predict(lists).tobytes() == model.predict(lists).tobytes()
    assert isinstance(model.estimator.steps[0][1], MinMaxScaler)


@pytest.mark.parametrize("blend", [SINGLE, ORDER, LINEAR])
def test_additive_rankers_are_scored_as_their_models_score(search, blend):
    rows, _ = search.judged.columns(COLUMNS)
    codes, lists = search.judged.lists.groups.codes, search.judged.lists
    trial = trial_with(search, additive=True, blend=blend)
    for fold in range(search.n_folds):
        train = search.fold[codes] != fold
        given = lists.with_items(rows, COLUMNS).select(train)
        fits = trial.candidate.fits(given, Aim("ap", search.baseline))
        model = fits[trial.candidate.settings.index((1.0, blend))].model
        assert model.name == "AdditiveSVMRanker"
        held_out = Lists(rows[~train], feature_names=COLUMNS)
        assert model.predict(held_out) == pytest.approx(trial.scores[~train])


def test_an_order_becomes_steps_of_its_means(search):
    rows, _ = search.judged.columns(COLUMNS)
    lists = search.judged.lists.with_items(rows, COLUMNS)
    candidate = Candidate("few", COLUMNS, (0.1,), additive=True)
    own, mixed, _ = candidate.fits(lists, Aim("ap", Opponent.single("bm25")))
    bins = own.lists.X.bins[:, 0]
    means = np.array([rows[bins == b, 0].mean() for b in bins])
    added = own.lists.X @ (mixed.coef - own.coef / own._deviation(own.coef) / 2)
    assert np.corrcoef(added, means)[0, 1] == pytest.approx(1)


def test_far_values_count_as_four_deviations():
    X = np.random.default_rng(0).normal(3, 2, size=(100, 2))
    X[:, 1] = 7.0
    learned = clipping(X)
    assert learned["scale_"][1] == 1
    scaler = MinMaxScaler(feature_range=learned["feature_range"], clip=True)
    for name in ("scale_", "min_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"):
        setattr(scaler, name, learned[name])
    far = scaler.transform(np.array([[1e6, 7.0], [-1e6, 7.0], [X[:, 0].mean(), 7.0]]))
    assert far == pytest.approx(np.array([[4, 0], [-4, 0], [0, 0]]), abs=1e-9)


def test_candidates_begin_with_what_is_cheap():
    names = [*SmallFeatures().names, "concepts", "person:length", "vector_cosine"]
    names += ["bm25 in list", "vector_cosine in list"]
    tried = candidates(names, 1000)
    sizes = [len(candidate.columns) for candidate in tried if not candidate.additive]
    assert sizes == [16, 17, 17, 18, 19, 19, 20, 21]
    sizes = [len(candidate.columns) for candidate in tried if candidate.additive]
    assert sizes == [17, 19, 20, 21]
    places = {str(candidate): place for place, candidate in enumerate(tried)}
    assert places["small set"] == 0
    assert places["small set in lists"] < places["small set in lists, additive"]
    assert max(tried[0].Cs) == 100
    assert max(candidates(names, 20)[0].Cs) == 10
    quick = candidates(names, 20, quick=True)
    assert [candidate.name for candidate in quick] == ["small set", "small set and vectors"]
    german = candidates([*SmallFeatures().names, "concepts"], 20)
    assert [candidate.name for candidate in german] == ["small set", "plain set"]


def test_time_ends_the_search(search):
    short = CrossValidation(search.judged, search.target, ORDERS[1:])
    short.run([Candidate(name, COLUMNS, (0.1,)) for name in "abc"], budget=0.0)
    assert {trial.candidate.name for trial in short.trials} == {"a"}
    assert [candidate.name for candidate in short.untried] == ["b", "c"]
    given = short.trials[0], "bm25", short.baseline_values, "AP"
    assert str(decide(*given, short.untried)).endswith(" Not tried, as the time was up: b, c.")
    assert "time was up" not in str(decide(*given))


def test_a_callback_follows_and_ends_the_search(search):
    steps = []
    watched = CrossValidation(search.judged, search.target, ORDERS[1:])

    def follow(step):
        steps.append(step)
        return step.number == 2

    watched.run([Candidate(name, COLUMNS, (0.1,)) for name in "abc"], callback=follow)
    assert [(step.number, step.of, step.candidate) for step in steps] == [(1, 3, "a"), (2, 3, "b")]
    assert steps[-1].best == max(trial.mean for trial in watched.trials)
