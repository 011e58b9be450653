from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.errors import DataError


def lists(width: int, **options) -> Lists:
    return Lists(np.arange(2.0 * width).reshape(2, width), np.ones(2), np.zeros(2), **options)


def test_labels_are_names_or_the_indices_of_a_file():
    assert Columns(2, ("a", "b")).labels == ["a", "b"]
    assert Columns(2, zero_based=True).labels == ["0", "1"]
    assert Columns(2, zero_based=False).labels == Columns(2).labels == ["1", "2"]
    with pytest.raises(DataError, match="weights: there is no feature 'c'"):
        Columns(2, ("a", "b")).places(["c"], "weights")


def test_an_estimator_remembers_its_columns():
    estimator = SimpleNamespace()
    for columns in (Columns(2, ("a", "b"), False), Columns(3)):
        columns.remember(estimator)
        assert Columns.of(estimator) == columns
        assert Columns.of(SimpleNamespace(steps=[("first", estimator)])) == columns
    with pytest.raises(DataError, match="like: expected judged results or a fitted model"):
        Columns.of(object())


def test_columns_are_found_by_name():
    data = lists(3, feature_names=("a", "b", "c"))
    found = Columns(2, ("c", "a")).arrange(data)
    np.testing.assert_array_equal(found.X, data.X[:, [2, 0]])
    assert found.feature_names == ("c", "a")
    with pytest.raises(DataError, match=r"x.txt: expected also the features d, e"):
        Columns(3, ("d", "a", "e")).arrange(data, "x.txt")


def test_columns_that_a_file_never_lists_are_zero():
    data = lists(2, zero_based=False)
    np.testing.assert_array_equal(Columns(3, zero_based=False).arrange(data).X[:, 2], 0.0)
    with pytest.raises(DataError, match="expected 3 features, found 2"):
        Columns(3).arrange(lists(2))
    with pytest.raises(DataError, match="expected 1 features, found 2"):
        Columns(1, zero_based=False).arrange(data)
    with pytest.raises(DataError, match="count from 0, found some that count from 1"):
        Columns(2, zero_based=True).arrange(data)
