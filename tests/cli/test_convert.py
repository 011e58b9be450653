"""`didyma convert`: from one format to another, and what that loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma.data import formats
from tests.cli.conftest import Run


@pytest.mark.parametrize("name", ["b.csv", "b.tsv.gz", "b.parquet", "b.npz", "b.letor.gz", "b.txt"])
def test_convert_there_and_back(run: Run, folder: Path, tmp_path: Path, name: str) -> None:
    run("convert", folder / "train.letor", tmp_path / name)
    run("convert", tmp_path / name, tmp_path / "back.letor")
    original, back = formats.read(folder / "train.letor"), formats.read(tmp_path / "back.letor")
    np.testing.assert_array_equal(original.X, back.X)
    for column in ("y", "qid", "docid"):
        np.testing.assert_array_equal(getattr(original, column), getattr(back, column))


def test_convert_says_what_is_lost(run: Run, folder: Path, tmp_path: Path) -> None:
    found = run("convert", folder / "train.csv", tmp_path / "train.letor")
    assert "warning: a LETOR file has no place for the names of features" in found.stderr
    assert "LETOR, 96 rows, 12 queries" in found.stderr


def test_convert_refuses(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,qid,f\n1,a,2\n0,a,two\n")
    found = run("convert", path, tmp_path / "b.letor", code=1)
    assert "a.csv, line 3, f: expected a finite number, found 'two'" in found.stderr
    assert "would be overwritten" in run("convert", path, path, code=1).stderr
    assert "there is no folder" in run("convert", path, tmp_path / "x" / "b.csv", code=1).stderr
    assert "ends in .npz" in run("convert", path, tmp_path / "b.npz.gz", code=1).stderr
    assert "No such file" in run("convert", tmp_path / "none", tmp_path / "b.csv", code=1).stderr
    damaged = tmp_path / "a.parquet"
    damaged.write_bytes(b"PAR1")
    found = run("convert", damaged, tmp_path / "b.csv", code=1)
    assert "not a readable Parquet file" in found.stderr
    found = run("convert", folder / "map.didyma.safetensors", tmp_path / "b.csv", code=1)
    assert "found a model" in found.stderr
    assert sorted(tmp_path.iterdir()) == [path, damaged]
