from __future__ import annotations

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.structures import Choice
from didyma.structures.batches import (
    as_batch,
    as_flags,
    as_lengths,
    as_outputs,
    check_range,
    check_scores,
    indicators,
    lay_out_additional,
    pack,
)

LAYOUT = Choice().lay_out(np.zeros((2, 3)))


def test_a_batch_axis_is_added():
    assert as_batch([1, 2, 3], 1).shape == (1, 3)
    assert as_batch(np.zeros((2, 3)), 1).shape == (2, 3)
    with pytest.raises(DataError, match=r"2 axes, or 3 .* shape \(3,\)"):
        as_batch(np.zeros(3), 2)


def test_scores_that_forbid_and_scores_that_are_refused():
    found = check_scores(np.array([[1.0, -1e301, -np.inf]]), "scores")
    np.testing.assert_array_equal(found, [[1.0, -np.inf, -np.inf]])
    used = np.array([[True, False, True]])
    np.testing.assert_array_equal(
        check_scores(np.array([[1.0, np.nan, 2.0]]), "scores", used), [[1.0, -np.inf, 2.0]]
    )
    for wrong in (np.nan, np.inf, 1e301):
        with pytest.raises(DataError, match=r"scores: .* at index \[0, 1\]"):
            check_scores(np.array([[1.0, wrong]]), "scores")


def test_lengths():
    assert as_lengths(None, 2, 5).tolist() == [5, 5]
    assert as_lengths([0, 5], 2, 5).tolist() == [0, 5]
    for wrong, message in (
        ([6, 1], "0 to 5 .* found 6 for instance 0"),
        ([1, -1], "instance 1"),
        ([1], "2 integers"),
        ([1.0, 2.0], "float64"),
    ):
        with pytest.raises(DataError, match=message):
            as_lengths(wrong, 2, 5)


def test_flags_are_packed_and_unpacked():
    flags = np.array([[True, False, True], [False, False, True]])
    layout = Choice().lay_out(np.zeros((2, 3)))
    layout.n_parts = 3
    parts = pack(flags, layout)
    assert parts.tolist() == [[0, 2, -1], [2, -1, -1]]
    np.testing.assert_array_equal(indicators(parts, layout), flags)


def test_outputs_are_checked():
    assert as_outputs([1, 2], (), LAYOUT).tolist() == [1, 2]
    with pytest.raises(DataError, match=r"integers of shape \(2,\), found float64"):
        as_outputs([1.0, 2.0], (), LAYOUT)
    every = np.ones((2, 3), bool)
    used = np.array([[True, True, False]] * 2)
    assert as_flags([[1, 0, 7]] * 2, used, LAYOUT).tolist() == [[True, False, False]] * 2
    with pytest.raises(DataError, match=r"0 or 1, found 7 at index \[0, 2\]"):
        as_flags([[1, 0, 7]] * 2, every, LAYOUT)
    check_range(np.array([[0, 9]], np.int32), 0, 3, np.array([[True, False]]), "label")
    with pytest.raises(DataError, match=r"a label from 0 to 2, found 9 at index \[0, 1\]"):
        check_range(np.array([[0, 9]], np.int32), 0, 3, np.array([[True, True]]), "label")


def test_additional_scores_stand_side_by_side():
    own = np.arange(4.0).reshape(2, 2)
    extra, places = lay_out_additional(
        2, {"a": ([8.0, 9.0], (2,)), "none": (None, (1,)), "b": (own, (2,))}
    )
    np.testing.assert_array_equal(extra, [[8, 9, 0, 0, 1], [8, 9, 0, 2, 3]])
    assert (places["a"].shared, places["b"].shared) == (True, False)
    assert (places["b"].start, places["b"].stop) == (3, 5)
    with pytest.raises(DataError, match=r"b: expected shape \(2,\), or \(2, 2\)"):
        lay_out_additional(2, {"b": (np.zeros(3), (2,))})
