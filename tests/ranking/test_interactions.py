"""Interactions of columns against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from didyma.ranking.interactions import rank_pairs

RNG = np.random.default_rng(3)


def test_energy_of_pairs_against_its_definition() -> None:
    """What a table of cells explains of the squares beyond the best sum of rows and columns."""
    levels = RNG.integers(4, size=(500, 3)).astype(np.uint8)
    left = RNG.normal(size=500) + (levels[:, 0] * levels[:, 2] % 3)
    pairs, energy = rank_pairs(levels, left, np.ones(3, bool))

    def explained(*columns: NDArray[Any]) -> float:
        design = np.concatenate([np.eye(16)[column] for column in columns], axis=1)
        fitted = design @ np.linalg.lstsq(design, left, rcond=None)[0]
        return float(fitted @ fitted)

    assert pairs[0].tolist() == [0, 2]
    for (a, b), found in zip(pairs, energy):
        one, other = levels[:, a], levels[:, b]
        expected = explained(4 * one + other) - explained(one, other)
        assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("allowed", [[False, False, False], [False, True, False]])
def test_fewer_than_two_columns_have_no_pairs(allowed: list[bool]) -> None:
    levels = RNG.integers(4, size=(50, 3)).astype(np.uint8)
    pairs, energy = rank_pairs(levels, RNG.normal(size=50), np.array(allowed))
    assert (pairs.shape, energy.shape) == ((0, 2), (0,))
