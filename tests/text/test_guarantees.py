"""Guarantees hold as often as they say, over draws of queries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.text.guarantees import GRID, Guarantees, conformal_cut, hoeffding_bentkus

SIZE = 5


def drawn(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, Groups]:
    """Scores that are too sure: a passage of score s is relevant with chance s², query by query."""
    ease = random.normal(0, 1, (n, 1))
    scores = 1 / (1 + np.exp(-(ease + random.normal(0, 1.5, (n, SIZE)))))
    relevance = (random.random((n, SIZE)) < scores**2).astype(float)
    return scores.ravel(), relevance.ravel(), Groups.from_sizes([SIZE] * n, SIZE * n)


@pytest.fixture(scope="module")
def truth() -> Guarantees:
    """So many queries that means are as good as expectations."""
    return Guarantees.of(*drawn(np.random.default_rng(99), 40_000))


@pytest.mark.parametrize(("precision", "level"), [(0.7, 0.9), (0.6, 0.8)])
def test_a_guarantee_of_precision_fails_no_more_often_than_it_says(
    truth: Guarantees, precision: float, level: float
) -> None:
    random, failed, given = np.random.default_rng(10), 0, 0
    for _ in range(200):
        try:
            found = Guarantees.of(*drawn(random, 150)).precision(precision, level)
        except DataError:
            continue
        given += 1
        place = int(np.flatnonzero(np.isclose(GRID, found.score))[0])
        failed += 1 - truth.wrong[place] < precision
    assert given > 100  # it is worth something
    allowed = binom.ppf(0.999, 200, 1 - level)
    assert failed <= allowed


def test_the_expected_recall_is_what_was_asked_for(truth: Guarantees) -> None:
    random, kept = np.random.default_rng(11), []
    for _ in range(200):
        score = Guarantees.of(*drawn(random, 80)).recall(0.8).score
        kept.append(1 - truth.missed[int(np.flatnonzero(np.isclose(GRID, score))[0])])
    error = np.std(kept) / np.sqrt(len(kept))
    assert 0.8 - 3 * error <= np.mean(kept) <= 0.83  # and not much more


def test_an_empirical_threshold_fails_more_often(truth: Guarantees) -> None:
    """What the guarantee is for: thresholds that are read off fail about every other time."""
    random, failed = np.random.default_rng(2), 0
    for _ in range(100):
        found = Guarantees.of(*drawn(random, 150))
        place = int(np.flatnonzero(1 - found.wrong >= 0.7)[-1])
        failed += 1 - truth.wrong[place] < 0.7
    assert failed > 30


def test_p_values_are_no_less_than_exact_ones_and_fall_with_n() -> None:
    for n in (5, 30, 200):
        for hits in range(n // 4):
            value = hoeffding_bentkus(hits / n, n, 0.3)
            assert value >= binom.cdf(hits, n, 0.3) * (1 - 1e-9)
    assert hoeffding_bentkus(0.05, 400, 0.1) < hoeffding_bentkus(0.05, 100, 0.1)
    assert hoeffding_bentkus(0.2, 100, 0.1) == hoeffding_bentkus(0.0, 0, 0.1) == 1.0
    assert hoeffding_bentkus(0.0, 10, 0.3) == pytest.approx(math.exp(10 * math.log(0.7)))


def test_too_few_queries_are_named() -> None:
    groups = Groups.from_sizes([2] * 10, 20)
    few = Guarantees.of(np.tile([0.9, 0.1], 10), np.tile([1.0, 0.0], 10), groups)
    with pytest.raises(DataError, match="10 have an answer, and without any mistake 33 would be"):
        few.precision(0.9)
    with pytest.raises(DataError, match="19 at least are needed"):
        few.recall(0.95)
    with pytest.raises(DataError, match="no number of queries"):
        few.precision(1.0)
    with pytest.raises(DataError, match="level"):
        few.precision(0.9, 0.0)
    assert conformal_cut([0.0], 9, 0.1) == 0
