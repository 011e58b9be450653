"""Grouping of rows and the container of judged results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.lists import Groups, Lists, group_rows
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
    with pytest.raises(DataError, match="qid: row 2: expected a query, found none"):
        Lists(np.eye(3), qid=["a", "b", ""])


def test_columns_of_different_lengths_are_refused():
    X, y, qid = np.eye(3), np.zeros(3), np.array(["a", "a", "b"])
    with pytest.raises(DataError, match="y: expected 3 values"):
        Lists(X, np.zeros(2), qid)
    with pytest.raises(DataError, match="qid: expected 3 values"):
        Lists(X, y, qid[:2])
    with pytest.raises(DataError, match="2 names for 3 features"):
        Lists(X, y, qid, feature_names=("f", "g"))


def test_values_of_judged_results_are_checked():
    qid = np.zeros(2)
    for X in (np.zeros(2), np.array([["a"], ["b"]]), np.zeros((2, 1), complex)):
        with pytest.raises(DataError, match="X: expected a matrix of numbers"):
            Lists(X, np.zeros(2), qid)
    for y in (np.array(["a", "b"]), np.array([np.nan, 0.0])):
        with pytest.raises(DataError, match="y: expected finite numbers"):
            Lists(np.eye(2), y, qid)
    with pytest.raises(DataError, match="one query id per row"):
        Groups.from_qid([["a"], ["a", "b"]])


def test_parts_of_lists_keep_all_that_is_known():
    lists = Lists(
        ["a", "b", "c", "d"],
        np.arange(4.0),
        np.array(["q", "r", "q", "s"]),
        np.array(["1", "2", "3", "4"]),
        queries=["Q", "R", "S"],
        scores=np.arange(4.0) + 10,
        losses=np.arange(4.0) + 20,
        weights=np.array([1.0, 2, 3]),
    )
    part = lists.select(np.array([False, True, True, False]))
    assert part.items == ["b", "c"]
    assert part.queries == ["R", "Q"]
    assert part.groups.names.tolist() == ["r", "q"]
    assert part.weights.tolist() == [2, 1]
    assert [part.labels.tolist(), part.scores.tolist(), part.losses.tolist()] == [
        *([1, 2], [11, 12], [21, 22])
    ]
    assert part.docid.tolist() == ["2", "3"]
    chosen = lists.select_lists([2, 0])
    assert (chosen.items, chosen.queries) == (["d", "a", "c"], ["S", "Q"])
    assert chosen.groups.names.tolist() == ["s", "q"]
    assert chosen.weights.tolist() == [3, 1]


def test_lists_of_texts_may_be_empty():
    lists = Lists.of_texts(["x", "y", "z"], [["a"], [], ["b", "c"]], [[1], [], [0, 1]])
    assert lists.groups.sizes.tolist() == [1, 0, 2]
    assert lists.y.tolist() == [1, 0, 1]
    assert lists.select_lists([1, 2]).groups.sizes.tolist() == [0, 2]
    assert lists.select([2, 0]).queries == ["z", "x"]
    assert lists.select_lists([]).queries == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"passages": [["a"]]}, "passages: 1 lists for 2 queries"),
        ({"labels": [[1]]}, "labels: 1 lists for 2 queries"),
        ({"labels": [[1], [1]]}, "labels: expected 2 values in list 1, found 1"),
        ({"scores": [["x"], [1, 2]]}, "scores: expected numbers in list 0"),
        ({"scores": [[np.nan], [1, 2]]}, "scores: expected finite numbers"),
    ],
)
def test_texts_that_do_not_fit_together_are_refused(more, message):
    given = {"passages": [["a"], ["b", "c"]], **more}
    with pytest.raises(DataError, match=message):
        Lists.of_texts(["x", "y"], **given)


def test_texts_have_no_matrix_and_unjudged_lists_no_labels():
    lists = Lists.of_texts(["x"], [["a"]])
    with pytest.raises(DataError, match="items: expected a matrix"):
        lists.X  # noqa: B018
    with pytest.raises(DataError, match="labels: expected judged lists"):
        lists.y  # noqa: B018
    assert lists.with_items(np.eye(1), ["one"]).features.names == ("one",)


def test_columns_may_be_plain_lists() -> None:
    lists = Lists(np.zeros((3, 1)), [1, 0, 0], ["a", "a", "b"], scores=(0.5, 0.25, 1.0))
    assert lists.y.tolist() == [1, 0, 0]
    assert len(lists.groups) == 2
    with pytest.raises(DataError, match=r"y: expected 3 values, found shape \(2,\)"):
        Lists(np.zeros((3, 1)), [1, 0])
    with pytest.raises(DataError, match="y: expected finite numbers"):
        Lists(np.zeros((2, 1)), ["good", "bad"])
