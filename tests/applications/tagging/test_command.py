"""`didyma tag`: from treebanks to a model, tags, lists and measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.applications.tagging.test_tagger import corpus
from tests.cases import cases
from tests.cli.conftest import Run
from typer.testing import CliRunner

from didyma.applications.tagging.tagger import TrigramTagger
from didyma.cli import app
from didyma.data import conll
from didyma.data.conll import Field
from didyma.nbest import formats as nbest

COMMENT = "# text = kept"


def write(path: Path, n: int, seed: int) -> None:
    """A treebank with fine tags, coarse ones, comments and multiword tokens."""
    lines = []
    for k, (words, tags) in enumerate(zip(*corpus(n, seed))):
        joined = "\t".join(["1-2", "joined", *"_" * 8])
        lines += [f"# sent_id = s{seed}-{k}", COMMENT, joined]
        for i, (word, tag) in enumerate(zip(words, tags), start=1):
            lines.append(f"{i}\t{word}\t_\t{'X' if tag in 'NP' else tag}\t{tag}\t_\t0\troot\t_\t_")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tag")
    write(folder / "train.conllu", 80, 0)
    write(folder / "test.conllu", 20, 1)
    for tags in ("xpos", "upos"):
        arguments = ["tag", "fit", folder / "train.conllu", "--tags", tags, "-o", folder / tags]
        found = CliRunner().invoke(app, list(map(str, arguments)))
        assert found.exit_code == 0, found.output
    return folder


@pytest.mark.parametrize(("name", "column"), [("xpos", Field.XPOS), ("upos", Field.UPOS)])
def test_only_the_column_of_tags_is_replaced(
    run: Run, treebank: Path, tmp_path: Path, name: str, column: Field
) -> None:
    run("tag", "predict", treebank / name, treebank / "test.conllu", "-o", tmp_path / "tagged")
    before, after = conll.read(treebank / "test.conllu"), conll.read(tmp_path / "tagged")
    guesses = TrigramTagger.load(treebank / name).predict([s.words for s in before])
    assert [list(sentence.column(column)) for sentence in after] == guesses
    for old, new in zip(before, after):
        assert COMMENT in new.lines
        assert new.replaced({column: old.column(column)}).lines == old.lines


def test_tags_are_chosen_at_will(run: Run, treebank: Path, tmp_path: Path) -> None:
    arguments = ["tag", "predict", treebank / "xpos", treebank / "test.conllu", "--tags", "upos"]
    run(*arguments, "-o", tmp_path / "tagged")
    before, after = conll.read(treebank / "test.conllu"), conll.read(tmp_path / "tagged")
    assert [s.column(Field.XPOS) for s in after] == [s.column(Field.XPOS) for s in before]
    assert {tag for s in after for tag in s.column(Field.UPOS)} <= {"D", "N", "P", "V"}


def test_a_model_from_python_tags_the_fine_column(run: Run, treebank: Path, tmp_path: Path) -> None:
    TrigramTagger().fit(*corpus(80)).save(tmp_path / "model")
    for model, output in ((tmp_path / "model", "a"), (treebank / "xpos", "b")):
        run("tag", "predict", model, treebank / "test.conllu", "-o", tmp_path / output)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_text_becomes_a_tagged_text(run: Run, treebank: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Rex walks\n\nThe dog barks\n")
    run("tag", "predict", treebank / "xpos", tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "Rex/P walks/V\n\nThe/D dog/N barks/V\n"
    run("tag", "nbest", treebank / "xpos", tmp_path / "in.txt", "-o", tmp_path / "out.jsonl")
    lists = nbest.read(tmp_path / "out.jsonl")
    found = cases(lists)
    assert [own.id for own in found] == ["1", "2", "3"]
    assert all(own.reference is None for own in found)
    assert lists.losses is None
    assert [guess.text for guess in found[1].guesses] == [""]


def test_lists_hold_what_a_reranker_needs(run: Run, treebank: Path, tmp_path: Path) -> None:
    run("tag", "nbest", treebank / "xpos", treebank / "test.conllu", "-n", 3, "-o", tmp_path / "l")
    lists = cases(nbest.read(tmp_path / "l"))
    sentences = conll.read(treebank / "test.conllu")
    tagger = TrigramTagger.load(treebank / "xpos")
    expected = tagger.n_best([sentence.words for sentence in sentences], n=3)
    for k, (own, sentence, guesses) in enumerate(zip(lists, sentences, expected, strict=True)):
        gold = sentence.column(Field.XPOS)
        assert own.id == f"s1-{k}"
        assert own.input == " ".join(sentence.words)
        assert own.reference == " ".join(gold)
        assert [(c.text.split(), c.score) for c in own.guesses] == guesses
        for candidate, (tags, _) in zip(own.guesses, guesses):
            assert candidate.loss == sum(a != b for a, b in zip(tags, gold))


def test_lists_of_training_data_are_jackknifed(run: Run, treebank: Path, tmp_path: Path) -> None:
    train = treebank / "train.conllu"
    run("tag", "nbest", train, "--jackknife", 4, "-n", 2, "-o", tmp_path / "a")
    run("tag", "nbest", treebank / "xpos", train, "--jackknife", 4, "-n", 2, "-o", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    expected = TrigramTagger().jackknife(*corpus(80), n=2, n_folds=4)
    lists = cases(nbest.read(tmp_path / "a"))
    found = [[guess.text.split() for guess in own.guesses] for own in lists]
    assert found == [[tags for tags, _ in guesses] for guesses in expected]
    run("tag", "nbest", train, "--jackknife", 4, "--seed", 1, "-n", 2, "-o", tmp_path / "c")
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_spaces_within_words_and_repeated_ids(run: Run, treebank: Path, tmp_path: Path) -> None:
    word = "1\tNew York\t_\t_\t_\t_\t_\t_\t_\t_"
    (tmp_path / "in.conllu").write_text(f"# sent_id = 7\n{word}\n\n# sent_id = 7\n{word}\n\n")
    run("tag", "nbest", treebank / "xpos", tmp_path / "in.conllu", "-o", tmp_path / "out")
    lists = cases(nbest.read(tmp_path / "out"))
    assert [own.id for own in lists] == ["1", "2"]
    assert {own.input for own in lists} == {"New_York"}
    assert {own.reference for own in lists} == {None}


def test_losses_are_for_all_sentences_or_none(run: Run, treebank: Path, tmp_path: Path) -> None:
    tagged, bare = (f"1\tRex\t_\t_\t{tag}\t_\t_\t_\t_\t_" for tag in ("P", "_"))
    (tmp_path / "in.conllu").write_text(f"{tagged}\n\n{bare}\n\n")
    run("tag", "nbest", treebank / "xpos", tmp_path / "in.conllu", "-o", tmp_path / "out")
    lists = nbest.read(tmp_path / "out")
    assert [own.reference for own in cases(lists)] == ["P", None]
    assert lists.losses is None


def test_measures_are_those_of_the_tagger(run: Run, treebank: Path) -> None:
    arguments = ["tag", "eval", treebank / "xpos", treebank / "test.conllu"]
    found = json.loads(run(*arguments, "--n", 5, "--json").stdout)
    sentences = conll.read(treebank / "test.conllu")
    tagger = TrigramTagger.load(treebank / "xpos")
    words, gold = [s.words for s in sentences], [s.column(Field.XPOS) for s in sentences]
    assert found["words"] == {"accuracy": tagger.score(words, gold), "of": sum(map(len, words))}
    n_known = sum(tagger.knows(word) for sentence in words for word in sentence)
    assert found["known"]["of"] == n_known
    assert found["known"]["of"] + found["unknown"]["of"] == found["words"]["of"]
    right = [list(tags) == guess for tags, guess in zip(gold, tagger.predict(words))]
    assert found["sentences"] == {"accuracy": sum(right) / len(right), "of": len(right)}
    lists = tagger.n_best(words, 5)
    among = [list(tags) in [way for way, _ in own] for tags, own in zip(gold, lists)]
    assert found["oracle_sentences"]["accuracy"] == sum(among) / len(among)
    assert found["oracle_words"]["accuracy"] >= found["words"]["accuracy"]
    assert "oracle" not in run(*arguments).stdout
    shown = run(*arguments, "--n", 2).stdout
    assert all(name in shown for name in ("known", "unknown", "sentences", "oracle words"))


def test_training_tells_what_it_saw(run: Run, treebank: Path, tmp_path: Path) -> None:
    arguments = ["tag", "fit", treebank / "train.conllu", "-o", tmp_path / "m", "--rare", 5]
    found = json.loads(run(*arguments, "--json").stdout)
    assert found["n_sentences"] == 80
    assert (found["tags"], found["n_tags"]) == ("xpos", 4)
    assert TrigramTagger.load(tmp_path / "m").rare == 5
    assert "saved to" in run(*arguments).stdout


def test_bad_data_name_file_line_and_column(run: Run, treebank: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("# comment\n1\tyes\t_\tX\t_\t_\t_\t_\t_\t_\n\n")
    output = tmp_path / "m"
    message = run("tag", "fit", bad, "-o", output, code=1).stderr
    assert f"{bad}, line 2, XPOS: expected a tag, found _; --tags upos takes those" in message
    assert not output.exists()
    run("tag", "fit", bad, "--tags", "upos", "-o", output)
    assert "line 2, XPOS" in run("tag", "eval", treebank / "xpos", bad, code=1).stderr
    text = tmp_path / "in.txt"
    text.write_text("a b\n")
    assert "found a text" in run("tag", "fit", text, "-o", output, code=1).stderr
    assert "found a text" in run("tag", "eval", treebank / "xpos", text, code=1).stderr
    missing = tmp_path / "missing"
    assert str(missing) in run("tag", "eval", missing, bad, code=1).stderr
    assert "is an input" in run("tag", "fit", bad, "-o", bad, code=1).stderr
    folds = run("tag", "nbest", bad, "--tags", "upos", "--jackknife", 2, "-o", missing, code=1)
    assert "n_folds: expected 2 to 1" in folds.stderr
    assert not missing.exists()


def test_bad_calls_are_explained(run: Run, treebank: Path, tmp_path: Path) -> None:
    data = treebank / "test.conllu"
    alone = run("tag", "nbest", data, "-o", tmp_path / "out", code=2)
    assert "--jackknife" in alone.stderr
    run("tag", "nbest", data, data, data, "-o", tmp_path / "out", code=2)
    wrong = run("tag", "fit", data, "--prior", 0, "-o", tmp_path / "out", code=1)
    assert "prior: expected a number above 0" in wrong.stderr
