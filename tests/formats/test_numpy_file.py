from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data import RankingData
from didyma.errors import DataError
from didyma.formats import numpy_file


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_what_is_written_is_read(tmp_path: Path, sparse: bool, named: bool) -> None:
    X = np.arange(6.0).reshape(3, 2)
    data = RankingData(
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
    np.testing.assert_array_equal(again.X.toarray() if sparse else again.X, X)
    assert again.y.tolist() == [1, 0, 2]
    assert again.qid.tolist() == ["a", "b", "a"]
    assert again.feature_names == data.feature_names
    assert (None if again.docid is None else again.docid.tolist()) == ([7, 8, 9] if named else None)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"X": np.eye(2), "y": np.ones(2)}, "qid: no such array among X, y"),
        ({"y": np.ones(2), "qid": np.ones(2)}, "X: no such array among y, qid"),
        ({"X": np.eye(2), "y": np.ones(3), "qid": np.ones(2)}, "y: expected 2 values"),
        ({"X": np.ones(2), "y": np.ones(2), "qid": np.ones(2)}, "not enough values"),
        ({"X": np.eye(1), "y": np.array(["a"]), "qid": np.ones(1)}, "could not convert"),
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
