"""Which rows belong to which query."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.groups import Groups, group_rows
from didyma.data.lists import Lists
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
        ([[1], [1, 1]], "list of query sizes"),
        (["1", "2"], "list of query sizes"),
        ([3 + 0j], "list of query sizes"),
        ([None], "list of query sizes"),
        ([2**63 - 1, 2**63 - 1, 5], "add up to 18446744073709551619 but"),
        ([2**70, 3], "list of query sizes"),
        (np.array([2**64 - 1, 4], np.uint64), "add up to 18446744073709551619 but"),
        ([1e300, 3.0], "add up to 1000000.* but there are 3 rows"),
        ([np.nan, 3.0], "nonnegative integers"),
        ([np.inf, 3.0], "nonnegative integers"),
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


@pytest.mark.parametrize(
    "qid",
    [
        ["a", None, "None"],
        np.array([1.0, np.nan, np.nan]),
        pd.Series(["nan", np.nan, "a"]),
        pd.array([1, None, 2], dtype="Int64"),
        np.array(["2026-01-01", "NaT", "NaT"], dtype="datetime64[D]"),
    ],
    ids=repr,
)
def test_rows_that_are_of_no_query_are_not_a_query(qid):
    with pytest.raises(DataError, match=r"qid: row 1: expected a query, found (None|nan|<NA>|NaT)"):
        group_rows(3, qid)
    with pytest.raises(DataError, match="qid: row 1"):
        Lists(np.eye(3), qid=np.asarray(qid))
    assert len(group_rows(3, [str(each) for each in qid])) > 1


@pytest.mark.parametrize("kind", ["U", "S", object])
def test_an_empty_id_is_none(kind):
    for ids in (["a", "b", ""], [b"a", b"b", b""]):
        with pytest.raises(DataError, match=r"qid: row 2: expected a query, found (none|b'')"):
            Groups.from_qid(np.array(ids, kind))
    with pytest.raises(DataError, match=r"qid: row 2: expected a query, found none"):
        Lists(np.eye(3), qid=["a", "b", ""])
    assert len(group_rows(2, np.array([b"None", b"nan"], kind))) == 2


def test_hidden_queries_do_not_count():
    qid, hidden = np.array([1, 1, 2]), np.array([False, False, True])
    with pytest.raises(DataError, match=r"^qid: has masked values"):
        group_rows(3, np.ma.array(qid, mask=hidden))
    with pytest.raises(DataError, match=r"^group: has masked values"):
        group_rows(3, group=np.ma.array(qid, mask=hidden))
    assert group_rows(3, np.ma.array(qid)).names.tolist() == [1, 2]
