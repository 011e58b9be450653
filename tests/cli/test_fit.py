from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from didyma import model
from didyma.cli import progress
from didyma.data import formats
from didyma.metrics import evaluate
from didyma.model import Model
from didyma.ranking.classification import PolynomialRanker
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.ranker import Ranker
from didyma.ranking.scaling import QueryMinMaxScaler
from didyma.ranking.svm import SVMRanker
from tests.cli.conftest import Run, make


def test_fit_saves_what_the_library_would_learn(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    found = run("fit", folder / "train.letor", "--C", "10", "--loss", "rr", "-o", output)
    data = formats.read(folder / "train.letor")
    expected = SVMRanker("rr", 10.0).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(model.load(output).coef_, expected.coef_)
    for text in ("SVMRanker, loss rr, C 10", "objective", "relative gap", "passes", str(output)):
        assert text in found.stdout
    assert "96 rows, 12 queries, 4 features" in found.stderr
    assert "gap" in found.stderr


def test_the_c_that_is_best_on_dev_is_kept(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    dev = formats.read(folder / "dev.letor")
    found = run(
        *("fit", folder / "train.letor", "--dev", folder / "dev.letor"),
        *("--model-type", "svm", "--C", "100,0.001,1", "--measure", "ndcg@5"),
        *("-o", output, "--json"),
    )
    document = json.loads(found.stdout)
    assert [candidate["C"] for candidate in document["candidates"]] == [0.001, 1.0, 100.0]
    values = [candidate["dev"] for candidate in document["candidates"]]
    best = document["candidates"][int(np.argmax(values))]
    assert (document["C"], document["dev"]["value"]) == (best["C"], best["dev"])
    assert document["dev"]["measure"] == "nDCG@5"
    loaded = model.load(output)
    assert best["C"] == loaded.C
    scores = loaded.predict(dev.X)
    value = evaluate(scores, dev.y, dev.groups, "nDCG@5", docid=dev.docid).mean("nDCG@5")
    assert value == pytest.approx(best["dev"])
    assert model.describe(output)["summary"]["candidates"] == document["candidates"]


def test_the_ramp_of_a_cut_off(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    call = ("fit", folder / "train.letor", "--C", "10", "--loss", "precision@2", "-o", output)
    found = run(*call)
    data = formats.read(folder / "train.letor")
    expected = SVMRanker("precision@2", 10.0).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(model.load(output).coef_, expected.coef_)
    assert "rounds from the optimum of ap" in found.stdout
    summary = json.loads(run(*call, "--bound", "hinge", "--json").stdout)
    assert summary["bound"] == "hinge"
    assert "rounds" not in summary


def test_several_values_are_reported_with_the_best_marked(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    found = run(
        *("fit", folder / "train.letor", "--dev", folder / "dev.letor"),
        *("--model-type", "svm", "--C", "0.1,1", "-o", tmp_path / "m.safetensors"),
    )
    head, *rows = found.stdout.splitlines()[:3]
    assert head.split() == ["C", "dev", "AP", "objective", "iterations"]
    assert [row.split()[0] for row in rows] == ["0.1", "1"]
    assert sum(" * " in row for row in rows) == 1
    assert found.stderr.count("dev AP") >= 2
    assert "model         SVMRanker, loss ap, C " in found.stdout


def test_classification(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    run(
        *("fit", folder / "train.letor", "--dev", folder / "dev.letor", "-o", output),
        *("--model-type", "classification", "--C", "1,10"),
    )
    assert model.describe(output)["class"] == "ClassificationRanker"


def test_ridge_takes_part_in_the_choice_of_c(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.safetensors"
    found = run(
        *("fit", folder / "train.letor", "--dev", folder / "dev.letor", "--C", "1,100"),
        *("--model-type", "ridge", "-o", output, "--json"),
    )
    document = json.loads(found.stdout)
    assert document["class"] == "RidgeRanker"
    assert document["dev"]["value"] == max(own["dev"] for own in document["candidates"])
    assert document["C"] == model.load(output).C


def test_ridge_contends_where_labels_are_grades(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("train", "dev"):
        rows = rng.normal(size=(120, 3))
        grades = np.clip(np.round(rows @ [1.0, 0.5, 0.0] + rng.normal(size=120) / 4), 0, 4)
        lines = (
            f"{grade:g} qid:{row // 10} 1:{a:.4f} 2:{b:.4f} 3:{c:.4f}\n"
            for row, (grade, (a, b, c)) in enumerate(zip(grades, rows))
        )
        (tmp_path / f"{name}.letor").write_text("".join(lines))
    output = tmp_path / "m.safetensors"
    files = (tmp_path / "train.letor", "--dev", tmp_path / "dev.letor", "-o", output)
    call = ("fit", *files, "--loss", "ndcg", "--C", "1,10")
    document = json.loads(run(*call, "--json").stdout)
    candidates = document["candidates"]
    assert [c["class"] for c in candidates] == 2 * ["SVMRanker"] + 5 * ["RidgeRanker"]
    best = max(candidates, key=lambda candidate: candidate["dev"])
    assert (document["class"], document["C"]) == (best["class"], best["C"])
    assert type(model.load(output)).__name__ == best["class"]
    assert "RidgeRanker 1000" in run(*call).stdout
    asked = json.loads(run(*call, "--model-type", "svm", "--json").stdout)
    assert {c["class"] for c in asked["candidates"]} == {"SVMRanker"}


def test_a_model_is_not_written_to_stdout(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    heard = run("fit", folder / "train.letor", "-o", "-", code=1).stderr
    assert heard == "error: -: expected a name, as this is not written to stdout\n"
    assert not list(tmp_path.iterdir())


def test_dev_files_that_can_choose_nothing_are_refused(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    dev, output = tmp_path / "dev0.letor", tmp_path / "m"
    rows = (folder / "dev.letor").read_text().splitlines()
    dev.write_text("".join(f"0 {row.split(' ', 1)[1]}\n" for row in rows))
    files = ("fit", folder / "train.letor", "--dev", dev, "-o", output)
    told = "y: expected a query with labels of 1 or more and others, found none"
    for choice in (
        ("--C", "1,10,100"),
        ("--patience", "2"),
        ("--model-type", "latent-perceptron"),
    ):
        assert f"error: {dev}, {told}" in run(*files, *choice, code=1).stderr
    assert not output.exists()
    assert f"warning: {told}" in run(*files, "--C", "1").stderr
    arguments = ("fit", folder / "train.letor", "--dev", folder / "dev.letor", "--dev", dev)
    assert f"{dev} AP  .0000" in " ".join(run(*arguments, "-o", output).stdout.split(" "))


def test_other_dev_files_are_judged_and_choose_nothing(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "model.safetensors"
    dev, other = folder / "dev.letor", folder / "train.letor"
    arguments = ("fit", other, "--dev", dev, "--C", "0.1,10", "--patience", "2", "-o", output)
    alone = json.loads(run(*arguments, "--json").stdout)
    both = json.loads(run(*arguments, "--dev", other, "--json").stdout)
    (judged,) = both.pop("also")
    for key in ("C", "objective", "dev", "n_iter", "train"):
        assert both[key] == alone[key]
    evaluated = json.loads(run("eval", output, other, "--json").stdout)
    assert judged["value"] == pytest.approx(evaluated["mean"]["AP"])
    assert f"{other} AP" in run(*arguments, "--dev", other).stdout


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("latent-perceptron", ["--epochs", "4"], LatentPerceptronRanker(epochs=4)),
        (
            "latent-perceptron",
            ["--loss", "none", "--epochs", "3", "--seed", "5"],
            LatentPerceptronRanker(None, epochs=3, random_state=5),
        ),
        (
            "latent-svm",
            ["--inference", "greedy", "--positions", "all", "--start", "random"],
            LatentSVMRanker(inference="greedy", positions="all", start="random"),
        ),
        ("latent-svm", ["--loss", "precision@2"], LatentSVMRanker("precision@2")),
        ("polynomial", [], PolynomialRanker()),
    ],
)
@pytest.mark.parametrize("with_dev", [False, True])
def test_other_estimators(
    run: Run,
    folder: Path,
    tmp_path: Path,
    name: str,
    options: list[str],
    expected: Ranker,
    with_dev: bool,
) -> None:
    output = tmp_path / "m.safetensors"
    data, dev = (formats.read(folder / f"{part}.letor") for part in ("train", "dev"))
    held_out = ["--dev", folder / "dev.letor"] if with_dev else []
    found = run(
        *("fit", folder / "train.letor", *held_out, "--model-type", name, *options, "-o", output)
    )
    watched = {"eval_set": (dev.X, dev.y), "eval_qid": dev.qid} if with_dev else {}
    expected = clone(expected).fit(data.X, data.y, qid=data.qid, **watched)
    loaded = model.load(output)
    assert type(loaded) is type(expected)
    np.testing.assert_array_equal(loaded.predict(dev.X), expected.predict(dev.X))
    assert type(expected).__name__ in found.stdout
    assert ("best epoch" in found.stdout) == (name == "latent-perceptron")
    assert "gap" not in found.stdout + found.stderr
    run("eval", output, folder / "dev.letor")


def test_several_values_for_a_latent_ranker(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    arguments = ("fit", folder / "train.letor", "--dev", folder / "dev.letor", "-o", output)
    found = run(*arguments, "--model-type", "latent-perceptron", "--C", "10,0.1", "--json")
    document = json.loads(found.stdout)
    assert [candidate["C"] for candidate in document["candidates"]] == [0.1, 10.0]
    best = max(document["candidates"], key=lambda candidate: candidate["dev"])
    assert (model.load(output).C, document["best_epoch"]) == (best["C"], best["best_epoch"])
    assert "value" in found.stderr


@pytest.mark.parametrize("scale", ["standard", "max-abs", "query-standard", "query-percentile"])
def test_scaled_features(run: Run, folder: Path, tmp_path: Path, scale: str) -> None:
    output = tmp_path / "m.safetensors"
    arguments = ("fit", folder / "train.csv", "--dev", folder / "dev.csv", "--scale", scale)
    document = json.loads(run(*arguments, "-o", output, "--json").stdout)
    evaluated = json.loads(run("eval", output, folder / "dev.csv", "--json").stdout)
    assert evaluated["mean"]["AP"] == pytest.approx(document["dev"]["value"])
    shown = run("inspect", output).stdout
    assert "Scaler > SVMRanker" in shown
    assert "bm25" in shown


def test_sparse_features_are_not_centred(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "wide.letor"
    path.write_text("1 qid:a 1:1 90:2\n0 qid:a 2:1\n")
    output = tmp_path / "m.safetensors"
    found = run("fit", path, "--scale", "standard", "-o", output, code=1)
    assert "max-abs only" in found.stderr
    run("fit", path, "--scale", "max-abs", "-o", output)


def test_patience_stops_early(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("fit", folder / "train.letor", "--dev", folder / "dev.letor", "--tol", "1e-9")
    found = run(*arguments, "--patience", "1", "-o", tmp_path / "m.safetensors", "--json")
    assert json.loads(found.stdout)["status"] == "stopped"


def test_skipped_queries_and_missed_tolerance_are_one_line_each(run: Run, tmp_path: Path) -> None:
    data = make(5)
    y = data.y.copy()
    y[:8] = 0
    path = tmp_path / "train.letor"
    formats.write(type(data)(data.X, y, data.qid), path)
    output = tmp_path / "m.safetensors"
    found = run("fit", path, "--max-iter", "1", "--tol", "1e-9", "-o", output)
    warnings = [line for line in found.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2
    assert any("1 of 12 queries" in line for line in warnings)
    assert any("max_iter=1" in line for line in warnings)
    assert "Warning" not in found.stderr


def test_files_of_a_collection_agree_on_feature_0(run: Run, tmp_path: Path) -> None:
    data = make(5)
    text = [f"{y:g} qid:{q} 0:{x[0]} 1:{x[1]}\n" for x, y, q in zip(data.X, data.y, data.qid)]
    train, test = tmp_path / "train.letor", tmp_path / "test.letor"
    train.write_text("".join(text))
    test.write_text("0 qid:a 1:3\n0 qid:a 1:-5\n")  # has only the second feature
    output = tmp_path / "m.safetensors"
    run("fit", train, "-o", output)
    scores = [float(line) for line in run("predict", output, test).stdout.split()]
    assert scores == pytest.approx(
        [3 * model.load(output).coef_[1], -5 * model.load(output).coef_[1]]
    )
    assert "  0  " in run("inspect", output).stdout


def test_groups_come_from_a_file(run: Run, tmp_path: Path) -> None:
    path, sizes = tmp_path / "train.letor", tmp_path / "sizes.txt"
    path.write_text("1 1:3\n0 1:1\n1 1:5\n0 1:4\n")
    sizes.write_text("2\n2\n")
    output = tmp_path / "m.safetensors"
    found = run("fit", path, "-o", output, code=1)
    assert "no line has a query id" in found.stderr
    run("fit", path, "--group", sizes, "-o", output)
    assert run("predict", output, path, "--group", sizes).stdout.count("\n") == 4
    table = tmp_path / "train.csv"
    table.write_text("label,qid,f\n1,a,2\n0,a,1\n")
    assert "no sizes" in run("fit", table, "--group", sizes, "-o", output, code=1).stderr


def test_tables_with_columns_of_other_names(run: Run, tmp_path: Path) -> None:
    path, output = tmp_path / "train.tsv", tmp_path / "m.safetensors"
    path.write_text("rating\tquery\tpage\tf\n1\ta\tx\t2\n0\ta\ty\t1\n")
    columns = ("--label", "rating", "--qid", "query", "--docid", "page")
    run("fit", path, *columns, "-o", output)
    assert model.describe(output)["feature_names"] == ["f"]
    found = run("fit", path, "-o", output, code=1)
    assert "label: no such column among rating, query, page, f" in found.stderr


def test_ctrl_c_keeps_the_best_model_so_far(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: progress._Lines, state: object, done: bool) -> None:
        if self.C == 10.0:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress, "EVERY", 1)
    monkeypatch.setattr(progress._Lines, "show", interrupt)
    output = tmp_path / "m.safetensors"
    arguments = ("fit", folder / "train.letor", "--dev", folder / "dev.letor", "-o", output)
    found = run(*arguments, "--C", "1,10,100", "--json", code=130)
    assert "the best model so far was kept" in found.stderr
    candidates = json.loads(found.stdout)["candidates"]
    assert [(c["C"], c["status"]) for c in candidates] == [(1, "converged"), (10, "interrupted")]
    assert model.load(output).C in (1, 10)


def test_ctrl_c_before_the_first_iteration_writes_nothing(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from didyma.learning import bcfw

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bcfw, "sweep", interrupt)
    output = tmp_path / "m.safetensors"
    found = run("fit", folder / "train.letor", "-o", output, code=130)
    assert "before there was anything to keep" in found.stderr
    monkeypatch.setattr("didyma.cli.fit.reporting", interrupt)
    found = run("fit", folder / "train.letor", "-o", output, code=130)
    assert found.stderr.endswith("interrupted\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--C", "1,2"], "several values of C need --dev"),
        (["--C", "1,x"], "expected positive numbers"),
        (["--C", "0"], "expected positive numbers"),
        (["--patience", "3"], "needs --dev"),
        (["--solver", "simplex"], "simplex"),
        (["--epochs", "2"], "--epochs is for --model-type latent-perceptron only"),
        (["--inference", "greedy"], "latent-perceptron, latent-svm only"),
        (["--model-type", "latent-perceptron", "--tol", "0.1"], "--tol is for"),
        (["--tol", "x"], "--tol"),
        (["--loss", "mapp"], "--loss: unknown loss 'mapp'"),
        (["--feature-map", "pairs"], "--feature-map: unknown feature map 'pairs'"),
        (["--dev", "dev.letor", "--measure", "XY"], "--measure: unknown measure 'XY'"),
        (["--measure", "alpha_nDCG@10"], "--measure: measure 'alpha_nDCG@10' cannot be computed"),
        (["--seed", "4294967296"], "4294967296 is not in the range 0<=x<=4294967295"),
    ],
)
def test_wrong_calls(run: Run, folder: Path, options: list[str], message: str) -> None:
    assert message in run("fit", folder / "train.letor", *options, code=2).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "no/such/folder/m.safetensors"], "there is no folder"),
        (["-o", "."], "found a folder"),
    ],
)
def test_files_that_cannot_be_written(
    run: Run, folder: Path, options: list[str], message: str
) -> None:
    assert message in run("fit", folder / "train.letor", *options, code=1).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.letor: expected lines"),
        ("1 qid:a 1:2\nx qid:a 1:3\n", "bad.letor, line 2, label: expected a finite number"),
        ("1 qid:a 1:2\n0 qid:a 1:two\n", "bad.letor, line 2, feature 1: expected a finite"),
        ("1 qid:a 1:2\n1 qid:a 1:3\n", "nothing to learn from"),
    ],
)
def test_bad_data(run: Run, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.letor"
    path.write_text(text)
    found = run("fit", path, "-o", tmp_path / "m.safetensors", code=1)
    assert message in found.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_missing_and_mistaken_files(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    found = run("fit", tmp_path / "none.letor", "-o", output, code=1)
    assert found.stderr == f"error: {tmp_path / 'none.letor'}: No such file or directory\n"
    assert "Is a directory" in run("fit", tmp_path, "-o", output, code=1).stderr
    found = run("fit", folder / "map.didyma.safetensors", "-o", output, code=1)
    assert "expected judged results, found a model" in found.stderr
    train = tmp_path / "train.letor"
    train.write_text("1 qid:a 1:2\n0 qid:a 1:3\n")
    assert "would be overwritten" in run("fit", train, "-o", train, code=1).stderr
    wide = tmp_path / "wide.letor"
    wide.write_text("1 qid:a 1:2 3:1\n")
    found = run("fit", train, "--dev", wide, "-o", output, code=1)
    assert f"{wide}, line 1, feature 3: expected an index up to 1" in found.stderr
    archive = tmp_path / "nan.npz"
    np.savez(archive, X=[[np.nan], [1.0]], y=[1, 0], qid=["a", "a"])
    assert "X: expected finite numbers" in run("fit", archive, "-o", output, code=1).stderr


def test_debug_shows_the_traceback(folder: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from didyma.cli import app

    found = CliRunner().invoke(app, ["--debug", "fit", str(tmp_path / "none.letor")])
    assert isinstance(found.exception, FileNotFoundError)


def test_a_terminal_sees_bars(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    found = run(
        *("fit", folder / "train.letor", "--dev", folder / "dev.letor", "--C", "1,10"),
        *("-o", tmp_path / "m.safetensors"),
    )
    for text in ("C=1 ", "C=10 ", "gap ", "dev AP", "━"):
        assert text in found.stderr


@pytest.mark.parametrize("scale", ["none", "standard", "max-abs", "query-minmax"])
def test_the_file_is_that_of_the_estimator(
    run: Run, folder: Path, tmp_path: Path, scale: str
) -> None:
    path = tmp_path / "m.safetensors"
    given = ("--loss", "ndcg@5", "--C", "3", "--seed", "4", "--tol", "0.01")
    run("fit", folder / "train.letor", *given, "--scale", scale, "-o", path)
    data = formats.read(folder / "train.letor")
    ranker = SVMRanker("ndcg@5", C=3.0, random_state=4, tol=0.01)
    scalers = {
        "standard": StandardScaler(),
        "max-abs": MaxAbsScaler(),
        "query-minmax": QueryMinMaxScaler(),
    }
    X = data.X
    if scale != "none":
        scaler = scalers[scale]
        queries = {"qid": data.qid} if scale.startswith("query") else {}
        X = scaler.fit(data.X, **queries).transform(data.X, **queries)
        data.features.remember(scaler)
    ranker.fit(X, data.y, qid=data.qid)
    data.features.remember(ranker)
    expected = Model.of(ranker)
    if scale != "none":
        expected = expected.behind(Model.of(scaler))
    found = Model.read(path)
    assert found.record == expected.record
    assert found.tensors.keys() == expected.tensors.keys()
    for name, array in expected.tensors.items():
        np.testing.assert_allclose(found.tensors[name], array, rtol=1e-9)
    np.testing.assert_allclose(
        model.load(path)[-1].coef_ if scale != "none" else model.load(path).coef_,
        ranker.coef_,
        rtol=1e-9,
    )


def test_a_long_epoch_is_heard_of(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    from didyma.applications.networks import options as neural
    from didyma.applications.networks.trainer import Step

    monkeypatch.setattr(neural, "EVERY", 0.0)
    with neural.training("UAS") as callback:
        callback(Step(1, 9, 1, 5, 0.5, None, False, 2.0))
        callback(Step(1, 9, 5, 5, 0.5, None, False, 3.0))
        callback(Step(1, 9, 5, 5, 0.5, 0.25, True, 4.0))
    assert capsys.readouterr().err.splitlines() == [
        "epoch 1   step 1 of 5   loss 0.5   2.0 s",
        "epoch 1   loss 0.5   dev UAS 0.2500 *   4.0 s",
    ]
