"""Grouping of rows and the container of judged results."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.lists import Groups, Lists, group_rows
from didyma.data.matrix import Columns, as_csr
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


def test_columns_of_different_lengths_are_refused():
    X, y, qid = np.eye(3), np.zeros(3), np.array(["a", "a", "b"])
    with pytest.raises(DataError, match="y: expected 3 values"):
        Lists(X, np.zeros(2), qid)
    with pytest.raises(DataError, match="qid: expected 3 values"):
        Lists(X, y, qid[:2])
    with pytest.raises(DataError, match="2 names for 3 features"):
        Lists(X, y, qid, feature_names=("f", "g"))


def test_selection():
    data = Lists(np.eye(3), np.arange(3.0), np.array(["a", "a", "b"]), np.array(["x", "y", "z"]))
    part = data.select([2, 0])
    assert part.qid.tolist() == ["b", "a"]
    assert part.docid.tolist() == ["z", "x"]
    assert part.y.tolist() == [2.0, 0.0]
    assert len(part) == 2


def judged(X, **more):
    return Lists(np.asarray(X, float), np.arange(float(len(X))), np.zeros(len(X)), **more)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_arranged_by_name_or_by_place(sparse):
    X = sp.csr_array(np.eye(2)) if sparse else np.eye(2)
    data = Lists(X, np.ones(2), np.zeros(2), feature_names=("x", "y"))
    swapped = Columns(2, ("y", "x")).arrange(data)
    assert (swapped.X.toarray() if sparse else swapped.X).tolist() == [[0, 1], [1, 0]]
    assert swapped.feature_names == ("y", "x")
    assert Columns(1, ("y",)).arrange(data).X.shape == (2, 1)
    assert Columns(2).arrange(data).feature_names is None
    with pytest.raises(DataError, match="expected also the features z"):
        Columns(2, ("y", "z")).arrange(data)
    with pytest.raises(DataError, match="expected 3 features, found 2"):
        Columns(3).arrange(data)
    indexed = Lists(X, np.ones(2), np.zeros(2), zero_based=False)
    wide = Columns(3, zero_based=False).arrange(indexed)
    assert (wide.X.toarray() if sparse else wide.X).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(DataError, match="expected 1 features, found 2"):
        Columns(1, zero_based=False).arrange(indexed)


@pytest.mark.parametrize("zero_based", [False, True])
def test_columns_that_count_from_elsewhere_are_refused(zero_based):
    data = judged(np.eye(2), zero_based=zero_based)
    expected, found = int(zero_based), int(not zero_based)
    with pytest.raises(
        DataError, match=f"count from {expected}, found some that count from {found}"
    ):
        Columns(2, zero_based=not zero_based).arrange(data)
    assert Columns(2).arrange(data).zero_based is zero_based
    assert data.select([1]).zero_based is zero_based


def sparse(data, indices, indptr, shape=(2, 3), kind=sp.csr_array):
    """A matrix of parts that nobody has checked."""
    X = kind(shape)
    X.data, X.indices, X.indptr = map(np.asarray, (data, indices, indptr))
    return X


DAMAGED = [
    (([1.0, 2.0], [0, 3], [0, 1, 2]), "column indices from 0 to 2, found 3"),
    (([1.0, 2.0], [0, -1], [0, 1, 2]), "column indices from 0 to 2, found -1"),
    (([1.0, 2.0], [0, 2**40], [0, 1, 2]), "column indices from 0 to 2, found 1099511627776"),
    (([1.0, 2.0], [0, 1], [0, 5, 2]), "indptr that rises from 0 to 2"),
    (([1.0, 2.0], [0, 1], [0, -5, 2]), "indptr that rises"),
    (([1.0, 2.0], [0, 1], [1, 1, 2]), "indptr that rises"),
    (([1.0, 2.0], [0, 1], [0, 1, 2**40]), "indptr that rises"),
    (([1.0, 2.0], [0, 1], [0, 2]), "indptr of 3 integers"),
    (([1.0, 2.0], [0, 1], [0.0, 1.0, 2.0]), "indptr of 3 integers"),
    (([1.0], [0, 1], [0, 1, 2]), "2 indices for 1 values"),
    (([1.0, 2.0], [0.0, 1.0], [0, 1, 2]), "column indices, found float64"),
    (([1.0, np.nan], [0, 1], [0, 1, 2]), "finite numbers"),
    (([1.0, -np.inf], [0, 1], [0, 1, 2]), "finite numbers"),
    (([1j, 1.0], [0, 1], [0, 1, 2]), "expected numbers, found complex128"),
    ((["a", "b"], [0, 1], [0, 1, 2]), "expected numbers, found <U1"),
]


@pytest.mark.parametrize(("parts", "message"), DAMAGED)
def test_damaged_sparse_matrices_are_refused(parts, message):
    with pytest.raises(DataError, match=message):
        as_csr(sparse(*parts))
    with pytest.raises(DataError, match=f"X: .*{message}"):
        Lists(sparse(*parts), np.zeros(2), np.zeros(2))
    with pytest.raises(DataError, match=message):
        as_csr(sparse(*parts, shape=(3, 2), kind=sp.csc_array))


def test_damaged_matrices_of_other_kinds_are_refused():
    triples = sp.coo_array(([1.0], ([0], [1])), shape=(2, 2))
    triples.coords[0][0] = 9
    with pytest.raises(DataError, match="row indices from 0 to 1, found 9"):
        as_csr(triples)
    blocks = sp.bsr_array(np.eye(4), blocksize=(2, 2))
    blocks.indices[0] = 2
    with pytest.raises(DataError, match="column indices from 0 to 1, found 2"):
        as_csr(blocks)
    lists = sp.lil_array(np.eye(2))
    lists.rows[0] = [5]
    with pytest.raises(DataError, match="column indices from 0 to 1, found 5"):
        as_csr(lists)
    with pytest.raises(DataError, match="expected a matrix"):
        as_csr(sp.coo_array(np.ones(3)))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_every_kind_of_sparse_matrix_becomes_csr(kind, make):
    X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    rows = as_csr(make(X).asformat(kind))
    assert isinstance(rows, sp.csr_array)
    np.testing.assert_array_equal(rows.toarray(), X)
    given_rows = make(X)
    assert np.shares_memory(as_csr(given_rows).data, given_rows.data)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("values", "?bBhiIlLefdg")
@pytest.mark.parametrize("index", "bBhHiIlL")
def test_numbers_and_indices_of_every_type(kind, values, index):
    """What SciPy, scikit-learn and compiled loops get is of a type that they all know."""
    X = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 3.0, 0.0]]).astype(values)
    made = sp.csr_array(X.astype(float)).asformat(kind)
    made.data = made.data.astype(values)
    if kind == "coo":
        made.coords = tuple(own.astype(index) for own in made.coords)
    elif kind != "dia":
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    rows = as_csr(made)
    np.testing.assert_array_equal(rows.toarray(), X.astype(float))
    assert rows.indices.dtype == rows.indptr.dtype == np.int32
    assert rows.dtype in (np.float32, np.float64) or rows.dtype.kind in "iu"
    assert Lists(made, np.ones(2), np.ones(2)).X.dtype == Lists(X, np.ones(2), np.ones(2)).X.dtype


@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_a_matrix_with_more_columns_than_32_bits_count(kind):
    indices = np.array([0, 2**33 - 1])
    made = sp.coo_array((np.ones(2), (np.arange(2), indices)), shape=(2, 2**33))
    rows = as_csr(made.asformat(kind))
    assert rows.indices.tolist() == indices.tolist()
    assert rows.indices.dtype == rows.indptr.dtype == np.int64


def test_room_behind_the_last_entry_is_left_out():
    rows = sp.csr_array(np.eye(2))
    rows.data, rows.indices = np.append(rows.data, 7.0), np.append(rows.indices, 1)
    assert as_csr(rows).data.tolist() == [1.0, 1.0]


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
