from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from didyma._core.assignment import match
from didyma.errors import DataError
from didyma.structures.matching import Matching
from tests.laws import enumeration
from tests.structures.scores import random_scores


def best_by_enumeration(scores):
    return max(total(scores, columns) for columns in enumeration.matchings(*scores.shape))


def total(scores, columns):
    rows = np.flatnonzero(columns >= 0)
    assert len(set(columns[rows].tolist())) == len(rows) == min(scores.shape)
    return scores[rows, columns[rows]].sum()


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), m=st.integers(1, 5))
@settings(deadline=None, max_examples=200)
def test_best_of_all_matchings(seed, n, m):
    scores = random_scores(np.random.default_rng(seed), (n, m))
    best = best_by_enumeration(scores)
    if best == -np.inf:
        with pytest.raises(DataError, match="-inf"):
            Matching().predict(scores)
    else:
        assert total(scores, Matching().predict(scores)) == pytest.approx(best, abs=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), surplus=st.integers(-3, 3))
@settings(deadline=None, max_examples=100)
def test_calls_that_follow_each_other_are_exact(seed, n, surplus):
    """Whatever an earlier call left behind, and however the scores change."""
    rng = np.random.default_rng(seed)
    m = max(1, n + surplus)
    matching = Matching()
    layout = matching.lay_out(np.zeros((n, m)))
    work, index = np.zeros(layout.n_work), np.zeros(layout.n_index, np.int64)
    parts, none = np.full((1, layout.n_parts), -1, np.int32), np.zeros(0, np.int32)
    scores = rng.standard_normal((n, m))
    for _ in range(12):
        change = rng.integers(6)
        if change == 0:
            scores = random_scores(rng, (n, m))
        elif change == 1:
            scores = np.where(np.isfinite(scores), scores, 0.0) * 10.0 ** rng.integers(-12, 13)
        elif change == 2:
            columns = matching.decode(parts, layout)[0]
            rows = np.flatnonzero(columns >= 0)
            scores[rows, columns[rows]] -= 1.0  # what a solver does
        else:
            scores = scores + rng.choice([0.01, 0.1, 1.0]) * rng.standard_normal((n, m))
        count = matching.kernel(
            scores.ravel(),
            layout.extra[0],
            layout.dims,
            layout.sizes[0],
            work,
            index,
            parts[0],
            none,
        )
        try:
            best = scores[linear_sum_assignment(scores, maximize=True)].sum()
        except ValueError:
            assert count == -1
            continue
        assert count == min(n, m)
        found = total(scores, matching.decode(parts, layout)[0])
        size = np.abs(scores[np.isfinite(scores)]).max()
        assert found == pytest.approx(best, abs=1e-11 * n * size)


@pytest.mark.parametrize("shape", [(60, 60), (60, 64), (64, 60), (30, 60)])
def test_larger_ones_equal_scipy(shape):
    rng = np.random.default_rng(0)
    for scores in (rng.standard_normal(shape), rng.integers(0, 5, shape).astype(float)):
        best = scores[linear_sum_assignment(scores, maximize=True)].sum()
        assert total(scores, Matching().predict(scores)) == pytest.approx(best)


def test_lengths_per_instance():
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((20, 5, 6))
    lengths = np.stack([rng.integers(1, 6, 20), rng.integers(1, 7, 20)], axis=1)
    padded = scores.copy()
    for b, (n, m) in enumerate(lengths):
        padded[b, n:] = padded[b, :, m:] = 1e6
    outputs = Matching().predict(padded, lengths)
    parts = Matching().argmax(padded, lengths)
    for b, (n, m) in enumerate(lengths):
        inner = scores[b, :n, :m]
        assert (outputs[b, n:] == -1).all()
        assert total(inner, outputs[b, :n]) == pytest.approx(best_by_enumeration(inner))
        used = parts[b, : min(n, m)]
        line = used // 6 if n <= m else used % 6
        np.testing.assert_array_equal(line, np.arange(min(n, m)))  # aligned by the smaller side
        assert (parts[b, min(n, m) :] == -1).all()


