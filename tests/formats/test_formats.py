from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma import formats
from didyma.data import RankingData


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
