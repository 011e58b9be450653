"""`didyma coref`: from files to a model, predictions and measures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.applications.coreference.conftest import tale
from tests.cli.conftest import Run

from didyma.applications.coreference import reader as coreference
from didyma.applications.coreference.resolver import CoreferenceResolver


def test_a_model_is_trained_applied_and_evaluated(run: Run, tales: Path, tmp_path: Path) -> None:
    output = tmp_path / "predicted"
    run("coref", "predict", tales / "m.safetensors", tales / "test", "-o", output)
    assert sorted(path.name for path in output.iterdir()) == [
        f"tale{seed}.conll" for seed in (10, 8, 9)
    ]
    of_files = json.loads(run("coref", "eval", output, tales / "test", "--json").stdout)
    of_model = json.loads(
        run("coref", "eval", tales / "m.safetensors", tales / "test", "--json").stdout
    )
    assert of_files == of_model
    assert of_files["n_documents"] == 3
    assert of_files["conll"] > 0.9
    shown = run("coref", "eval", output, tales / "test", "--per-document").stdout
    assert "MITRE loss" in shown
    assert "tale9" in shown
    perfect = run("coref", "eval", tales / "test", tales / "test", "--json").stdout
    assert json.loads(perfect)["conll"] == 1.0


def test_gold_clusters_are_not_looked_at(run: Run, tales: Path, tmp_path: Path) -> None:
    source = tales / "test" / "tale8.conll"
    documents = coreference.read(source)
    n = len(documents[0].mentions)
    coreference.write(documents, tmp_path / "blind.conll", [np.arange(n)])
    for name, data in (("a", source), ("b", tmp_path / "blind.conll")):
        run("coref", "predict", tales / "m.safetensors", data, "-o", tmp_path / name)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


@pytest.mark.parametrize("model", ["latent", "correlation"])
def test_C_is_chosen_on_dev(run: Run, tales: Path, tmp_path: Path, model: str) -> None:
    output = tmp_path / "m.safetensors"
    found = run(
        *("coref", "fit", tales / "train", "--dev", tales / "test", "--C", "0.0001,1"),
        *("--model-type", model, "--max-iter", 20, "-o", output, "--json"),
        *(("--r", "0.1,1") if model == "latent" else ()),
    )
    record = json.loads(found.stdout)
    values = {(one["C"], one["r"]): one["dev"] for one in record["candidates"]}
    assert {C for C, _ in values} == {0.0001, 1.0}
    assert {r for _, r in values} == ({0.1, 1.0} if model == "latent" else {None})
    assert record["dev"]["conll"] == max(values.values())
    resolver = CoreferenceResolver.load(output)
    chosen = resolver.C, resolver.r if model == "latent" else None
    assert values[chosen] == max(values.values())
    assert ("r=" in found.stderr) == (model == "latent")
    assert resolver.model == model
    documents = [d for path in coreference.find(tales / "test") for d in coreference.read(path)]
    assert resolver.score(documents) == pytest.approx(record["dev"]["conll"])


def test_mistakes_are_one_line(run: Run, tales: Path, tmp_path: Path) -> None:
    model, test = tales / "m.safetensors", tales / "test"
    broken = tmp_path / "broken.conll"
    broken.write_text(tale(1).replace("(", "((", 2))
    found = run("coref", "fit", broken, "-o", tmp_path / "m", code=1)
    assert f"{broken}, line 2, coreference: expected '(3'" in found.stderr
    assert not (tmp_path / "m").exists()
    assert "No such file" in run("coref", "eval", model, tmp_path / "none", code=1).stderr
    assert (
        "expected a document tale10" in run("coref", "eval", tales / "train", test, code=1).stderr
    )
    other = tmp_path / "other.conll"
    other.write_text(
        (test / "tale8.conll").read_text().replace("her\t", "she\t").replace("(1)", "-")
    )
    found = run("coref", "eval", other, test / "tale8.conll", code=1)
    assert "expected the 28 mentions of the gold file" in found.stderr
    found = run("coref", "predict", model, test, "-o", test, code=1)
    assert "is the input, and would be overwritten" in found.stderr
    found = run("coref", "predict", model, test / "tale8.conll", "-o", model, code=1)
    assert "is an input" in found.stderr
    alone = tmp_path / "alone.conll"
    alone.write_text("#begin document (x); part 0\nx 0 0 a (1)\n\n#end document\n")
    found = run("coref", "fit", alone, "-o", tmp_path / "m", code=1)
    assert "two mentions at least" in found.stderr
    penalty = ("--model-type", "correlation", "--r", "0.5")
    for wrong in (("--C", "0"), ("--C", "1,2"), ("--r", "0"), ("--r", "1,2"), penalty):
        run("coref", "fit", tales / "train", *wrong, code=2)
