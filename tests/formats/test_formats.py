from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from didyma import formats
from didyma.data import RankingData
from didyma.errors import DataError
from didyma.estimators.svm import SVMRanker


@pytest.mark.parametrize(
    "name",
    ["a", "a.txt", "a.letor.gz", "a.svm", "a.train", "a.csv", "a.TSV.gz", "a.parquet", "a.npz"],
)
def test_the_name_tells_the_format(tmp_path: Path, name: str) -> None:
    data = RankingData(
        np.array([[0.1, 2.0], [0.0, 1e-3]]), np.array([1.0, 0.0]), np.array(["q", "q"])
    )
    formats.write(data, tmp_path / name)
    again = formats.read(tmp_path / name)
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    assert again.qid.tolist() == ["q", "q"]


def test_options_reach_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 1:1\n")
    assert formats.read(tmp_path / "a.txt", group=[1], n_features=3, sparse=True).X.shape == (1, 3)
    (tmp_path / "a.csv").write_text("grade,query,x\n1,a,2\n")
    assert formats.read(tmp_path / "a.csv", label="grade", qid="query").X.tolist() == [[2]]


@given(
    st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=1, max_size=4),
    st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=1, max_size=4),
    st.booleans(),
)
def test_the_same_index_is_the_same_column(
    tmp_path_factory: pytest.TempPathFactory,
    train: list[set[int]],
    test: list[set[int]],
    sparse: bool,
) -> None:
    folder = tmp_path_factory.mktemp("like")
    for name, rows in (("train", train), ("test", test)):
        lines = (" ".join(f"{k}:{k + 1}" for k in sorted(row)) for row in rows)
        (folder / name).write_text("".join(f"1 qid:a {line}\n" for line in lines))
    known = formats.read(folder / "train")
    least, greatest = (0 if known.zero_based else 1), known.X.shape[1] - (known.zero_based is True)
    if {k for row in test for k in row} <= set(range(least, greatest + 1)):
        data = formats.read(folder / "test", like=known, sparse=sparse)
        X = data.X.toarray() if sparse else data.X
        for row, listed in zip(X, test):
            assert {int(k) + least for k in np.flatnonzero(row)} == listed
            assert {int(value) - 1 for value in row[row != 0]} == listed
        assert data.features == known.features
    else:
        with pytest.raises(DataError, match=r"test, line [0-9]+, feature"):
            formats.read(folder / "test", like=known)


@pytest.mark.parametrize("zero_based", [False, True, None])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("name", ["a.txt", "a.npz"])
def test_where_indices_begin_is_kept(
    tmp_path: Path, zero_based: bool | None, sparse: bool, width: int, name: str
) -> None:
    X = np.zeros((2, width))
    data = RankingData(
        sp.csr_array(X) if sparse else X, np.ones(2), np.array(["a", "a"]), zero_based=zero_based
    )
    formats.write(data, tmp_path / name)
    again = formats.read(tmp_path / name)
    assert again.X.shape == (2, width)
    assert again.zero_based == (bool(zero_based) if name == "a.txt" else zero_based)


def test_names_of_columns_without_names_follow_their_indices(tmp_path: Path) -> None:
    data = RankingData(np.eye(2), np.ones(2), np.array(["a", "a"]), zero_based=True)
    formats.write(data, tmp_path / "a.csv")
    assert formats.read(tmp_path / "a.csv").feature_names == ("f0", "f1")


def test_like_a_model(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("1 qid:a 0:1 1:2\n0 qid:a 0:3 1:1\n")
    (tmp_path / "test.txt").write_text("1 qid:a 1:2\n")
    ranker = SVMRanker().fit(formats.read(tmp_path / "train.txt"))
    assert formats.read(tmp_path / "test.txt", like=ranker).X.tolist() == [[0, 2]]
    with pytest.raises(DataError, match="like: expected judged results or a fitted model"):
        formats.read(tmp_path / "test.txt", like=SVMRanker())


def test_like_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,qid,x,y\n1,a,2,3\n")
    (tmp_path / "b.csv").write_text("z,y,qid,x,label\n9,3,a,2,1\n")
    (tmp_path / "c.csv").write_text("label,qid,x\n1,a,2\n")
    known = formats.read(tmp_path / "a.csv")
    assert formats.read(tmp_path / "b.csv", like=known).X.tolist() == [[2, 3]]
    with pytest.raises(DataError, match=r"c\.csv: expected also the features y"):
        formats.read(tmp_path / "c.csv", like=known)
