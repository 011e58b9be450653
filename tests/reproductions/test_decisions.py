"""The study of decisions: its data, its regrets, its training and its tables, in small."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from reproductions.decisions_tables import PEER_SPO, SMOOTHED, SPO, Cell
from reproductions.decisions_training import (
    PROBLEMS,
    Tasks,
    jointly,
    knapsack,
    separately,
    shortest_path,
    squared_error,
    tour,
    train,
)

from didyma.nn import SPOPlusLoss
from didyma.nn import regret as measured
from reproductions import decisions, decisions_tables

SMALL = {"shortest path": {"side": 3}, "knapsack": {"items": 5}, "tour": {"nodes": 5}}


def test_data_are_those_that_pyepo_2_2_7_draws() -> None:
    path = shortest_path(2, 2, 0.5, 7, p=3, side=2)
    np.testing.assert_allclose(path.features[0], [-0.6254, -0.1715, 0.5053], atol=5e-5)
    np.testing.assert_allclose(
        path.costs, [[1.1, 0.3864, 0.7155, 1.325], [0.5472, 0.3849, 1.0488, 0.2628]], atol=5e-5
    )
    items = knapsack(2, 2, 0.5, 7, p=3, items=4)
    np.testing.assert_array_equal(-items.costs, [[3, 8, 8, 6], [4, 3, 3, 2]])
    trip = tour(1, 2, 0.5, 7, p=3, nodes=4)
    assert trip.costs.shape == (1, 6)
    trip = tour(2, 2, 0.5, 7, p=3, nodes=4)
    np.testing.assert_allclose(
        trip.costs[0], [4.8715, 4.4096, 4.8809, 3.2256, 4.7087, 1.7856], atol=5e-5
    )


def test_all_outputs_are_listed_once() -> None:
    assert len(shortest_path(1, 1, 0.0, 0).outputs) == 70  # 8 steps, 4 of them down
    tours = tour(1, 1, 0.0, 0, nodes=5).outputs
    assert len(np.unique(tours, axis=0)) == len(tours) == 12
    ends = np.array([[node in pair for pair in combinations(range(5), 2)] for node in range(5)])
    assert (tours @ ends.T == 2).all()
    sets = knapsack(1, 1, 0.0, 3, items=5, capacity=10.0).outputs
    weights = np.random.RandomState(3).choice(range(300, 800), size=(2, 5)) / 100
    subsets = np.array(list(np.ndindex(*(2,) * 5)))
    assert len(sets) == (subsets @ weights.T <= 10.0).all(axis=1).sum()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_regret_by_enumeration_is_that_of_the_library(problem: str) -> None:
    data = PROBLEMS[problem](12, 4, 0.5, 1000, **SMALL[problem])
    predicted = data.costs + np.random.default_rng(0).normal(size=data.costs.shape)
    structure = decisions.Listed(data.outputs)
    expected = measured(structure, -predicted, -data.costs.astype(float), normalized=True)
    assert data.regret(predicted, slice(None)) == pytest.approx(float(expected))
    assert data.regret(data.costs, slice(None)) == 0.0


def test_the_listed_outputs_and_the_grid_have_the_same_best_path() -> None:
    data = shortest_path(20, 4, 0.5, 1000)
    for structure in (
        decisions.structure_of("shortest path", data),
        decisions.Listed(data.outputs),
        decisions.Counted(data.outputs),
    ):
        found = structure.predict(-data.costs.astype(float))
        np.testing.assert_array_equal(found, data.outputs[data.decide(data.costs)] == 1)


def tasks() -> Tasks:
    data = [shortest_path(40, 4, 0.5, seed, side=3) for seed in (1000, 1001)]
    return Tasks.of(data, 40, (1000, 1001))


def test_runs_side_by_side_are_those_by_themselves() -> None:
    both = tasks()
    structure = decisions.Listed(shortest_path(1, 1, 0.0, 0, side=3).outputs)
    loss = SPOPlusLoss(structure)

    def spo(predicted: torch.Tensor, costs: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
        return loss(-predicted, -costs, decision=gold)

    weights = train(both, jointly(spo), (0.01, 0.1), 8)
    assert weights.shape == (4, 2, 2, 6, 12)
    np.testing.assert_allclose(weights, train(both, separately(lambda run: spo), (0.01, 0.1), 8))
    second = Tasks(both.features[1:], both.costs[1:], both.decisions[1:], (1001,))
    np.testing.assert_allclose(weights[:, 1:, 1:], train(second, jointly(spo), (0.1,), 8))


def test_squared_error_comes_down_to_least_squares() -> None:
    data = shortest_path(200, 1, 0.0, 1000, side=3)
    one = Tasks.of([data], 200, (1000,))
    weights = train(one, squared_error(), (0.1,), 400)[-1, 0, 0]
    predicted = data.features @ weights[:-1] + weights[-1]
    np.testing.assert_allclose(predicted, data.costs, atol=1e-2)


def test_what_validates_best_is_tested_once() -> None:
    data = shortest_path(40 + 10 + 30, 1, 0.0, 1000, side=3)
    columns = np.column_stack([data.features, np.ones(80)])
    good = np.linalg.lstsq(columns, data.costs.astype(float), rcond=None)[0]
    weights = np.array([[-good, -good, -good], [-good, -good, good]])
    found = decisions.chosen(data, 40, weights)
    assert found["rate"] == decisions.RATES[2]
    assert found["regret"] == pytest.approx(0.0, abs=1e-6)


def test_tables_mark_the_lowest_and_test_over_seeds() -> None:
    cells = [Cell("shortest path", degree, 0.5, 100) for degree in (1, 2)]
    seeds = np.arange(10) / 1000
    results = {
        cell: {
            SPO: list(0.10 + seeds),
            SMOOTHED[0]: list(0.09 + 1.1 * seeds),
            PEER_SPO: list(0.10 + seeds),
            "PyEPO DBB": list(0.2 + seeds),
        }
        for cell in cells
    }
    assert decisions_tables.best_peer(results) == PEER_SPO
    (section,) = decisions_tables.sections_of(results).values()
    assert "same test regret in 20 of 20 runs" in section
    lines = [line for line in section.splitlines() if line.startswith(f"| {SMOOTHED[0]}")]
    assert lines[0].count("9.49*") == 2
    assert "2 of 2" in lines[1]
    assert "-0.955" in lines[1]


def test_a_study_keeps_what_it_has(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(decisions, "environment", lambda package: None)
    monkeypatch.setattr(decisions, "CORE", {SPO: decisions.CORE[SPO]})
    monkeypatch.setattr(decisions, "STEPS", 8)
    options = ["--quick", "--part", "grid", "--problems", "shortest path", "--losses", "core"]
    assert decisions.main(options) == 0
    printed = capsys.readouterr()
    assert "| SPO+ |" in printed.out
    assert "shortest path 4 0.5 100 SPO+" in printed.err
    assert decisions.main([*options, "--kept", "--cache", str(tmp_path)]) == 0
    assert "SPO+" not in capsys.readouterr().out
