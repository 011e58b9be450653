"""`didyma parse`: from treebanks to a parser, trees and measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from typer.testing import CliRunner

from didyma.applications.parsing.parser import DependencyParser
from didyma.cli import app
from didyma.data import conll

DATA = Path(__file__).parents[3] / "examples" / "data"
TEST = DATA / "treebank-test.conllu"
SMALL = (
    *("--hidden", 8, "--layers", 1, "--mlp", 8, "--word-size", 8),
    *("--learning-rate", 0.02, "--device", "cpu"),
)
TREE = "1\tHe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsaw\t_\tVERB\t_\t_\t0\troot\t_\t_\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parse")
    trees = conll.read(DATA / "treebank-train.conllu")
    conll.write(trees[:60], folder / "train.conllu")
    path = folder / "m.safetensors"
    arguments = ["parse", "fit", folder / "train.conllu", "-o", path, "--epochs", 4, *SMALL]
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == 0, found.output
    return path


def test_a_parser_is_trained_applied_and_evaluated(run: Run, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "parsed.conllu"
    run("parse", "predict", model, TEST, "-o", output, "--device", "cpu")
    of_file = json.loads(run("parse", "eval", output, TEST, "--json").stdout)
    of_model = json.loads(run("parse", "eval", model, TEST, "--json").stdout)
    assert of_file == of_model
    assert of_file["n_sentences"] == 60
    assert 0.4 < of_file["LAS"] <= of_file["UAS"] <= 1.0
    shown = run("parse", "eval", output, TEST, "--per-sentence").stdout
    assert "CLAS" in shown
    assert "test-60" in shown
    perfect = json.loads(run("parse", "eval", TEST, TEST, "--json", "--per-sentence").stdout)
    assert (perfect["UAS"], perfect["CLAS"], perfect["trees"]) == (1.0, 1.0, 1.0)
    assert perfect["per_sentence"]["LAS"] == [1.0] * 60


def test_everything_but_the_tree_is_kept(run: Run, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "parsed.conllu"
    run("parse", "predict", model, TEST, "-o", output)
    before, after = (path.read_text().split("\n") for path in (TEST, output))
    assert len(before) == len(after)
    kinds = {"comment": 0, "multiword": 0, "empty": 0}
    for old, new in zip(before, after):
        columns, found = old.split("\t"), new.split("\t")
        if len(columns) == 10 and columns[0].isdecimal():
            assert found[:6] + found[8:] == columns[:6] + columns[8:]
            continue
        assert old == new
        kinds["comment"] += old.startswith("#")
        kinds["multiword"] += "-" in columns[0] and not old.startswith("#")
        kinds["empty"] += "." in columns[0] and not old.startswith("#")
    assert all(count > 0 for count in kinds.values())


def test_trees_of_the_input_are_not_looked_at(run: Run, model: Path, tmp_path: Path) -> None:
    blank = [s.replaced({conll.Field.HEAD: "_" * len(s)}) for s in conll.read(TEST)]
    conll.write(blank, tmp_path / "blank.conllu")
    for name, data in (("a", TEST), ("b", tmp_path / "blank.conllu")):
        run("parse", "predict", model, data, "-o", tmp_path / name)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


def test_alternatives_are_written_and_drawn(run: Run, model: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.conllu"
    conll.write(conll.read(TEST)[:5], some)
    for kind in ("jsonl", "html", "svg"):
        found = run(
            *("parse", "predict", model, some, "--alternatives", tmp_path / f"trees.{kind}"),
            *("--temperature", 3, "--most", 2),
        )
        assert "of 5 sentences have several trees" in found.stderr
    records = [json.loads(line) for line in (tmp_path / "trees.jsonl").read_text().splitlines()]
    assert len(records) > 2
    for record in records:
        assert len(record["trees"]) > 1
        assert sum(tree["probability"] for tree in record["trees"]) == pytest.approx(1.0)
        for tree in record["trees"]:
            assert len(tree["heads"]) == len(tree["relations"]) == len(record["words"])
    page, picture = ((tmp_path / f"trees.{kind}").read_text() for kind in ("html", "svg"))
    assert page.count("<figure>") == 2
    assert records[0]["sentence"] in page
    assert picture.count("<svg") == 3
    assert "the first 2 of them were drawn" in found.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "svm", "--margin", 2, "--tags", "xpos", "--characters"),
        ("--loss", "crf", "--tags", "none", "--several-roots"),
    ],
)
def test_options_reach_the_parser(
    run: Run, model: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    train, output = model.with_name("train.conllu"), tmp_path / "m.safetensors"
    found = run(
        *("parse", "fit", train, "--dev", TEST, "-o", output, "--epochs", 1, "--json"),
        *(*SMALL, *options),
    )
    record = json.loads(found.stdout)
    parser = DependencyParser.load(output)
    assert (parser.loss, parser.hidden) == (options[1], 8)
    assert parser.tags == (None if "none" in options else "xpos")
    assert parser.single_root == ("--several-roots" not in options)
    assert parser.characters == ("--characters" in options)
    assert record["dev"]["UAS"] == pytest.approx(parser.score(conll.read(TEST)))
    assert "epoch 1" in found.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected sentences, found none"),
        (TREE.replace("\t0\troot", "\t1\troot"), "line 1, HEAD: the sentence has no root"),
        (TREE.replace("\t2\tnsubj", "\t7\tnsubj"), "line 1, HEAD: expected a head up to 2"),
        (TREE.replace("\t2\tnsubj", "\t_\tnsubj"), "line 1, HEAD: expected the id of the head"),
        (TREE.replace("2\tsaw", "3\tsaw"), "line 2, ID: expected 2, found '3'"),
        (TREE + "3\tit\n", "line 3: expected 10 columns"),
        (
            f"{TREE}3\ta{'	_' * 4}\t4\tdep\t_\t_\n4\tb{'	_' * 4}\t3\tdep\t_\t_\n",
            "a cycle, 3 → 4 → 3",
        ),
    ],
)
def test_damaged_treebanks_are_refused_before_training(
    run: Run, tmp_path: Path, text: str, message: str
) -> None:
    good, bad, output = (tmp_path / name for name in ("good", "bad", "m.safetensors"))
    good.write_text(TREE)
    bad.write_text(text)
    for arguments in ((bad,), (good, "--dev", bad)):
        found = run("parse", "fit", *arguments, "-o", output, code=1)
        assert message in found.stderr
        assert "bad" in found.stderr.splitlines()[-1]
        assert "epoch" not in found.stderr
    assert not output.exists()


def test_an_empty_dev_file_is_called_as_the_option_is(run: Run, tmp_path: Path) -> None:
    good, empty = tmp_path / "good", tmp_path / "empty"
    good.write_text(TREE)
    empty.write_text("# no words\n\n")
    found = run("parse", "fit", good, "--dev", empty, "-o", tmp_path / "m.safetensors", code=1)
    assert "error: --dev: expected sentences with words" in found.stderr


def test_files_must_belong_together(run: Run, model: Path, tmp_path: Path) -> None:
    sentences = conll.read(TEST)
    conll.write(sentences[1:], tmp_path / "fewer.conllu")
    conll.write([*sentences[1:], sentences[0]], tmp_path / "other.conllu")
    fewer = run("parse", "eval", tmp_path / "fewer.conllu", TEST, code=1)
    assert "expected the 60 sentences of the gold file, found 59" in fewer.stderr
    other = run("parse", "eval", tmp_path / "other.conllu", TEST, code=1)
    assert "line 1: expected the words of the gold file" in other.stderr
    swapped = run("parse", "predict", TEST, model, "-o", tmp_path / "x", code=1)
    assert "not a model file" in swapped.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "expected a file to write to"),
        (("--alternatives", "x.png"), "ends in .html, .svg or .jsonl"),
        (("-o", "x", "--temperature", "0"), "expected a number above 0"),
    ],
)
def test_wrong_calls(run: Run, model: Path, options: tuple[str, ...], message: str) -> None:
    assert message in run("parse", "predict", model, TEST, *options, code=2).output


def test_outputs_must_not_be_inputs(run: Run, model: Path, tmp_path: Path) -> None:
    found = run("parse", "predict", model, TEST, "-o", TEST, code=1)
    assert "is an input, and would be overwritten" in found.stderr
    out = tmp_path / "out.html"
    out.touch()
    found = run("parse", "predict", model, TEST, "-o", out, "--alternatives", out, code=1)
    assert "is an input" in found.stderr
