"""Commands that use a saved model: predict, rank, eval, compare, inspect."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from didyma import model
from didyma.data import formats
from didyma.data.trec import read_qrels, read_run
from didyma.metrics import evaluate, evaluate_run
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import baseline
from tests.cli.conftest import Run, make

MAP, NAMED, ROC = (f"{name}.didyma.safetensors" for name in ("map", "named", "roc"))


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


def test_eval_of_a_model(run: Run, folder: Path) -> None:
    arguments = ("eval", folder / MAP, folder / "test.letor", "--measures", "map, P@1")
    data = formats.read(folder / "test.letor")
    scores = model.load(folder / MAP).predict(data.X)
    expected = evaluate(scores, data.y, data.groups, "AP P@1", docid=data.docid)
    found = json.loads(run(*arguments, "--json").stdout)
    assert found == {"n_queries": 12, "mean": expected.to_dict()["mean"]}
    found = json.loads(run(*arguments, "--json", "--per-query").stdout)
    assert found["queries"] == expected.to_dict()["queries"]
    assert run(*arguments).stdout.split()[::2] == ["AP", "P@1", "queries"]
    lines = run(*arguments, "--per-query").stdout.splitlines()
    assert lines[0].split() == ["query", "AP", "P@1"]
    assert [line.split()[0] for line in lines[1:]] == [*data.groups.names, "all"]


def test_eval_of_a_run(run: Run, folder: Path) -> None:
    arguments = ("eval", folder / "map.run", folder / "qrels.txt", "--measures", "AP RR")
    found = json.loads(run(*arguments, "--json").stdout)
    expected = evaluate_run(read_run(folder / "map.run"), read_qrels(folder / "qrels.txt"), "AP RR")
    assert found["mean"] == expected.to_dict()["mean"]
    of_model = run("eval", folder / MAP, folder / "test.letor", "--measures", "AP RR", "--json")
    assert found == json.loads(of_model.stdout)


def test_pipelines_from_the_library_are_told_the_queries(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    from sklearn import config_context

    data = formats.read(folder / "train.letor")
    path = tmp_path / "acc4.safetensors"
    with config_context(enable_metadata_routing=True):
        pipeline = baseline("acc4").fit(data.X, data.y, qid=data.qid)
        expected = pipeline.score(data.X, data.y, qid=data.qid)
    model.save(pipeline, path)
    found = json.loads(run("eval", path, folder / "train.letor", "--json").stdout)
    assert found["mean"]["AP"] == pytest.approx(expected, abs=0.05)  # which breaks ties otherwise
    assert "1>" in run("inspect", path).stdout


@pytest.mark.parametrize(
    ("run_text", "qrels_text", "message"),
    [
        ("", "q 0 d 1\n", "expected lines 'qid Q0 docid rank score tag'"),
        ("q Q0 d 1 x t\n", "q 0 d 1\n", "r.txt, line 1, score: expected a finite number"),
        ("q Q0 d 1 2 t\n", "q 0 d 1\nq 0 e\n", "q.txt, line 2: expected 4 fields"),
        ("q Q0 d 1 2 t\n", "q 0 d one\n", "q.txt, line 1, relevance: expected"),
        ("q Q0 d 1 2 t\n", "other 0 d 1\n", "no query of the run is judged"),
    ],
)
def test_bad_runs_and_judgements(
    run: Run, tmp_path: Path, run_text: str, qrels_text: str, message: str
) -> None:
    (tmp_path / "r.txt").write_text(run_text)
    (tmp_path / "q.txt").write_text(qrels_text)
    found = run("eval", tmp_path / "r.txt", tmp_path / "q.txt", code=1)
    assert message in found.stderr


def test_eval_of_what_is_not_there(run: Run, folder: Path) -> None:
    found = run("eval", folder / "none.run", folder / "qrels.txt", code=1)
    assert "none.run: No such file" in found.stderr
    found = run("eval", folder / "map.run", folder / "none.txt", code=1)
    assert "none.txt: No such file" in found.stderr
    found = run("eval", folder / MAP, folder / "test.letor", "--measures", "XY", code=1)
    assert "unknown measure 'XY'" in found.stderr


def test_compare_runs(run: Run, folder: Path) -> None:
    runs = ("--qrels", folder / "qrels.txt", folder / "map.run", folder / "roc.run")
    shown = run("compare", *runs).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["system", "map", "roc", "p:"]
    found = json.loads(run("compare", *runs, "--json", "--baseline", "roc", "--holm").stdout)
    assert (found["baseline"], found["corrected"], found["measure"]) == ("roc", True, "AP")
    assert [system["p_value"] is None for system in found["systems"]] == [False, True]
    latex = run("compare", *runs, "--latex", "--measures", "RR AP").stdout
    assert latex.count(r"\begin{tabular}{lrrrrr}") == latex.count(r"\end{tabular}") == 1
    assert r"system & RR & AP & $\Delta$ RR & W/L/T & p \\" in latex
    by_path = run("compare", *runs, "--baseline", folder / "roc.run", "--test", "t-test")
    assert "t-test of AP against roc" in by_path.stdout


def test_compare_models_agrees_with_runs(run: Run, folder: Path) -> None:
    models = ("compare", "--data", folder / "test.letor", folder / MAP, folder / ROC, "--json")
    runs = ("compare", "--qrels", folder / "qrels.txt", folder / "map.run", folder / "roc.run")
    assert json.loads(run(*models).stdout) == json.loads(run(*runs, "--json").stdout)


def test_systems_of_the_same_name_are_called_by_their_paths(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "map.txt"
    third = tmp_path / "input.map.run.txt"
    third.write_bytes((folder / "map.run").read_bytes())
    other.write_bytes((folder / "map.run").read_bytes())
    runs = ("compare", "--qrels", folder / "qrels.txt", folder / "map.run", other, third)
    names = [system["name"] for system in json.loads(run(*runs, "--json").stdout)["systems"]]
    assert names == [str(folder / "map.run"), str(other), "input.map"]
    assert "given 2 times" in run(*runs, other, code=1).stderr
    assert "expected one of" in run(*runs, "--baseline", "x", code=1).stderr


def test_wrong_comparisons(run: Run, folder: Path) -> None:
    systems = (folder / "map.run", folder / "roc.run")
    qrels = ("--qrels", folder / "qrels.txt")
    assert "give one of them" in run("compare", *systems, code=2).stderr
    both = ("--data", folder / "test.letor", *qrels)
    assert "give one of them" in run("compare", *systems, *both, code=2).stderr
    assert "give two or more" in run("compare", systems[0], *qrels, code=2).stderr
    assert (
        "give one of them" in run("compare", *systems, *qrels, "--json", "--latex", code=2).stderr
    )
    found = run("compare", *systems, "--data", folder / "test.letor", code=1)
    assert "map.run: damaged, or not a model file" in found.stderr
    found = run("compare", folder / MAP, folder / ROC, *qrels, code=1)
    assert "error: " in found.stderr


def test_all_systems_are_looked_at_before_any_is_evaluated(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(*_: object) -> None:
        raise AssertionError("work was done for the first system")

    monkeypatch.setattr("didyma.cli.evaluate.evaluate_model", evaluate)
    monkeypatch.setattr("didyma.metrics.RunEvaluator.__call__", evaluate)
    qrels, data = ("--qrels", folder / "qrels.txt"), ("--data", folder / "test.letor")
    heard = run("compare", folder / MAP, folder / "map.run", *data, code=1).stderr
    assert "map.run: damaged, or not a model file" in heard
    heard = run("compare", folder / "map.run", folder / MAP, *qrels, code=1).stderr
    assert MAP in heard
    systems = folder / "map.run", folder / "roc.run"
    assert "expected one of" in run("compare", *systems, *qrels, "--baseline", "x", code=1).stderr


def test_inspect_a_model(run: Run, folder: Path) -> None:
    shown = run("inspect", folder / NAMED, "--top", "2").stdout
    for text in ("SVMRanker", "loss", "ap", "converged", "train.csv", "largest weights"):
        assert text in shown
    first, second = shown.splitlines()[-2:]
    assert (first.split()[0], second.split()[0]) == ("bm25", "length")
    assert float(first.split()[1]) > 0 > float(second.split()[1])
    found = json.loads(run("inspect", folder / NAMED, "--json").stdout)
    coef = model.load(folder / NAMED).coef_
    assert [weight["weight"] for weight in found["weights"]] == sorted(coef, key=abs, reverse=True)
    assert found["feature_names"] == ["bm25", "length", "age", "clicks"]
    assert found["summary"]["train"]["rows"] == 96


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
