"""`didyma nbest`: from files to models, a comparison of them, and reranked files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from didyma.cli import app
from didyma.cli.nbest import RERANKER
from didyma.cli.signature import parameters_of
from didyma.nbest.bags import KINDS
from didyma.nbest.formats import read, write
from didyma.nbest.joint import SETS
from didyma.nbest.loss import LOSSES, losses
from didyma.nbest.reranker import MODELS, VECTORS, NBestReranker
from tests.cases import Case, cases, stack
from tests.cli.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
TRAIN, DEV, TEST = (EXAMPLES / f"nbest-{part}.jsonl" for part in ("train", "dev", "test"))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models; not to be changed by a test."""
    folder = tmp_path_factory.mktemp("nbest")
    for model in ("svm", "low-rank"):
        arguments = ["nbest", "fit", str(TRAIN), "--dev", str(DEV), "--model-type", model]
        found = CliRunner().invoke(app, [*arguments, "-o", str(folder / f"{model}.safetensors")])
        assert found.exit_code == 0, found.output
    return folder


@pytest.fixture
def moses(tmp_path: Path) -> Path:
    """The test lists as Moses, with their inputs and references beside them."""
    lists = read(TEST)
    numbered = (case._replace(id=str(k)) for k, case in enumerate(cases(lists)))
    write(stack(numbered), tmp_path / "test.nbest")
    (tmp_path / "test.in").write_text("".join(f"{own.text}\n" for own in lists.queries))
    (tmp_path / "test.out").write_text("".join(f"{own.reference}\n" for own in lists.queries))
    return tmp_path / "test.nbest"


def test_choices_are_those_of_the_library() -> None:
    choices = {name: each.choices for name, each in parameters_of(RERANKER).items()}
    assert choices["model"] == tuple(MODELS)
    assert choices["features"] == tuple(SETS)
    assert choices["loss"] == ("auto", *LOSSES)
    assert set(choices["input_view"]) == {"auto", VECTORS, *KINDS}
    assert choices["output_view"] == choices["input_view"]


def test_models_are_compared_by_one_command(run: Run, models: Path) -> None:
    files = [models / "svm.safetensors", models / "low-rank.safetensors"]
    found = json.loads((heard := run("nbest", "compare", *files, "--data", TEST, "--json")).stdout)
    assert (found["n_lists"], found["n_empty"], found["loss"]) == (120, 0, "hamming")
    systems = found["systems"]
    assert list(systems) == ["decoder", "oracle", "svm", "low-rank"]
    assert [line.split()[:2] for line in heard.stderr.splitlines()[1:]] == [
        ["svm:", "loss"],
        ["low-rank:", "loss"],
    ]
    lists = read(TEST)
    lists = replace(lists, losses=losses(lists))
    first = lists.loss_of(lists.groups.choose(lists.scores))
    assert systems["decoder"]["loss"] == pytest.approx(first.mean())
    assert systems["decoder"]["exact"] == pytest.approx((first == 0).mean())
    n_tokens = sum(len(own.reference.split()) for own in lists.queries)
    assert systems["decoder"]["accuracy"] == pytest.approx(1 - first.sum() / n_tokens)
    assert systems["oracle"]["loss"] == pytest.approx(
        lists.loss_of(lists.groups.choose(-lists.losses)).mean()
    )
    for path in files:
        chosen = lists.loss_of(NBestReranker.load(path).rerank(lists))
        row = systems[path.stem]
        assert row["loss"] == pytest.approx(chosen.mean())
        assert row["gain"] == pytest.approx(first.mean() - chosen.mean())
        assert (row["wins"], row["losses"]) == ((chosen < first).sum(), (chosen > first).sum())
        assert row["p_value"] < 0.001
    shown = run("nbest", "compare", *files, "--data", TEST, "--test", "t-test", "--holm").stdout
    assert "two-tailed paired t-test against the decoder, Holm-corrected" in shown
    assert "wrong tokens, mean over 120 lists" in shown
    alone = run("nbest", "eval", files[0], TEST, "--loss", "edit").stdout
    assert "normalised edit distance" in alone
    single = json.loads(run("nbest", "eval", files[0], TEST, "--json").stdout)["systems"]
    assert single == {name: systems[name] for name in ("decoder", "oracle", "svm")}
    alone = run("nbest", "compare", files[0], "--data", TEST, "--jobs", 1, "--json").stdout
    assert len(json.loads(alone)["systems"]) == 3  # with the decoder and the oracle


