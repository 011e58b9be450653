"""Grouping of rows and the container of judged results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data import Groups, RankingData, group_rows
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
