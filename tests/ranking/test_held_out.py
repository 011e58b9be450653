"""Choices by held-out queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from didyma.data.lists import Lists
from didyma.ranking.held_out import cross_validate, first_near_best, held_out_values

VALUES = hnp.arrays(np.float64, (3, 8), elements=st.floats(0, 1, width=16))


@given(VALUES)
def test_without_weights_errors_are_those_of_means(values: np.ndarray) -> None:
    behind = values[values.mean(axis=1).argmax()] - values
    error = behind.std(axis=1, ddof=1) / np.sqrt(8)
    clear = behind.mean(axis=1) > 2.0 * error + 1e-12
    assert not clear[first_near_best(values, np.full(8, 3.0), 2.0)]


def test_weights_say_how_much_a_query_counts() -> None:
    values = np.array([[1.0, 0.0, 0.0], [0.0, 0.9, 0.9]])
    assert first_near_best(values, np.array([1.0, 1e-9, 1e-9]), 0.0) == 0
    assert first_near_best(values, np.ones(3), 0.0) == 1


def test_settings_are_compared_by_weighted_means() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(24, 1)), np.tile([1.0, 0.0], 12)
    qid, weights = np.repeat(np.arange(12), 2), np.r_[np.full(6, 1.0), np.full(6, 3.0)]
    lists = Lists(rows, labels, qid, weights=weights)

    def fit(train: Lists, test: Lists) -> list[np.ndarray]:
        heavy = np.repeat(test.weights > 2.0, 2) == (test.y > 0)  # right for heavy queries alone
        return [heavy.astype(float), -heavy.astype(float)]

    found = cross_validate(lists, np.ones(12, bool), "RR", fit)
    assert found == pytest.approx([(18 + 6 * 0.5) / 24, (18 * 0.5 + 6) / 24])
    assert not list(held_out_values(lists, np.arange(12) < 5, "RR", fit))
