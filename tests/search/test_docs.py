"""docs/search.md, line by line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import httpx
from typer.testing import CliRunner

from didyma.cli import app
from didyma.service import server
from didyma.service.app import Service
from tests.rerank.texts import made
from tests.service.conftest import running

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", PAGE.read_text(), re.DOTALL)


def write_notes(folder: Path) -> None:
    """What the reader of the page has: notes, queries and judgements."""
    lists = made(12)
    names = {text: f"n{n}.txt" for n, text in enumerate(dict.fromkeys(lists.items))}
    (folder / "notes").mkdir()
    for text, name in names.items():
        (folder / "notes" / name).write_text(text)
    queries = [f"q{n}\t{query}\n" for n, query in enumerate(lists.queries)]
    (folder / "queries.tsv").write_text("".join(queries))
    rows = zip(lists.groups.codes.tolist(), lists.items, lists.labels.tolist())
    judged = [f"q{q} 0 {names[text]}#1 {label:.0f}\n" for q, text, label in rows]
    (folder / "qrels.txt").write_text("".join(judged))


def asked(client: httpx.Client, words: list[str]) -> None:
    path = words[1].partition("/")[2]
    answer = client.post(f"/{path}", content=words[words.index("-d") + 1])
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["results"]) == 3
    assert answer.json()["model"] == "model"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("didyma.search.cache.cache_home", lambda: tmp_path / "caches")
    served: list[Service] = []
    monkeypatch.setattr(server, "serve", lambda service, host, port: served.append(service))
    write_notes(tmp_path)
    done = set()
    for language, code in BLOCKS:
        if language == "python":
            exec(compile(code, PAGE, "exec"), {})
            continue
        for line in code.splitlines():
            words = shlex.split(line)
            done.add(words[0])
            if words[0] == "curl":
                with running(served[-1]) as client:
                    asked(client, words)
                continue
            assert words.pop(0) == "didyma"
            found = CliRunner().invoke(app, words)
            assert found.exit_code == 0, found.output
            if "--json" in words:
                assert len(json.loads(found.stdout)["results"]) == 3
    assert done == {"didyma", "curl"}
