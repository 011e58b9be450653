"""`didyma predict` and `didyma rank`: scores and runs of saved models."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from didyma import model
from didyma.data import formats
from didyma.data.trec import read_run
from didyma.ranking.binning import ScoreBinner
from tests.cli.conftest import MAP, NAMED, Run, make


def test_predict_gives_the_scores_of_the_model(run: Run, folder: Path, tmp_path: Path) -> None:
    shown = run("predict", folder / MAP, folder / "test.letor").stdout
    scores = [float(line) for line in shown.splitlines()]
    X = formats.read(folder / "test.letor").X
    np.testing.assert_array_equal(scores, model.load(folder / MAP).predict(X))
    output = tmp_path / "scores.txt.gz"
    assert run("predict", folder / MAP, folder / "test.letor", "-o", output).stdout == ""
    assert gzip.decompress(output.read_bytes()).decode() == shown


def test_columns_of_a_table_are_matched_by_name(run: Run, folder: Path, tmp_path: Path) -> None:
    expected = run("predict", folder / NAMED, folder / "test.csv").stdout
    data = make(2, names=True)
    lines = ["extra,clicks,qid,age,bm25,length"]  # in another order, with text, without labels
    lines += [f"text,{x[3]},{q},{x[2]},{x[0]},{x[1]}" for x, q in zip(data.X, data.qid)]
    path = tmp_path / "turned.csv"
    path.write_text("\n".join(lines) + "\n")
    assert run("predict", folder / NAMED, path).stdout == expected
    assert "label: no such column" in run("eval", folder / NAMED, path, code=1).stderr
    archive = tmp_path / "turned.npz"
    names = ["age", "clicks", "length", "bm25"]
    order = [data.feature_names.index(name) for name in names]  # type: ignore[union-attr]
    np.savez(archive, X=data.X[:, order], y=data.y, qid=data.qid, feature_names=names)
    assert run("predict", folder / NAMED, archive).stdout == expected


def test_an_unnamed_model_takes_unlabelled_tables_by_position(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    data = make(2)
    path = tmp_path / "plain.parquet"
    formats.write(data, path)
    labelled = run("predict", folder / MAP, path).stdout
    assert labelled == run("predict", folder / MAP, folder / "test.letor").stdout
    lines = ["qid,a,b,c,d"] + [f"{q},{','.join(map(str, x))}" for x, q in zip(data.X, data.qid)]
    (tmp_path / "plain.csv").write_text("\n".join(lines) + "\n")
    assert run("predict", folder / MAP, tmp_path / "plain.csv").stdout == labelled


def test_features_that_are_missing_or_too_many(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "less.csv"
    path.write_text("label,qid,clicks,bm25\n1,a,2,3\n")
    found = run("predict", folder / NAMED, path, code=1)
    assert "less.csv: expected also the features length, age" in found.stderr
    formats.write(formats.read(path), tmp_path / "less.parquet")
    found = run("predict", folder / NAMED, tmp_path / "less.parquet", code=1)
    assert "length, age" in found.stderr
    found = run("predict", folder / MAP, path, code=1)
    assert "less.csv: expected 4 features, found 2" in found.stderr
    wide = tmp_path / "wide.letor"
    wide.write_text("1 qid:a 5:1\n")
    found = run("predict", folder / MAP, wide, code=1)
    assert "wide.letor, line 1, feature 5: expected an index up to 4" in found.stderr


@pytest.mark.parametrize("line", ["1 qid:a 1:1 2:2", "1 qid:a 2:2\n0 qid:a\n0 qid:b\n0 qid:b"])
def test_a_letor_file_may_lack_the_last_features(
    run: Run, folder: Path, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "narrow.letor"
    path.write_text(line + "\n")
    coef = model.load(folder / MAP).coef_
    X = formats.read(path).X
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    found = run("predict", folder / MAP, path).stdout.split()
    assert [float(score) for score in found] == pytest.approx(dense @ coef[: dense.shape[1]])


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (None, "no such file"),
        (b"", "damaged, or not a model file"),
        (b"1 qid:a 1:2\n", "damaged, or not a model file"),
        ("cut", "damaged"),
        ("flip", "checksum"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "eval", "inspect"])
def test_damaged_models(
    run: Run, folder: Path, tmp_path: Path, contents: bytes | str | None, message: str, command: str
) -> None:
    path = tmp_path / "bad.safetensors"
    whole = (folder / MAP).read_bytes()
    if isinstance(contents, str):
        contents = whole[:-5] if contents == "cut" else whole[:-1] + bytes([whole[-1] ^ 1])
    if contents is not None:
        path.write_bytes(contents)
    rest = [] if command == "inspect" else [folder / "test.letor"]
    assert message in run(command, path, *rest, code=1).stderr


def test_a_model_is_known_by_its_contents(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes((folder / MAP).read_bytes())
    assert "SVMRanker" in run("inspect", path).stdout
    path.write_bytes(path.read_bytes()[:-5])
    assert "not a model file" not in run("eval", path, folder / "test.letor", code=1).stdout


def test_a_file_that_does_not_rank(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "binner.safetensors"
    model.save(ScoreBinner().fit(np.eye(4)), path)
    found = run("predict", path, folder / "test.letor", code=1)
    assert "holds a ScoreBinner, which does not rank" in found.stderr
    assert "ScoreBinner" in run("inspect", path).stdout


def test_rank_writes_a_run(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "run.txt.gz"
    run("rank", folder / MAP, folder / "test.letor", "-o", output, "--tag", "mine", "--depth", "3")
    found, data = read_run(output), formats.read(folder / "test.letor")
    assert (found.tag, len(found)) == ("mine", 36)
    scores = model.load(folder / MAP).predict(data.X)
    for query in data.groups.names:
        own = np.flatnonzero(data.qid == query)
        best = own[np.argsort(-scores[own])[:3]]
        assert found.docid[found.qid == query].tolist() == data.docid[best].tolist()  # type: ignore[index]


def test_rows_without_a_document_id_get_one(run: Run, folder: Path, tmp_path: Path) -> None:
    path, output = tmp_path / "data.letor", tmp_path / "run.txt"
    path.write_text("0 qid:a 4:1\n1 qid:b 4:2\n0 qid:a 4:3 # given\n")
    run("rank", folder / MAP, path, "-o", output)
    assert sorted(read_run(output).docid.tolist()) == ["a-row1", "b-row2", "given"]
    path.write_text("0 qid:a 4:1 # same\n1 qid:a 4:2 # same\n")
    found = run("rank", folder / MAP, path, "-o", output, code=1)
    assert "docid: expected each document once a query, found 'same' again" in found.stderr
    assert "row 2" in found.stderr
    path.write_text("0 qid:a 4:1 # with space\n")
    assert "without white space" in run("rank", folder / MAP, path, "-o", output, code=1).stderr
    assert "would be overwritten" in run("rank", folder / MAP, path, "-o", path, code=1).stderr
    assert len(read_run(output)) == 3  # errors changed nothing


@pytest.mark.parametrize("scale", ["none", "query-minmax", "max-abs"])
def test_a_model_remembers_where_indices_begin(run: Run, tmp_path: Path, scale: str) -> None:
    train, test, shifted = (tmp_path / name for name in ("train", "test", "shifted"))
    train.write_text("1 qid:a 0:1 1:2\n0 qid:a 0:3 1:1\n1 qid:b 0:0 1:3\n0 qid:b 0:1 1:0\n")
    test.write_text("1 qid:a 1:2\n0 qid:a 1:1\n")  # lacks index 0
    model_file = tmp_path / "m.safetensors"
    run("fit", train, "--dev", test, "--scale", scale, "-o", model_file)
    found = run("predict", model_file, test).stdout
    test.write_text("1 qid:a 0:0 1:2\n0 qid:a 0:0 1:1\n")
    assert run("predict", model_file, test).stdout == found
    train.write_text("1 qid:a 1:2\n0 qid:a 1:1\n")
    run("fit", train, "--scale", scale, "-o", model_file)
    shifted.write_text("1 qid:a 1:2\n1 qid:a 0:2\n")
    stderr = run("predict", model_file, shifted, code=1).stderr
    assert "shifted, line 2, feature: expected index:value with an index from 1" in stderr
