"""The search: what is tried, that held-out scores are held out, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

from didyma import TextReranker
from didyma.data.lists import Lists
from didyma.learning.scoring import linear_scores
from didyma.metrics.significance import wilcoxon
from didyma.model import Model
from didyma.ranking.svm import SVMRanker
from didyma.text.baselines import Opponent
from didyma.text.candidates import DEVIATIONS, LINEAR, ORDER, SINGLE, Aim, Candidate
from didyma.text.features import SmallFeatures, TextFeatures
from didyma.text.selection import CrossValidation, JudgedFeatures, Progress, Trial, decide, select
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


def trial(values: np.ndarray) -> Trial:
    return Trial(Candidate("few", ("bm25",), (1.0,)), 1.0, SINGLE, np.zeros(0), values)


def test_the_surest_gain_is_kept() -> None:
    base = np.full(20, 0.5)
    sure, wild = np.full(20, 0.55), np.where(np.arange(20) < 11, 1.0, 0.1)
    assert wild.mean() > sure.mean()
    trials = [trial(values) for values in (base, sure, wild)]
    best = select(trials, base)
    assert best is trials[1]  # what could be chance makes room for what is sure
    bold = trial(np.where(np.arange(20) < 12, 0.7, 0.5))  # a gain of .12, of standard error .02
    assert select([*trials[:2], bold], base) is bold
    assert select([], base) is None
    passed = decide(best, "bm25", base, "AP")
    assert passed.passed
    assert passed.gain == pytest.approx(0.05)
    assert passed.p_value == wilcoxon(sure, base)  # the test that reports use
    assert passed.verdict.startswith("What was learned ranks")
    failed = decide(select(trials, base + 0.2), "bm25", base + 0.2, "AP")
    assert not failed.passed
    assert "so the order is that of bm25" in failed.verdict


@pytest.mark.parametrize("after", [1, 2])
def test_ctrl_c_keeps_the_best_so_far(after: int) -> None:
    tried: list[Progress] = []

    def interrupt(step: Progress) -> None:
        tried.append(step)
        if len(tried) == after:
            raise KeyboardInterrupt

    lists = made(12)
    reranker = TextReranker(callback=interrupt).fit(lists)
    assert reranker.interrupted_
    assert len({trial["rung"] for trial in reranker.trials_}) == after
    assert np.isfinite(reranker.predict(lists)).all()


def test_ctrl_c_before_there_is_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("didyma.text.candidates.SVMRanker.path", stop)
    with pytest.raises(KeyboardInterrupt):
        TextReranker(quick=True).fit(made(8))


def test_ctrl_c_within_a_fit_is_not_taken_for_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that was interrupted returns what it has: the search must not go on with that."""
    whole = SVMRanker.path

    def interrupted(self: SVMRanker, *arguments: Any) -> list[SVMRanker]:
        found = whole(self, *arguments)
        found[-1].result_ = replace(found[-1].result_, status="interrupted")
        return found

    monkeypatch.setattr(SVMRanker, "path", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TextReranker(quick=True).fit(made(8))