def test_one_length_serves_both_sides_of_square_scores():
    scores = np.random.default_rng(2).standard_normal((3, 4, 4))
    both = Matching().predict(scores, [[2, 2], [4, 4], [1, 1]])
    np.testing.assert_array_equal(Matching().predict(scores, [2, 4, 1]), both)
    np.testing.assert_array_equal(Matching().predict(scores[0], 2), both[0])
    np.testing.assert_array_equal(
        Matching().predict(scores[0], [2, 3]), [*_two_by_three(scores[0])]
    )


def _two_by_three(scores):
    return [*linear_sum_assignment(scores[:2, :3], maximize=True)[1], -1, -1]


def test_negative_and_huge_scores_are_matched():
    np.testing.assert_array_equal(Matching().predict([[-1.0, -2.0], [-1.0, -5.0]]), [1, 0])
    np.testing.assert_array_equal(Matching().predict([[1e299, 2e299], [1e299, 5e299]]), [0, 1])
    lowest = np.finfo(float).min
    np.testing.assert_array_equal(Matching().predict([[lowest, 1.0], [1.0, lowest]]), [1, 0])
    assert Matching().predict([[-3.0]]).tolist() == [0]


def test_forbidden_pairs_are_avoided_or_refused():
    forbidden = -np.inf
    np.testing.assert_array_equal(
        Matching().predict([[9.0, forbidden, 0.0], [9.0, forbidden, forbidden]]), [2, 0]
    )
    with pytest.raises(DataError, match="instance 1"):
        Matching().predict([[[1.0, 1.0]] * 2, [[1.0, forbidden]] * 2])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), m=st.integers(1, 5))
@settings(deadline=None, max_examples=50)
def test_encode_inverts_decode(seed, n, m):
    rng = np.random.default_rng(seed)
    lengths = np.stack([rng.integers(1, n + 1, 4), rng.integers(1, m + 1, 4)], axis=1)
    layout = Matching().lay_out(rng.standard_normal((4, n, m)), lengths)
    parts = Matching().argmax(layout.scores.reshape(4, n, m), lengths)
    outputs = np.concatenate([Matching().decode(parts[b : b + 1], layout) for b in range(4)])
    encoded, additional = Matching().encode(outputs, layout)
    np.testing.assert_array_equal(encoded, parts)
    assert additional.shape == (4, 0)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([0, 0, -1], "column 0 is matched twice"),
        ([0, -1, -1], "expected 2 pairs.*found 1"),
        ([0, 2, -1], "from -1 to 1, found 2"),
        ([0, -2, 1], "found -2"),
        ([0, 1], "shape"),
        ([0.0, 1.0, -1.0], "integers"),
    ],
)
def test_wrong_outputs(outputs, message):
    with pytest.raises(DataError, match=message):
        Matching().encode(outputs, Matching().lay_out(np.zeros((3, 2))))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([[1, 3]], "0 to 2 columns"),
        ([[-1, 1]], "0 to 3 rows"),
        ([1], "shape"),
        ([[1.0, 2.0]], "integers"),
        ([[1, 1], [1, 1]], "shape"),
    ],
)
def test_wrong_lengths(lengths, message):
    with pytest.raises(DataError, match=message):
        Matching().lay_out(np.zeros((1, 3, 2)), lengths)


@pytest.mark.parametrize("m", [9, 10])
def test_prices_that_are_kept_while_a_line_is_idle(m):
    n, rng = m - 1, np.random.default_rng(m)
    work, index = np.zeros(5 * m), np.zeros(1 + 6 * m, np.int64)
    parts, weights = np.empty(n, np.int32), rng.standard_normal((n, m))
    for _ in range(60):
        weights = weights + 0.5 * rng.standard_normal((n, m))
        assert match(weights.ravel(), m, n, m, work, index, parts) == n
        best = weights[linear_sum_assignment(weights, maximize=True)].sum()
        assert weights.ravel()[parts].sum() == pytest.approx(best)
