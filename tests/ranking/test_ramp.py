"""The ramp bound: which rankings scores predict, and its value where features are far from 0."""

from __future__ import annotations

import numpy as np
import pytest

from didyma import SVMRanker
from didyma.data.groups import Groups
from didyma.ranking.feature_maps import parse_feature_map
from didyma.ranking.losses import parse_loss
from didyma.ranking.ramp import RampProblem

Y = np.array([2.0, 1, 1, 0, 0, 0])


def predicted(scores, feature_map="pairwise", loss="ap"):
    """Ψ(ŷ) of one query, but for a constant, as coefficients of its rows."""
    parts = Groups.from_sizes([len(Y)], len(Y)), parse_loss(loss), parse_feature_map(feature_map)
    problem = RampProblem(np.asarray(scores, dtype=float)[:, None], Y, *parts)
    problem.complete(np.zeros(1))
    level = problem.gold_rows()
    problem.complete(np.ones(1))
    return problem.gold_rows() - level


MAPS = ["pairwise", "positional", "truncated", "top@2"]


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("shift", [1e6, 1e9, -1e12])
def test_what_all_scores_have_in_common_ties_none(feature_map, shift):
    scores = np.array([1.0, 3.0, 2.0, 0.0, 0.5, 0.25])
    expected = predicted(scores, feature_map)
    np.testing.assert_array_equal(predicted(shift + scores, feature_map), expected)
    assert len(np.unique(expected)) > 1


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_scores_that_rounding_tells_apart_are_tied(feature_map, loss):
    noise = np.array([0.0, 1, -1, 1, 0, -1])
    for level, step in ((0.0, 0.0), (7.0, 1e-15), (1e9, 1e-7), (-1e9, 1e-7)):
        scores = level + step * noise
        np.testing.assert_allclose(predicted(scores, feature_map, loss), np.zeros(6), atol=1e-15)
    scores = np.array([1.0, 1, 1, 0, 0, 0])  # and nearly those of a range
    expected = predicted(scores, feature_map, loss)
    np.testing.assert_array_equal(predicted(scores + 1e-12 * noise, feature_map, loss), expected)


@pytest.mark.filterwarnings("ignore:nothing was learned")  # in single precision all scores tie
def test_a_feature_far_from_zero_is_learned_from():
    """Precision at 1 of one relevant row among five, whose ramp is a maximum over places."""
    rng = np.random.default_rng(0)
    qid, y = np.repeat(np.arange(20), 5), np.tile([1.0, 0, 0, 0, 0], 20)
    x = y + 0.5 * rng.random(100)

    def objective(w):
        against = w * (x.reshape(20, 5)[:, 1:] - x.reshape(20, 5)[:, :1])
        values = np.cumsum(-np.sort(-against), axis=1) / 2.0  # of Ψ, by the negatives above
        best = np.maximum(0.0, values.max(axis=1))
        return 0.5 * w**2 + 100.0 * np.mean(np.maximum(0.0, 1.0 + values.max(axis=1)) - best)

    near, far = (
        SVMRanker("precision@1", C=100.0, bound="ramp").fit(shift + x[:, None], y, qid=qid)
        for shift in (0.0, 1e9)
    )
    assert near.result_.value == pytest.approx(objective(near.coef_[0]))
    assert far.result_.value == pytest.approx(objective(far.coef_[0]), rel=1e-6)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-4)
