"""The path of docs/serve.md, from nothing to a served model, line by line."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.service.process import ServerProcess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
PATH = PAGE.partition("## From nothing to a served model")[2].partition("\n## ")[0]
DIDYMA = [sys.executable, "-m", "didyma"]


def lines() -> Iterator[str]:
    for block in re.findall(r"```sh\n(.*?)```", PATH, re.DOTALL):
        yield from block.strip().splitlines()


def asked(line: str, address: str) -> Any:
    """What the server answers to a line of curl, by curl itself where there is one."""
    program, url, *options = shlex.split(line.replace("http://localhost:8000", address))
    if (found := shutil.which(program)) is not None:
        command = [found, "--silent", "--fail", "--noproxy", "*", url, *options]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        body = options[options.index("-d") + 1] if "-d" in options else None
        answer = httpx.get(url) if body is None else httpx.post(url, content=body)
        printed = answer.raise_for_status().text
    return json.loads(printed)


def shape(value: Any) -> Any:
    """Which keys and kinds of values an answer has."""
    if isinstance(value, dict):
        return {key: shape(own) for key, own in value.items()}
    return [shape(own) for own in value] if isinstance(value, list) else type(value)


def test_a_reader_gets_to_a_served_model(tmp_path: Path) -> None:
    judged = (ROOT / "examples" / "data" / "passages-train.tsv").read_text().splitlines()[:400]
    table = ["query\tpassage\tlabel", *judged]
    (tmp_path / "judged.tsv").write_text("\n".join(table) + "\n")
    install, *rest = lines()
    assert set(re.findall(r"localhost:(\d+)", PAGE)) == {"8000"}  # for which a free port stands
    assert shlex.split(install) == ["pip", "install", "didyma[serve]"]
    ran, answers, server = [], [], None
    try:
        for line in rest:
            program, *arguments = shlex.split(line)
            ran.append(program)
            if program == "curl":
                assert server is not None
                answers.append(asked(line, server.address))
            elif arguments[0] == "serve":
                model, *options = arguments[1:]
                assert options == ["--port", "8000"]
                server = ServerProcess(tmp_path / model)
            else:
                quick = ["--time-budget", "0"] if arguments[:2] == ["rerank", "fit"] else []
                command = line if program == "printf" else [*DIDYMA, *arguments, *quick]
                shell = program == "printf"
                found = subprocess.run(
                    command, shell=shell, cwd=tmp_path, capture_output=True, text=True
                )
                assert found.returncode == 0, found.stderr
                if arguments[:2] == ["rerank", "rank"]:
                    assert "Ida Roth" in found.stdout.splitlines()[1]
    finally:
        if server is not None:
            server.__exit__()
    assert ran == ["didyma", "printf", "didyma", "didyma", "didyma", "curl", "curl"]
    (promised,) = map(json.loads, re.findall(r"```json\n(.*?)```", PATH, re.DOTALL))
    assert answers[0] == {"status": "ok"}
    assert shape(answers[1]) == shape(promised)
    for answer in (answers[1], promised):
        assert [own["index"] for own in answer["results"]] == [1, 0]
    high, low = (own["relevance_score"] for own in answers[1]["results"])
    assert high > 0.5 > low


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(text)
    service = unit["Service"]
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    if (verify := shutil.which("systemd-analyze")) is None:
        return
    path = tmp_path / "didyma.service"
    path.write_text(text.replace("/opt/didyma/bin/didyma", "/bin/true"))
    found = subprocess.run([verify, "verify", path], capture_output=True, text=True)
    said = [line for line in found.stderr.splitlines() if "didyma.service" in line]
    assert not said


def test_a_model_that_needs_scores_says_so_when_it_is_loaded(tmp_path: Path) -> None:
    from didyma.rerank.text import TextReranker
    from tests.rerank.texts import made

    path = tmp_path / "first.safetensors"
    TextReranker(quick=True).fit(made(12, scores=True)).save(path)
    with ServerProcess(path) as server:
        (said,) = [own for own in server.before if own["event"] == "needs scores"]
        assert said["level"] == "WARNING"
        assert said["model"] == "first"
        assert "trained with the first stage's scores" in said["reason"]
        body = {"query": "when?", "documents": ["Here."]}
        assert server.client.post("/v2/rerank", json=body).status_code == 400
