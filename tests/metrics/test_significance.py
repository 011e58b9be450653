from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from didyma.errors import DataError
from didyma.metrics.significance import (
    TESTS,
    PairedTest,
    compare,
    holm,
    power_of,
    queries_needed,
    randomisation,
    t_test,
    wilcoxon,
    wins_losses,
)

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)
every_test = pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)


def sign_flips(differences: np.ndarray) -> np.ndarray:
    return np.array(list(itertools.product([1, -1], repeat=len(differences)))) * differences


@pytest.mark.parametrize(
    "differences",
    [
        [0.31, -0.12, 0.05, 0.44, 0.27, -0.02, 0.18, 0.09],
        [0.2, 0.2, 0.2, -0.2, 0.4, 0.4, -0.4, 0.6, 0.6, 0.6],  # as precision at 5 gives
        [0.2, -0.2, 0.2],
        [0.3],
    ],
)
def test_wilcoxon_equals_the_enumeration_of_all_signs(differences: list[float]) -> None:
    ranks = stats.rankdata(np.abs(differences))
    observed = abs(np.sign(differences) @ ranks)
    sums = np.abs(np.sign(sign_flips(np.array(differences))) @ ranks)
    found = wilcoxon(differences, np.zeros(len(differences)))
    assert found == pytest.approx((sums >= observed).mean())


@pytest.mark.parametrize(
    ("size", "levels", "method"),
    [
        (20, 1 << 30, "exact"),
        (50, 1 << 30, "exact"),
        (51, 1 << 30, "auto"),  # by the normal distribution, from here on
        (51, 8, "auto"),
        (300, 8, "auto"),
    ],
)
def test_wilcoxon_equals_that_of_scipy(size: int, levels: int, method: str) -> None:
    a, b = np.random.default_rng(size).integers(0, levels, (2, size)) / levels
    a += 1 / 16  # so that no pair is equal, and no difference rounded
    wanted = stats.wilcoxon(a, b, method=method).pvalue
    assert wilcoxon(a, b) == pytest.approx(wanted, rel=1e-9)


def test_wilcoxon_leaves_out_equal_pairs() -> None:
    random = np.random.default_rng(0)
    a, b = random.random(20), random.random(20)
    assert wilcoxon([*a, 0.3, 0.1 + 0.2], [*b, 0.3, 0.3]) == wilcoxon(a, b)


def test_t_test_equals_its_formula() -> None:
    random = np.random.default_rng(1)
    a, b = random.random(40), random.random(40) + 0.1
    d = a - b
    t = d.mean() / (d.std(ddof=1) / np.sqrt(40))
    assert t_test(a, b) == pytest.approx(2 * stats.t.sf(abs(t), 39))


def test_randomisation_approaches_the_enumeration_of_all_signs() -> None:
    differences = np.array([0.3, -0.1, 0.2, 0.4, 0.2, -0.1, 0.1, 0.3, -0.2, 0.1])
    sums = np.abs(sign_flips(differences).sum(axis=1))
    exact = (sums >= abs(differences.sum()) - 1e-12).mean()
    found = randomisation(differences, np.zeros(10), rounds=40_000)
    assert found == pytest.approx(exact, abs=0.006)  # four standard deviations
    assert found == randomisation(differences, np.zeros(10), rounds=40_000)
    assert found != randomisation(differences, np.zeros(10), rounds=40_000, random_state=1)


def test_randomisation_never_claims_certainty() -> None:
    assert randomisation(np.ones(50), np.zeros(50), rounds=99) == 1 / 100


@every_test
@settings(deadline=None)
@given(pairs)
def test_every_test_gives_a_symmetric_probability(
    test: PairedTest, pairs: list[tuple[int, int]]
) -> None:
    a, b = (np.array(column) / 7 for column in zip(*pairs))
    p_value = test(a, b)
    assert 0 <= p_value <= 1
    assert test(b, a) == pytest.approx(p_value)


