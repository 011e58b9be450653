"""The power of a paired test against draws."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.metrics import power_of, queries_needed, t_test


def test_power_is_the_share_of_draws_that_show_the_gain() -> None:
    random = np.random.default_rng(0)
    n, deviation, gain = 30, 0.1, 0.04
    draws = random.normal(gain, deviation, (2000, n))
    shown = np.mean([t_test(own, np.zeros(n)) < 0.05 and own.mean() > 0 for own in draws])
    assert power_of(n, deviation, gain) == pytest.approx(shown, abs=4 * np.sqrt(0.25 / 2000))


def test_what_is_needed_is_the_least_that_is_enough() -> None:
    differences = np.random.default_rng(1).normal(0, 0.1, 50)
    found = queries_needed(differences, 0.02)
    assert found.needed is not None
    assert power_of(found.needed, found.deviation, 0.02) >= 0.8
    assert power_of(found.needed - 1, found.deviation, 0.02) < 0.8
    assert found.more == found.needed - 50
    assert str(found).startswith(f"{found.more} more queries would show a gain of .02 with 80 %")
    assert "at hand show a gain of .5" in str(queries_needed(differences, 0.5))


def test_nonsense_is_refused() -> None:
    with pytest.raises(DataError, match="two queries or more"):
        queries_needed([0.1], 0.02)
    with pytest.raises(DataError, match="gain"):
        queries_needed([0.1, 0.2], 0.0)
