"""Integer programmes: relaxations, limits, gaps, errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import didyma
from didyma import DataError
from didyma.nn import SparseMAP
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.solvers import Flow, Milp
from didyma.structures import Knapsack


def test_a_relaxation_bounds_the_best_output():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, 8)
    structure = Milp([weights], [15])
    scores = rng.random((5, 8))
    bound, parts = structure.relaxation(scores)
    best = (structure.predict(scores) * scores).sum(axis=1)
    assert (bound >= best - 1e-9).all()
    assert (bound > best + 1e-6).any()
    ratio = scores / weights  # by hand: the best ratios first, the last item in part
    for b in range(5):
        room, value = 15.0, 0.0
        for item in np.argsort(-ratio[b]):
            share = min(1.0, room / weights[item])
            room, value = room - share * weights[item], value + share * scores[b, item]
        assert bound[b] == pytest.approx(value)
    np.testing.assert_allclose((parts * scores).sum(axis=1), bound)
    flow = Flow([(0, 1), (1, 2), (0, 2)], {0: 1, 2: -1})
    assert set(flow.relaxation(rng.standard_normal((4, 3)))[1].ravel()) <= {0.0, 1.0}


def test_instances_have_their_own_constraints():
    rng = np.random.default_rng(1)
    weights, capacities = rng.integers(1, 6, (3, 1, 6)), [[4], [8], [12]]
    scores = rng.random((3, 6))
    structure = Milp(np.ones((1, 6)), [1])
    expected = [
        Knapsack(w[0].tolist(), c[0]).predict(s) for w, c, s in zip(weights, capacities, scores)
    ]
    data = {"A": list(weights), "upper": capacities}
    np.testing.assert_array_equal(structure.predict(scores, **data), expected)
    layer = SparseMAP(structure)(torch.tensor(scores), **data)
    alone = [
        didyma.sparsemap(s, Knapsack(w[0].tolist(), c[0]))
        for w, c, s in zip(weights, capacities, scores)
    ]
    np.testing.assert_allclose(layer, alone, atol=1e-6)


class Stopped(Milp):
    """A solver that ran out of time: the answer is feasible, the bound higher."""

    def _solve(self, scores, instance, whole):
        result = super()._solve(scores, instance, whole)
        result.x, result.status, result.bound = np.array([1.0, 0.0, 0.0]), 1, 9.0
        return result


def test_a_gap_is_warned_of_and_remembered():
    structure = Stopped([[3, 2, 2]], [4], time_limit=0.5)
    with pytest.warns(ToleranceWarning, match=r"stopped after 0.5 seconds .* may be 5 short"):
        assert structure.predict([4.0, 2.5, 2.0]).tolist() == [True, False, False]
    assert (structure.worst_gap, structure.n_inexact) == (5.0, 1)
    exact = Milp([[3, 2, 2]], [4], time_limit=100.0)
    exact.predict([4.0, 2.5, 2.0])
    assert (exact.worst_gap, exact.n_inexact) == (0.0, 0)


def test_a_hard_programme_stops_in_time():
    rng = np.random.default_rng(0)
    weights = rng.integers(10**6, 10**7, (20, 120))  # far from what half a second proves
    structure = Milp(weights, weights.sum(axis=1) // 2, time_limit=0.5)
    scores = weights.mean(axis=0) + rng.random(120)
    with pytest.warns(ToleranceWarning, match="short of the best"):
        output = structure.predict(scores)
    assert (weights @ output <= weights.sum(axis=1) // 2).all()
    bound, _ = structure.relaxation(scores)
    assert 0 < structure.worst_gap <= bound  # of a bound that is no worse than the relaxation's


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Milp([1, 2], [3]), "A: expected two axes"),
        (lambda: Milp([[1, 2]]), "upper: expected a bound"),
        (lambda: Milp([[1, 2]], [1], n_parts=3), "n_parts: expected 1 to 2, found 3"),
        (lambda: Milp([[1, 2]], [1], integrality=0), "integrality: .* 1 for each part"),
        (lambda: Milp([[1, 2]], [1], time_limit=0), "time_limit: expected seconds above 0"),
        (lambda: Milp([[1, 1]], [3], [3]).predict([1.0, 2.0]), "contradict each other"),
        (lambda: Milp([[1, 1]], [3]).predict([1.0]), "scores: expected 2 scores"),
        (lambda: Flow([(0, 1)], {0: 1}), "supply: expected supplies that add up to 0, found 1"),
        (lambda: Flow([(0, 1)], {2: 0}), "supply: no edge has the node 2"),
    ],
)
def test_errors_name_what_is_wrong(make, message):
    with pytest.raises(DataError, match=message):
        make()
