from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.structures.forest import Forest
from tests.laws import enumeration
from tests.structures.scores import random_scores

FORESTS = {n: np.array(list(enumeration.forests(n))) for n in range(1, 6)}


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), padding=st.integers(0, 2))
@settings(deadline=None, max_examples=150)
def test_best_of_all_forests(seed, n, padding):
    rng = np.random.default_rng(seed)
    scores = random_scores(rng, (n, n), 1e299)
    padded = np.full((2, n + padding, n + padding), 7.0)
    padded[0, :n, :n] = scores
    lengths = [n, n + padding]
    output = Forest().predict(padded, lengths)[0]
    assert not output[np.tril_indices(n + padding)].any()
    assert not output[:, n:].any()
    forests = FORESTS[n]
    assert (forests == output[:n, :n]).all(axis=(1, 2)).any()
    assert (scores[output[:n, :n]] > 0).all()
    best = np.where(forests, scores, 0.0).sum(axis=(1, 2)).max()
    assert scores[output[:n, :n]].sum() == pytest.approx(best, rel=1e-12)
    parts = Forest().argmax(padded, lengths)[0]
    count = output.sum()
    assert (np.diff(parts[:count]) > 0).all()
    assert (parts[count:] == -1).all()


def test_numbers_of_forests():
    assert [len(FORESTS[n]) for n in (1, 2, 3, 4, 5)] == [1, 2, 7, 38, 291]


def test_the_lower_triangle_is_not_read():
    scores = np.random.default_rng(0).standard_normal((6, 6))
    np.testing.assert_array_equal(
        Forest().predict(scores), Forest().predict(np.triu(scores, 1) + np.tril(np.full((6, 6), 9)))
    )


def test_a_forest_may_be_empty():
    assert not Forest().predict(-np.ones((3, 3))).any()
    assert not Forest().predict(np.zeros((3, 3))).any()
    assert not Forest().predict(np.full((3, 3), -np.inf)).any()
    assert not Forest().predict([[5.0]]).any()


@given(seed=st.integers(0, 10**6), n=st.integers(1, 7))
@settings(deadline=None, max_examples=50)
def test_encode_inverts_decode(seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((3, n, n))
    lengths = rng.integers(1, n + 1, 3)
    layout = Forest().lay_out(scores, lengths)
    parts = Forest().argmax(scores, lengths)
    outputs = np.concatenate([Forest().decode(parts[b : b + 1], layout) for b in range(3)])
    for form in (outputs, outputs.astype(int)):
        encoded, additional = Forest().encode(form, layout)
        np.testing.assert_array_equal(encoded, parts)
        assert additional.shape == (3, 0)


def edges_of(*edges):
    output = np.zeros((4, 4), int)
    for i, j in edges:
        output[i, j] = 1
    return output


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (edges_of((0, 1), (1, 2), (0, 2)), "closes a cycle"),
        (edges_of((0, 1), (2, 3), (1, 3), (0, 2)), "closes a cycle"),
        (edges_of((0, 1), (1, 0)), r"i < j only, found one at index \[0, 1, 0\]"),
        (edges_of((2, 2)), "i < j only"),
        (2 * edges_of((0, 1)), "0 or 1, found 2"),
        (edges_of()[:3], "shape"),
        (edges_of().astype(float), "booleans"),
    ],
)
def test_wrong_outputs(outputs, message):
    with pytest.raises(DataError, match=message):
        Forest().encode(outputs, Forest().lay_out(np.zeros((4, 4))))


def test_padding_of_outputs_is_ignored():
    output = edges_of((0, 1))
    output[3] = output[:, 3] = -1
    parts, _ = Forest().encode(output, Forest().lay_out(np.zeros((4, 4)), [3]))
    assert parts.tolist() == [[1, -1, -1]]


def test_wrong_scores():
    with pytest.raises(DataError, match="square"):
        Forest().predict(np.zeros((2, 3)))
    with pytest.raises(DataError, match="0 to 2"):
        Forest().predict(np.zeros((2, 2)), [3])
