from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data.lists import Lists
from didyma.data.matrix import Columns, as_csr
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


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_arranged_by_name_or_by_place(sparse):
    X = sp.csr_array(np.eye(2)) if sparse else np.eye(2)
    data = Lists(X, np.ones(2), np.zeros(2), feature_names=("x", "y"))
    swapped = Columns(2, ("y", "x")).arrange(data)
    assert (swapped.X.toarray() if sparse else swapped.X).tolist() == [[0, 1], [1, 0]]
    assert swapped.feature_names == ("y", "x")
    assert Columns(1, ("y",)).arrange(data).X.shape == (2, 1)
    assert Columns(2).arrange(data).feature_names is None
    with pytest.raises(DataError, match=r"x\.txt: expected also the features u, z"):
        Columns(3, ("u", "y", "z")).arrange(data, "x.txt")
    with pytest.raises(DataError, match="expected 3 features, found 2"):
        Columns(3).arrange(data)
    indexed = Lists(X, np.ones(2), np.zeros(2), zero_based=False)
    wide = Columns(3, zero_based=False).arrange(indexed)
    assert (wide.X.toarray() if sparse else wide.X).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(DataError, match="expected 1 features, found 2"):
        Columns(1, zero_based=False).arrange(indexed)


@pytest.mark.parametrize("zero_based", [False, True])
def test_columns_that_count_from_elsewhere_are_refused(zero_based):
    data = lists(2, zero_based=zero_based)
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
    by_row = sp.lil_array(np.eye(2))
    by_row.rows[0] = [5]
    with pytest.raises(DataError, match="column indices from 0 to 1, found 5"):
        as_csr(by_row)
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


def test_columns_of_one_name_are_not_matched_by_it() -> None:
    once = Lists(np.eye(3), feature_names=("x", "y", "z"))
    twice = Lists(np.eye(3), feature_names=("x", "y", "x"))
    assert twice.features.arrange(twice) is twice
    for columns, data in ((once, twice), (twice, once)):
        with pytest.raises(DataError, match="feature 'x': expected features with different names"):
            columns.features.arrange(data)
