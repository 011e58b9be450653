"""`didyma coref`: from files to a model, predictions and measures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from typer.testing import CliRunner

from didyma.applications.coreference import reader as coreference
from didyma.applications.coreference.measures import evaluate
from didyma.applications.coreference.mentions import FEATURES, pair_features
from didyma.applications.coreference.resolver import CoreferenceResolver
from didyma.cli import app
from didyma.errors import DataError, ModelFileError

NAMES = ("Emma", "Harriet", "John", "Frank", "Jane", "George")
FEMALE = {"Emma", "Harriet", "Jane"}


def tale(seed: int, n_sentences: int = 14) -> str:
    """People who are named, then meant by a pronoun, then named again."""
    random = np.random.default_rng(seed)
    lines = [f"#begin document (tale{seed}); part 0"]
    for _ in range(n_sentences):
        k = int(random.integers(len(NAMES)))
        name = NAMES[k]
        her = "her" if name in FEMALE else "his"
        words = [(name, f"({k})"), ("loved", "-"), (her, f"({k})"), ("walks", "-"), (".", "-")]
        for place, (word, brackets) in enumerate(words):
            lines.append("\t".join([f"tale{seed}", "0", str(place), word, *"_" * 8, brackets]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


@pytest.fixture(scope="module")
def tales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coref")
    for part, seeds in (("train", range(8)), ("test", range(8, 11))):
        (folder / part).mkdir()
        for seed in seeds:
            (folder / part / f"tale{seed}.conll").write_text(tale(seed))
    arguments = ["coref", "fit", folder / "train", "-o", folder / "m.safetensors"]
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == 0, found.output
    return folder


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
    assert {r for _, r in values} == ({0.1, 1.0} if model == "latent" else {0.1})
    assert record["dev"]["conll"] == max(values.values())
    resolver = CoreferenceResolver.load(output)
    assert values[resolver.C, resolver.r] == max(values.values())
    assert resolver.model == model
    documents = [d for path in coreference.find(tales / "test") for d in coreference.read(path)]
    assert resolver.score(documents) == pytest.approx(record["dev"]["conll"])


def test_a_resolver_is_saved_and_loaded(tales: Path, tmp_path: Path) -> None:
    documents = coreference.read(tales / "test" / "tale8.conll")
    resolver = CoreferenceResolver(C=0.5, r=0.2).fit(documents)
    assert np.all(np.diff(resolver.objective_trace_) <= 1e-9)
    resolver.save(tmp_path / "m.safetensors")
    again = CoreferenceResolver.load(tmp_path / "m.safetensors")
    assert again.get_params() == resolver.get_params()
    np.testing.assert_array_equal(again.predict(documents), resolver.predict(documents))
    golds = [document.labels for document in documents]
    assert evaluate(golds, again.predict(documents))["conll"] == again.score(documents)


def test_a_model_of_other_features_is_refused(tales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("didyma.applications.coreference.resolver.FEATURES", (*FEATURES, "another"))
    with pytest.raises(ModelFileError, match="trained with other features of mentions"):
        CoreferenceResolver.load(tales / "m.safetensors")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"C": -1.0}, "C: expected a positive number"), ({"model": "tree"}, "model: expected")],
)
def test_wrong_parameters_are_refused(tales: Path, parameters: dict, message: str) -> None:
    documents = coreference.read(tales / "test" / "tale8.conll")
    with pytest.raises(DataError, match=message):
        CoreferenceResolver(**parameters).fit(documents)


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
    for wrong in (("--C", "0"), ("--C", "1,2"), ("--r", "0"), ("--r", "1,2")):
        run("coref", "fit", tales / "train", *wrong, code=2)


def test_help_teaches(run: Run) -> None:
    for command in ("fit", "predict", "eval"):
        shown = run("coref", command, "--help").stdout
        assert f"didyma coref {command} " in shown


def test_features_of_pairs_say_what_they_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tale.conll"
    rows = [
        *(("Mrs.", "(0"), ("Weston", "0)"), ("saw", "-"), ("the", "(1"), ("old", "-")),
        *(("house", "1)"), ("of", "-"), ("her", "(2|(0)"), ("brother", "2)"), (".", "-")),
    ]
    lines = [f"t 0 {k} {word} {brackets}" for k, (word, brackets) in enumerate(rows)]
    path.write_text("\n".join(["#begin document (t); part 0", *lines, "", "#end document\n"]))
    (document,) = coreference.read(path)
    texts = [document.text(mention) for mention in document.mentions]
    assert texts == ["Mrs. Weston", "the old house", "her brother", "her"]
    pairs = pair_features(document)
    assert pairs.features.dtype == np.uint8
    on = {
        (texts[i], texts[j]): {FEATURES[k] for k in np.flatnonzero(row)}
        for row, i, j in zip(pairs.features, *np.triu_indices(4, 1))
    }
    assert {
        "any pair",
        "name before he",
        "same gender, name before pronoun",
        "nearest that agrees, name before pronoun",
    } <= on["Mrs. Weston", "her"]
    assert {"other gender, name and noun", "name before possessive"} <= on[
        "Mrs. Weston", "her brother"
    ]
    assert "nested" in on["her brother", "her"]
    assert {"other gender, noun before pronoun", "definite before he"} <= on["the old house", "her"]
    assert len(set(FEATURES)) == len(FEATURES)
