"""The comparison of additive rankers with boosters, in small and without the boosters."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import synthetic
from didyma.data.lists import Lists
from reproductions import additive


def small(seed: int) -> Lists:
    return synthetic.interacting(12, 0.5, rows=10, features=4, pairs=1, seed=seed)


def test_what_validates_best_is_tested() -> None:
    split = additive.Split(small(0), small(1), small(2), "small")
    good, bad = split.test.y, -split.test.y
    found = [
        ({"C": 1}, 0.1, -split.validation.y, good),
        ({"C": 2}, 0.2, split.validation.y, bad),
    ]
    outcome = additive.chosen(split, found)
    assert outcome.setting == {"C": 2}
    assert outcome.values.max() < 1.0


def test_queries_of_one_class_are_not_counted() -> None:
    data = Lists(np.zeros((4, 1)), np.array([1.0, 0, 0, 0]), np.array(["a", "a", "b", "b"]))
    split = additive.Split(data, data, data, "small")
    assert additive.measured(split, data, np.array([1.0, 0, 0, 0])).tolist() == [1.0]


def test_tables_say_whether_targets_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    split = additive.Split(small(0), small(1), small(2), "small")
    found = additive.compare([split], None)
    table = additive.table({"small": ("AP", found)})
    assert additive.OURS in table
    assert "LightGBM" not in table
    booster = additive.Outcome(found[additive.OURS][0].values + 0.1, {}, 1.0)
    worse = additive.table({"small": ("AP", found | {"LightGBM, trees": [booster]})})
    assert "level with the best (LightGBM, trees) | missed" in " ".join(worse.split())
    assert "small" in capsys.readouterr().err


def test_the_data_has_its_signal_where_it_says() -> None:
    data = synthetic.interacting(50, 1.0, rows=20, features=6, pairs=1)
    products = np.abs(np.corrcoef(np.column_stack([data.X, data.y]).T)[-1, :-1])
    assert products.max() < 0.15
    pairs = [data.X[:, j] * data.X[:, k] for j in range(6) for k in range(j)]
    assert np.abs(np.corrcoef([*pairs, data.y])[-1, :-1]).max() > 0.3


def test_variants_are_judged_on_queries_that_they_have_not_seen() -> None:
    split = additive.Split(small(0), small(1), small(2), "small")
    assert len(additive.held_out(split, {})) == split.train.mixed.sum()
    assert additive.variants([split]).count("\n") == len(additive.VARIANTS) + 1
