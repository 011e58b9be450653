"""Grouping of rows and the container of judged results."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from didyma.data import Features, Groups, RankingData, group_rows
from didyma.errors import DataError


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30))
def test_groups_partition_the_rows_stably(qid):
    groups = Groups.from_qid(qid)
    assert sorted(groups.rows.tolist()) == list(range(len(qid)))
    assert groups.names.tolist() == list(dict.fromkeys(qid))
    for q, name in enumerate(groups.names):
        own = groups.rows[groups.starts[q] : groups.starts[q + 1]]
        assert own.tolist() == [row for row, other in enumerate(qid) if other == name]
    assert [groups.names[code] for code in groups.codes] == qid
    assert groups.sizes.sum() == len(qid)


def test_sizes():
    groups = Groups.from_sizes([2, 0, 1], 3)
    assert groups.starts.tolist() == [0, 2, 3]
    assert len(groups) == 2


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2, 2], "add up to 4 but there are 3 rows"),
        ([1.5, 1.5], "nonnegative integers"),
        ([4, -1], "nonnegative integers"),
        ([["a"]], "list of query sizes"),
    ],
)
def test_bad_sizes(sizes, message):
    with pytest.raises(DataError, match=message):
        Groups.from_sizes(sizes, 3)


def test_one_way_to_say_which_rows_belong_together():
    with pytest.raises(DataError, match="not both"):
        group_rows(2, qid=[1, 1], group=[2])
    with pytest.raises(DataError, match="3 query ids for 2 rows"):
        group_rows(2, qid=[1, 1, 1])
    with pytest.raises(DataError, match="one query id per row"):
        group_rows(2, qid=[[1], [1]])
    assert len(group_rows(2)) == 1


def test_columns_of_different_lengths_are_refused():
    X, y, qid = np.eye(3), np.zeros(3), np.array(["a", "a", "b"])
    with pytest.raises(DataError, match="y: expected 3 values"):
        RankingData(X, np.zeros(2), qid)
    with pytest.raises(DataError, match="qid: expected 3 values"):
        RankingData(X, y, qid[:2])
    with pytest.raises(DataError, match="2 names for 3 features"):
        RankingData(X, y, qid, feature_names=("f", "g"))


def test_selection():
    data = RankingData(
        np.eye(3), np.arange(3.0), np.array(["a", "a", "b"]), np.array(["x", "y", "z"])
    )
    part = data.select([2, 0])
    assert part.qid.tolist() == ["b", "a"]
    assert part.docid.tolist() == ["z", "x"]
    assert part.y.tolist() == [2.0, 0.0]
    assert len(part) == 2


def judged(X, **more):
    return RankingData(np.asarray(X, float), np.arange(float(len(X))), np.zeros(len(X)), **more)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_arranged_by_name_or_by_place(sparse):
    X = sp.csr_array(np.eye(2)) if sparse else np.eye(2)
    data = RankingData(X, np.ones(2), np.zeros(2), feature_names=("x", "y"))
    swapped = Features(2, ("y", "x")).arrange(data)
    assert (swapped.X.toarray() if sparse else swapped.X).tolist() == [[0, 1], [1, 0]]
    assert swapped.feature_names == ("y", "x")
    assert Features(1, ("y",)).arrange(data).X.shape == (2, 1)
    assert Features(2).arrange(data).feature_names is None
    with pytest.raises(DataError, match="expected also the features z"):
        Features(2, ("y", "z")).arrange(data)
    with pytest.raises(DataError, match="expected 3 features, found 2"):
        Features(3).arrange(data)
    indexed = RankingData(X, np.ones(2), np.zeros(2), zero_based=False)
    wide = Features(3, zero_based=False).arrange(indexed)
    assert (wide.X.toarray() if sparse else wide.X).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(DataError, match="expected 1 features, found 2"):
        Features(1, zero_based=False).arrange(indexed)


@pytest.mark.parametrize("zero_based", [False, True])
def test_columns_that_count_from_elsewhere_are_refused(zero_based):
    data = judged(np.eye(2), zero_based=zero_based)
    expected, found = int(zero_based), int(not zero_based)
    with pytest.raises(
        DataError, match=f"count from {expected}, found some that count from {found}"
    ):
        Features(2, zero_based=not zero_based).arrange(data)
    assert Features(2).arrange(data).zero_based is zero_based
    assert data.select([1]).zero_based is zero_based
