"""`didyma eval` and `didyma compare`: models and runs, alone and side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from didyma import model
from didyma.data import formats
from didyma.data.trec import read_qrels, read_run
from didyma.metrics import evaluate, evaluate_run
from didyma.ranking.classification import baseline
from tests.cli.conftest import MAP, ROC, Run


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


def test_labels_without_a_zero_are_told_wherever_a_model_is_judged(
    run: Run, tmp_path: Path
) -> None:
    rows = [f"{y} qid:{q} 1:{y + 0.1 * q}" for q in range(4) for y in (1, 5, 3, 2, 4)]
    (tmp_path / "grades.txt").write_text("\n".join(rows))
    data, fitted = tmp_path / "grades.txt", tmp_path / "m.safetensors"
    told = "labels are 1 to 5, so that all rows are relevant to AP"
    assert told in run("fit", data, "--dev", data, "--model-type", "ridge", "-o", fitted).stderr
    assert (
        f"{told}; give a level, as AP(rel=4)"
        in run("eval", fitted, data, "--measures", "AP nDCG").stderr
    )
    lists = formats.read(data)
    with pytest.warns(UserWarning, match=told):
        assert model.load(fitted).score(lists) == 1.0


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
    found = run("eval", folder / MAP, folder / "test.letor", "--measures", "XY", code=2)
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


def test_runs_that_lack_queries_are_called_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("a 0 d1 1\nb 0 d1 1\n")
    (tmp_path / "one.run").write_text("a Q0 d1 1 3.0 t\n")
    (tmp_path / "two.run").write_text("a Q0 d1 1 3.0 t\nb Q0 d1 1 3.0 t\n")
    runs = tmp_path / "one.run", tmp_path / "two.run"
    found = run("compare", "--qrels", tmp_path / "qrels", *runs)
    assert "one.run: lacks 1 judged queries, which count 0: b" in found.stderr
    assert "two.run" not in found.stderr