@every_test
def test_equal_systems_do_not_differ(test: PairedTest) -> None:
    values = np.random.default_rng(2).random(25)
    assert test(values, values) == 1.0
    assert test(values, values + 1e-15) == 1.0


@every_test
def test_different_systems_differ(test: PairedTest) -> None:
    values = np.random.default_rng(3).random(25)
    assert test(values, values + 0.1 + values / 10) < 0.001


def test_small_samples() -> None:
    assert t_test([0.5], [0.2]) == 1.0
    assert wilcoxon([0.5], [0.2]) == 1.0
    assert t_test([0.5, 0.6], [0.2, 0.3]) == 0.0


@every_test
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0], [1.0, 2.0], r"shapes \(1,\) and \(2,\)"),
        ([], [], "one value per query"),
        ([1.0, np.nan], [1.0, 2.0], "two numbers for query 1, found nan and 2.0"),
    ],
)
def test_mistakes_are_explained(
    test: PairedTest, a: list[float], b: list[float], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        test(a, b)


@given(pairs)
def test_wins_and_losses_count_every_query(pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs)
    wins, losses, ties = wins_losses(a, b)
    assert (losses, wins, ties) == wins_losses(b, a)
    assert wins == sum(x > y for x, y in pairs)
    assert wins + losses + ties == len(pairs)


def test_rounding_is_no_win() -> None:
    assert wins_losses([0.1 + 0.2], [0.3]) == (0, 0, 1)


def test_systems_are_compared_with_a_baseline() -> None:
    baseline = np.linspace(0.1, 0.8, 20)
    others = {"better": baseline + np.linspace(0.01, 0.1, 20), "same": baseline}
    found = compare(baseline, others, test=t_test)
    better = found["better"]
    assert better.mean == pytest.approx(others["better"].mean())
    assert better.difference == pytest.approx(0.055)
    assert (better.wins, better.losses, better.ties) == (20, 0, 0)
    assert better.p_value == t_test(others["better"], baseline) < 1e-6
    assert found["same"].p_value == 1.0
    corrected = compare(baseline, others, test=t_test, correct=True)
    assert corrected["better"].p_value == pytest.approx(2 * better.p_value)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_rejects_as_the_step_down_procedure_does(p_values: list[float]) -> None:
    corrected = holm(p_values)
    for level in (0.01, 0.05, 0.3):
        rejected = set()
        for i, place in enumerate(np.argsort(p_values, kind="stable")):
            if p_values[place] * (len(p_values) - i) > level:
                break
            rejected.add(place)
        assert set(np.flatnonzero(corrected <= level)) == rejected


def test_power_is_the_share_of_draws_that_show_the_gain() -> None:
    random = np.random.default_rng(0)
    n, deviation, gain = 30, 0.1, 0.04
    draws = random.normal(gain, deviation, (2000, n))
    shown = np.mean([t_test(own, np.zeros(n)) < 0.05 and own.mean() > 0 for own in draws])
    assert power_of(n, deviation, gain) == pytest.approx(shown, abs=4 * np.sqrt(0.25 / 2000))


def test_what_is_needed_is_the_least_that_is_enough() -> None:
    differences = np.random.default_rng(1).normal(0, 0.1, 50)
    power = queries_needed(differences, 0.02)
    assert power.needed is not None
    assert power_of(power.needed, power.deviation, 0.02) >= 0.8
    assert power_of(power.needed - 1, power.deviation, 0.02) < 0.8
    assert power.more == power.needed - 50
    assert str(power).startswith(f"{power.more} more queries would show a gain of .02 with 80 %")
    assert "at hand show a gain of .5" in str(queries_needed(differences, 0.5))


def test_a_gain_that_cannot_be_shown_is_refused() -> None:
    with pytest.raises(DataError, match="two queries or more"):
        queries_needed([0.1], 0.02)
    with pytest.raises(DataError, match="gain"):
        queries_needed([0.1, 0.2], 0.0)