def test_all_files_are_looked_at_before_any_work(
    run: Run, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rerank(*_: object) -> None:
        raise AssertionError("work was done for the first model")

    monkeypatch.setattr(NBestReranker, "rerank", rerank)
    first = models / "svm.safetensors"
    heard = run("nbest", "compare", first, TRAIN, "--data", TEST, code=1).stderr
    assert f"{TRAIN}: damaged, or not a model file" in heard
    heard = run("nbest", "compare", first, models / "none", "--data", TEST, code=1).stderr
    assert "none: no such file" in heard
    heard = run("nbest", "compare", first, first, "--data", TEST, code=1).stderr
    assert "svm.safetensors: given 2 times" in heard


def test_every_model_beats_the_decoder(run: Run, models: Path, tmp_path: Path) -> None:
    files = []
    for model in MODELS:
        files.append(tmp_path / f"{model}.safetensors")
        options = ("--model-type", model, "--min-count", 2, "-o", files[-1])
        run("nbest", "fit", TRAIN, "--dev", DEV, *options)
    found = run("nbest", "compare", *files, "--data", TEST, "--json")
    systems = json.loads(found.stdout)["systems"]
    assert list(systems) == ["decoder", "oracle", *MODELS]
    for model in MODELS:
        assert systems["oracle"]["loss"] <= systems[model]["loss"] < systems["decoder"]["loss"]


def test_reranked_files_lose_nothing(run: Run, models: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    model = models / "svm.safetensors"
    run("nbest", "rerank", model, TEST, "-o", output)
    before, after = read(TEST), cases(read(output))
    expected = NBestReranker.load(model).predict(before)
    parts = np.split(expected, before.groups.starts[1:-1])
    for old, new, values in zip(cases(before), after, parts):
        assert (old.id, old.input, old.reference) == (new.id, new.input, new.reference)
        assert [c.score for c in new.guesses] == sorted(values.tolist(), reverse=True)
        restored = [
            (c.text, (c.features or {})["decoder_score"], (c.features or {})["fit"])
            for c in new.guesses
        ]
        assert sorted(restored) == sorted(
            (c.text, c.score, (c.features or {})["fit"]) for c in old.guesses
        )
    run("nbest", "rerank", model, TEST, "-o", tmp_path / "best.txt", "--best")
    best = (tmp_path / "best.txt").read_text().splitlines()
    assert best == [case.guesses[0].text for case in after]


def test_moses_goes_in_and_out(run: Run, models: Path, moses: Path, tmp_path: Path) -> None:
    model, output = models / "low-rank.safetensors", tmp_path / "out.nbest"
    inputs = ("--inputs", moses.with_suffix(".in"))
    run("nbest", "rerank", model, moses, *inputs, "-o", output)
    run("nbest", "rerank", model, TEST, "-o", tmp_path / "out.jsonl")
    for a, b in zip(cases(read(output)), cases(read(tmp_path / "out.jsonl"))):
        assert [(c.text, c.score, c.features) for c in a.guesses] == [
            (c.text, c.score, c.features) for c in b.guesses
        ]
    references = ("--references", moses.with_suffix(".out"))
    found = run("nbest", "eval", model, moses, *inputs, *references, "--json").stdout
    assert json.loads(found) == json.loads(run("nbest", "eval", model, TEST, "--json").stdout)


def test_training_on_moses_with_a_loss_of_any_name(run: Run, moses: Path, tmp_path: Path) -> None:
    lists = read(moses, references=moses.with_suffix(".out"))
    judged = replace(lists, losses=losses(lists))
    write(judged, tmp_path / "train.nbest", loss="wer")
    found = run(
        *("nbest", "fit", tmp_path / "train.nbest", "--loss-column", "wer", "--model-type", "svm"),
        *("--dev", moses, "--dev-references", moses.with_suffix(".out"), "--set", "C=1,100"),
        *("-o", tmp_path / "m", "--json"),
    )
    record = json.loads(found.stdout)
    assert [row["C"] for row in record["tuning"]] == [1, 100]
    assert record["dev"]["loss"] == min(row["loss"] for row in record["tuning"])
    joint = NBestReranker.load(tmp_path / "m").joint_
    assert joint is not None
    assert "wer" not in joint.names
    assert {"fit", "frequency", "decoder score"} <= {*joint.names}


def test_settings_become_parameters(run: Run, tmp_path: Path) -> None:
    found = run(
        *("nbest", "fit", TRAIN, "--set", "objective=generative", "--set", "n_components=7"),
        *("--input-view", "n-grams", "--weight", "40", "-o", tmp_path / "m"),
    )
    assert "low-rank objective=generative n_components=7" in found.stdout
    assert "40 %" in found.stdout
    reranker = NBestReranker.load(tmp_path / "m")
    assert reranker.model_.A_.shape[1] == 7
    assert reranker.weight_ == 40
    assert reranker.input_view == "n-grams"
    shown = run("inspect", tmp_path / "m").stdout
    assert "NBestReranker" in shown


def test_a_choice_at_the_end_of_the_defaults_is_told_and_goes_on(run: Run, tmp_path: Path) -> None:
    heard = run(
        *("nbest", "fit", DEV, "--dev", TEST, "--model-type", "svm", "--json"),
        *("-o", tmp_path / "m"),
    )
    tried = [row["C"] for row in json.loads(heard.stdout)["tuning"]]
    assert tried[:3] == [100.0, 1000.0, 10_000.0]
    assert len(tried) > 3
    assert f"at the end of what was tried: {tried[3]:g} is tried too" in heard.stderr


def test_the_oracle_improves_with_n(run: Run, tmp_path: Path) -> None:
    found = json.loads(run("nbest", "oracle", TEST, "--json").stdout)["oracle"]
    lists = read(TEST)
    measured = np.split(losses(lists), lists.groups.starts[1:-1])
    assert [row["n"] for row in found] == list(range(1, 9))
    for row in found:
        best = np.mean([loss[: row["n"]].min() for loss in measured])
        assert row["loss"] == pytest.approx(best)
        assert row["lists"] == sum(len(loss) >= row["n"] for loss in measured)
    assert run("nbest", "oracle", TEST).stdout.split()[:4] == ["n", "lists", "loss", "exact"]
    shuffled = [case._replace(guesses=case.guesses[::-1]) for case in cases(lists)]
    write(stack(shuffled), tmp_path / "reversed.jsonl")
    again = json.loads(run("nbest", "oracle", tmp_path / "reversed.jsonl", "--json").stdout)
    first = [
        loss[::-1][np.argmax([guess.score for guess in case.guesses])]
        for loss, case in zip(measured, shuffled)
    ]
    assert again["oracle"][0]["loss"] == pytest.approx(np.mean(first))


@pytest.mark.parametrize("model", ["svm", "low-rank"])
def test_choices_are_explained(run: Run, models: Path, model: str, tmp_path: Path) -> None:
    file = models / f"{model}.safetensors"
    found = json.loads(run("nbest", "explain", file, TEST, "--json", "--top", 4).stdout)
    assert found["chosen"] != found["first"]
    assert len(found["contributions"]) == 4
    shown = run("nbest", "explain", file, TEST, "--id", found["id"]).stdout
    assert found["chosen_text"] in shown
    assert found["contributions"][0]["name"] in shown
    missing = run("nbest", "explain", file, TEST, "--id", "nobody", code=1)
    assert "expected a list 'nobody', found none" in missing.stderr
    write(stack([Case("e", "we meet", None, [])]), tmp_path / "empty.jsonl")
    empty = run("nbest", "explain", file, tmp_path / "empty.jsonl", "--id", "e", code=1)
    assert "empty.jsonl, list 'e': expected candidates, found none" in empty.stderr


def test_lists_that_are_not_nice(run: Run, models: Path, tmp_path: Path) -> None:
    first, second, third = cases(read(TEST))[:3]
    single = second._replace(guesses=second.guesses[:1])
    awkward = [first._replace(guesses=[]), single, third._replace(reference="plugh")]
    data, model = tmp_path / "awkward.jsonl", models / "svm.safetensors"
    write(stack(awkward), data)
    assert "3 lists, 9 candidates, 1 without any" in run("nbest", "oracle", data).stderr
    assert "(1 have no candidates)" in run("nbest", "eval", model, data).stdout
    run("nbest", "rerank", model, data, "-o", tmp_path / "best", "--best")
    best = (tmp_path / "best").read_text().splitlines()
    assert best[:2] == ["", single.guesses[0].text]
    run("nbest", "rerank", model, data, "-o", tmp_path / "all.jsonl")
    assert read(tmp_path / "all.jsonl").groups.sizes.tolist() == [0, 1, 8]
    write(stack(awkward[:1]), data)
    assert "expected a list with candidates" in run("nbest", "eval", model, data, code=1).stderr


def test_mistakes_are_one_line(run: Run, models: Path, moses: Path, tmp_path: Path) -> None:
    model, output = models / "svm.safetensors", tmp_path / "m"
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": "1", "candidates": [{"text": 3}]}\n')
    found = run("nbest", "fit", broken, "-o", output, code=1)
    assert f"{broken}, line 1, candidates[0].text: expected a text" in found.stderr
    assert not output.exists()
    assert "expected losses or a reference" in run("nbest", "eval", model, moses, code=1).stderr
    found = run("nbest", "rerank", model, TEST, "-o", model, code=1)
    assert "is an input" in found.stderr
    found = run("nbest", "fit", TRAIN, "--set", "magic=1", "-o", output, code=2)
    assert "low-rank has no parameter 'magic'" in found.stderr
    found = run("nbest", "fit", TRAIN, "--set", "tau=0.1,0.9", "-o", output, code=2)
    assert "several values of tau need held-out lists" in found.stderr
    found = run("nbest", "eval", TRAIN, TEST, code=1)
    assert "not a model file" in found.stderr
    write(replace(read(TEST), scores=None), tmp_path / "bare.jsonl")
    found = run("nbest", "rerank", model, tmp_path / "bare.jsonl", "-o", output, code=1)
    assert "scores: expected a score for each candidate" in found.stderr
    for wrong in (("--set", "tau"), ("--weight", "101"), ("--model-type", "magic")):
        run("nbest", "fit", TRAIN, *wrong, code=2)
    run("nbest", "fit", TRAIN, "--dev-inputs", TRAIN, code=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--features", "suffix"), "--features: is not for low-rank"),
        (("--input-view", "n-grams", "--model-type", "svm"), "--input-view: is not for svm"),
        (("--output-view", "vectors", "--model-type", "boosting"), "--output-view: is not for"),
        (("--model-type", "svm", "--set", "C=1,abc"), "--set: C: expected a positive number"),
        (("--model-type", "svm", "--set", "loss=ap,foo"), "--set: .*unknown loss 'foo'"),
        (("--set", "tau=0.1,7"), "--set: tau: expected a number above 0, up to 1, found 7"),
        (("--set", "objective=a,b"), "--set: objective: expected"),
    ],
)
def test_options_that_cannot_be_are_refused_before_files_are_read(
    run: Run, tmp_path: Path, wrong: tuple[str, ...], message: str
) -> None:
    files = (tmp_path / "none.jsonl", "--dev", tmp_path / "none.jsonl")
    heard = run("nbest", "fit", *files, *wrong, code=2).stderr
    assert re.search(f"Invalid value for {message}", heard), heard


def test_what_is_not_in_the_lists_is_named(run: Run, tmp_path: Path) -> None:
    for command in (("fit", TRAIN), ("oracle", TEST)):
        heard = run("nbest", *command, "--loss-column", "foo", code=1).stderr
        expected = f"{command[1]}, candidates.foo: expected the loss of each candidate, found none"
        assert expected in heard
    heard = run("nbest", "fit", TRAIN, "--min-count", 100_000, "-o", tmp_path / "m", code=1).stderr
    assert "min_count: inputs have no feature that occurs so often" in heard
    first, *others = TRAIN.read_text().splitlines()
    for n in (1, 2):
        record = json.loads(first)
        record["candidates"] = [own | {"vector": [1.0]} for own in record["candidates"][:n]]
        path = tmp_path / "vectors.jsonl"
        path.write_text("\n".join([others[0], json.dumps(record), *others[1:]]))
        heard = run("nbest", "fit", path, "-o", tmp_path / "m", code=1).stderr
        assert f"{path}, line 2, candidates.vector: expected none, as at line 1" in heard


def test_help_teaches(run: Run) -> None:
    for command in ("fit", "rerank", "eval", "compare", "oracle", "explain"):
        assert f"didyma nbest {command} " in run("nbest", command, "--help").stdout


def test_a_tagger_makes_lists_to_rerank(run: Run, tmp_path: Path) -> None:
    treebank = {part: EXAMPLES / f"treebank-{part}.conllu" for part in ("train", "dev", "test")}
    tagger = tmp_path / "tagger.safetensors"
    run("tag", "fit", treebank["train"], "-o", tagger)
    lists = tmp_path / "train.jsonl"
    run("tag", "nbest", treebank["train"], "--jackknife", 3, "-n", 5, "-o", lists)
    for part in ("dev", "test"):
        run("tag", "nbest", tagger, treebank[part], "-n", 5, "-o", tmp_path / f"{part}.jsonl")
    files = [tmp_path / f"{model}.safetensors" for model in ("svm", "low-rank")]
    for file in files:
        features = ("--features", "n-gram") if file.stem == "svm" else ()
        options = (*features, "--model-type", file.stem, "-o", file)
        run("nbest", "fit", lists, "--dev", tmp_path / "dev.jsonl", *options)
    found = run("nbest", "compare", *files, "--data", tmp_path / "test.jsonl", "--json")
    record = json.loads(found.stdout)
    assert (record["n_lists"], record["loss"]) == (60, "given")
    systems = record["systems"]
    words = json.loads(run("tag", "eval", tagger, treebank["test"], "--json").stdout)["words"]
    assert systems["decoder"]["accuracy"] == pytest.approx(words["accuracy"])
    assert systems["decoder"]["loss"] * 60 == pytest.approx((1 - words["accuracy"]) * words["of"])
    for model in ("svm", "low-rank"):
        assert systems["oracle"]["accuracy"] >= systems[model]["accuracy"] > 0.98
