"""The container of judged results."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError


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


@pytest.mark.parametrize("field", ["X", "y", "qid", "docid", "scores", "losses", "weights"])
def test_hidden_values_do_not_count(field):
    values = {name: np.arange(3.0) for name in ("labels", "qid", "docid", "scores", "losses")}
    values |= {"items": np.eye(3), "weights": np.ones(3)}
    name = {"X": "items", "y": "labels"}.get(field, field)
    hidden = np.zeros(values[name].shape, bool)
    Lists(**values | {name: np.ma.array(values[name], mask=hidden)})
    hidden[-1] = True
    with pytest.raises(DataError, match=f"^{field}: has masked values"):
        Lists(**values | {name: np.ma.array(values[name], mask=hidden)})


@pytest.mark.parametrize("field", ["labels", "scores", "query_vectors"])
def test_hidden_values_beside_texts_do_not_count(field):
    given = np.ma.array([[1.0, 0.0]], mask=[[True, False]])
    with pytest.raises(DataError, match=f"^{field}: has masked values"):
        Lists.of_texts(["a"], [["b", "c"]], **{field: given})


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
