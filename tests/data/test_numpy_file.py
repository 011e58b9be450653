from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data import numpy_file
from didyma.data.lists import Lists
from didyma.errors import DataError
from tests.data.same import assert_same


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_what_is_written_is_read(tmp_path: Path, sparse: bool, named: bool) -> None:
    X = np.arange(6.0).reshape(3, 2)
    data = Lists(
        sp.csr_array(X) if sparse else X,
        np.array([1.0, 0, 2]),
        np.array(["a", "b", "a"], dtype=object),
        np.array([7, 8, 9]) if named else None,
        ("u", "v") if named else None,
    )
    path = tmp_path / "data.npz"
    numpy_file.write(data, path)
    again = numpy_file.read(path)
    assert sp.issparse(again.X) == sparse
    assert_same(again, data)
    assert again.feature_names == data.feature_names


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": np.eye(2), "y": np.ones(2)}, "qid: no such array among X, y"),
        ({"y": np.ones(2), "qid": np.ones(2)}, "X: no such array among y, qid"),
        ({"X": np.eye(2), "y": np.ones(3), "qid": np.ones(2)}, "y: expected 2 values"),
        ({"X": np.ones(2), "y": np.ones(2), "qid": np.ones(2)}, "X: expected a matrix of numbers"),
        ({"X": np.eye(1), "y": np.array(["a"]), "qid": np.ones(1)}, "y: expected numbers"),
        ({"X": np.array([[None]]), "y": np.ones(1), "qid": np.ones(1)}, "not a readable NumPy"),
    ],
)
def test_bad_archives_are_named(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=rf"bad\.npz.*{expected}"):
        numpy_file.read(tmp_path / "bad.npz")


@pytest.mark.parametrize("text", [b"", b"not an archive", b"PK\x03\x04broken"])
def test_damaged_archives_are_named(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "bad.npz").write_bytes(text)
    with pytest.raises(DataError, match=r"bad\.npz: not a readable NumPy archive"):
        numpy_file.read(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": np.array([[np.inf]])}, "X: expected finite numbers, found another in row 1"),
        ({"X": np.array([[1j]])}, "X: expected numbers, found complex128"),
        ({"y": np.array([np.nan])}, "y: expected finite numbers"),
        ({"qid": np.array([1j])}, "qid: expected text or numbers"),
        ({"qid": np.array([b"\xff"])}, "qid: expected UTF-8 text"),
        ({"qid": np.array([0xD800], np.uint32).view("U1")}, "qid: expected text, found"),
        ({"docid": np.array([0x7FFFFFFF], np.uint32).view("U1")}, "docid: expected text, found"),
        ({"feature_names": np.array("x")}, "feature_names: expected a list of names"),
    ],
)
def test_values_are_checked(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    whole = {"X": np.eye(1), "y": np.ones(1), "qid": np.array(["a"])}
    np.savez(tmp_path / "bad.npz", **(whole | arrays))
    with pytest.raises(DataError, match=rf"bad\.npz, {expected}"):
        numpy_file.read(tmp_path / "bad.npz")


@pytest.mark.parametrize("order", ["<", ">"])
def test_either_byte_order_is_read(tmp_path: Path, order: str) -> None:
    rows = sp.csr_array(np.eye(2))
    arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    arrays |= {"shape": np.array(rows.shape), "y": np.ones(2), "qid": np.array(["a", "b"])}
    turned = {name: array.astype(array.dtype.newbyteorder(order)) for name, array in arrays.items()}
    np.savez(tmp_path / "data.npz", **turned)
    data = numpy_file.read(tmp_path / "data.npz")
    np.testing.assert_array_equal(data.X.toarray(), np.eye(2))
    assert all(part.dtype.isnative for part in (data.X.data, data.X.indices, data.y, data.qid))


SPARSE = {
    "data": np.array([1.0, 2.0, 3.0]),
    "indices": np.array([1, 0, 1]),
    "indptr": np.array([0, 1, 3]),
    "shape": np.array([2, 2]),
    "y": np.ones(2),
    "qid": np.array(["a", "b"]),
}


@pytest.mark.parametrize("values", "?bBhiIlLefdg")
@pytest.mark.parametrize("index", "bBhHiIlL")
def test_sparse_archives_of_every_type(tmp_path: Path, values: str, index: str) -> None:
    parts = {name: SPARSE[name].astype(index) for name in ("indices", "indptr")}
    np.savez(tmp_path / "a.npz", **{**SPARSE, **parts, "data": SPARSE["data"].astype(values)})
    wanted = np.array([[0.0, 1.0], [2.0, 3.0]]).astype(values).astype(float)
    np.testing.assert_array_equal(numpy_file.read(tmp_path / "a.npz").X.toarray(), wanted)


@pytest.mark.parametrize("indptr", [[1, 1, 3], [0, 1, 2], [1, 2, 4], [0, 3, 2], [0, 1, 2**40], [0]])
def test_rows_that_leave_out_entries_are_refused(tmp_path: Path, indptr: list[int]) -> None:
    np.savez(tmp_path / "bad.npz", **{**SPARSE, "indptr": np.array(indptr)})
    with pytest.raises(DataError, match=r"bad\.npz, X: expected (an indptr|the parts)"):
        numpy_file.read(tmp_path / "bad.npz")


def test_numbers_that_are_too_large(tmp_path: Path) -> None:
    data = SPARSE["data"].astype(np.longdouble) * (np.finfo(np.longdouble).max / 4)
    np.savez(tmp_path / "bad.npz", **{**SPARSE, "data": data})
    with pytest.raises(DataError, match=r"bad\.npz, data: expected finite numbers"):
        numpy_file.read(tmp_path / "bad.npz")


def test_an_archive_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Lists(np.zeros((100, 100)), np.zeros(100), np.zeros(100))
    numpy_file.write(data, tmp_path / "big.npz")
    monkeypatch.setenv("DIDYMA_UNPACK_LIMIT", "1000")
    with pytest.raises(DataError, match=r"big\.npz: unpacks to more than 1000 bytes"):
        numpy_file.read(tmp_path / "big.npz")
