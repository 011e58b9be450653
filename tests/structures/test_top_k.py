from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.structures.top_k import TopK
from tests.laws import enumeration
from tests.structures.scores import random_scores

MODES = st.booleans()


def totals(outputs, scores):
    return np.array([scores[output].sum() for output in outputs])


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 7),
    k=st.integers(1, 7),
    padding=st.integers(0, 2),
    exactly=MODES,
)
@settings(deadline=None, max_examples=200)
def test_best_set_and_marginals_by_enumeration(seed, n, k, padding, exactly):
    if exactly:
        k = min(k, n)
    scores = random_scores(np.random.default_rng(seed), n)
    padded = np.append(scores, np.full(padding, 500.0))[None]
    structure = TopK(k, exactly=exactly)
    outputs = np.array(list(enumeration.subsets(n, min(k, n), exactly)))
    values = totals(outputs, scores)
    if values.max() == -np.inf:
        for call in (structure.predict, structure.marginals):
            with pytest.raises(DataError, match="-inf"):
                call(padded, [n])
        return
    predicted = structure.predict(padded, [n])[0]
    np.testing.assert_array_equal(predicted[:n], outputs[np.argmax(values)])
    assert not predicted[n:].any()
    weights = np.exp(values - values.max())
    marginals = structure.marginals(padded, [n])[0]
    np.testing.assert_allclose(marginals[:n], weights @ outputs / weights.sum(), atol=1e-12)
    assert not marginals[n:].any()
    np.testing.assert_allclose(
        structure.log_partition(padded, [n]), values.max() + np.log(weights.sum()), atol=1e-12
    )


@given(seed=st.integers(0, 10**6), n=st.integers(1, 300), exactly=MODES, ties=st.booleans())
@settings(deadline=None, max_examples=60)
def test_many_options_equal_a_sort(seed, n, exactly, ties):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, n + 1))
    scores = rng.standard_normal(n)
    if ties:
        scores = np.round(2 * scores)
    best = np.argsort(-scores, kind="stable")[:k]
    if not exactly:
        best = best[scores[best] > 0]
    parts = TopK(k, exactly=exactly).argmax(scores)
    np.testing.assert_array_equal(parts[: len(best)], np.sort(best))
    assert (parts[len(best) :] == -1).all()


def test_huge_scores():
    scores = np.array([1e299, -1e300, 1e300, 0.0])
    np.testing.assert_array_equal(TopK(2).predict(scores), [True, False, True, False])
    np.testing.assert_allclose(TopK(2).marginals(scores), [1, 0, 1, 0], atol=1e-12)


def test_marginals_of_many_options_sum_to_k():
    scores = np.random.default_rng(0).standard_normal((3, 200))
    np.testing.assert_allclose(TopK(20).marginals(scores).sum(axis=1), 20)
    assert (TopK(20, exactly=False).marginals(scores).sum(axis=1) < 20).all()


@pytest.mark.parametrize(
    ("structure", "outputs", "message"),
    [
        (TopK(2), [1, 0, 0], "exactly 2 chosen options, found 1"),
        (TopK(2), [1, 1, 1], "exactly 2"),
        (TopK(2, exactly=False), [1, 1, 1], "at most 2"),
        (TopK(2), [2, 0, 1], "0 or 1, found 2"),
        (TopK(2), [True, True], "shape"),
        (TopK(2), [1.0, 1.0, 0.0], "booleans"),
    ],
)
def test_wrong_outputs(structure, outputs, message):
    with pytest.raises(DataError, match=message):
        structure.encode(outputs, structure.lay_out(np.zeros(3)))


def test_padding_of_outputs_is_ignored():
    parts, _ = TopK(1).encode([0, 1, -1], TopK(1).lay_out(np.zeros(3), [2]))
    assert parts.tolist() == [[1]]


def test_too_few_options():
    with pytest.raises(DataError, match="at least k = 4 options, found 3"):
        TopK(4).predict(np.zeros(3))
    with pytest.raises(DataError, match=r"lengths.*found 1 in instance 1"):
        TopK(2).predict(np.zeros((2, 3)), [2, 1])
    assert TopK(4, exactly=False).predict(np.ones(3)).all()


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", True, None])
def test_wrong_k(k):
    with pytest.raises(DataError, match="k: expected a whole number"):
        TopK(k)
