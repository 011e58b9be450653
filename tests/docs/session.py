"""One reader of one page: a folder, a namespace, and what was printed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import time
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from typer.testing import CliRunner

from didyma.cli import app
from didyma.cli.rerank.evaluate import NOT_BETTER
from didyma.model import version_of
from didyma.serve.app import Service
from tests.docs.blocks import ROOT, Block
from tests.serve.conftest import running

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

# Training that is as thorough as a page wants would take minutes; the last word counts.
QUICK = {
    ("rerank", "fit"): ["--time-budget", "0"],
    ("nli", "fit"): ["--epochs", "1"],
    ("parse", "fit"): ["--epochs", "1"],
    ("passage", "fit"): ["--epochs", "1"],
}


def shape(value: Any) -> Any:
    """Which keys and kinds of values an answer has."""
    if isinstance(value, dict):
        return {key: shape(own) for key, own in value.items()}
    return [shape(own) for own in value] if isinstance(value, list) else type(value)


class Session:
    """Runs blocks as a reader would, in the present folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {}
        self.printed = ""
        self.answers: list[Any] = []
        self._running = contextlib.ExitStack()
        self._client: httpx.Client | None = None
        self._service: Service | None = None

    def serve(self, service: Service, host: str, port: int) -> None:
        """Take the place of `didyma.serve.server.serve`, which would not return."""
        self.close()
        self._service = service
        self._client = self._running.enter_context(running(service))

    def close(self) -> None:
        """End what is served."""
        self._running.close()

    def run(self, page: Path, block: Block) -> None:
        """Run a block, or compare it with what was printed and answered."""
        if block.mark == "prints":
            for line in block.code.splitlines():
                assert line.rstrip() in self.printed, (
                    f"{page.name} promises: {line}\n{self.printed}"
                )
        elif block.language == "json" and self.answers:
            assert shape(json.loads(block.code)) == shape(self.answers[-1])
        elif block.runs and block.language == "python":
            code = compile("\n" * (block.line - 1) + block.code, page, "exec")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, self.names)
            self.printed += printed.getvalue()
        elif block.runs:
            for line in commands(block):
                self.command(line)

    def command(self, line: str) -> None:
        """Do what a line of a shell says; what stands after && is for when it succeeds."""
        line, _, rest = line.partition(" && ")
        program, *words = map(os.path.expandvars, shlex.split(line, comments=True))
        if program == "didyma":
            if self.didyma(words, may_refuse=bool(rest)):
                return
        elif program == "curl":
            self.curl(words)
        elif program in ("printf", "cp", "mv"):
            subprocess.run(line, shell=True, cwd=self.folder, check=True)
        elif program == "export":
            name, _, value = words[0].partition("=")
            os.environ[name] = value
        elif program == "sleep":
            self.wait()
        elif program == "make":
            assert {word for word in words if "=" not in word} <= set(TARGETS), line
        elif (program, words[:1]) == ("pip", ["install"]):
            assert known(words[-1]), line
        else:
            raise AssertionError(f"no test knows how to run: {line}")
        if rest:
            self.command(rest)

    def didyma(self, words: list[str], *, may_refuse: bool = False) -> int:
        """A command, in this process; its exit code."""
        found = CliRunner().invoke(app, [*words, *QUICK.get(tuple(words[:2]), [])])
        codes = (0, NOT_BETTER) if may_refuse else (0,)
        assert found.exit_code in codes, f"didyma {shlex.join(words)}\n{found.output}"
        self.printed += found.output
        return found.exit_code

    def wait(self) -> None:
        """As a reader who sleeps: until the models that are served are those of their files."""
        assert self._service is not None, "nothing is served"
        deadline = time.monotonic() + 30
        while any(
            own.version != version_of(own.path).id
            for models in (self._service.models, self._service.shadows)
            for own in models.by_name.values()
        ):
            assert time.monotonic() < deadline, "a model was not loaded"
            time.sleep(0.05)

    def curl(self, words: list[str]) -> None:
        """A request to what was served last."""
        path = "/" + words[0].removeprefix("http://").partition("/")[2]
        body = words[words.index("-d") + 1] if "-d" in words else None
        headers = dict([words[words.index("-H") + 1].split(": ")]) if "-H" in words else {}
        assert self._client is not None, "nothing is served"
        ask = self._client.get if body is None else partial(self._client.post, content=body)
        answer = ask(path, headers=headers)
        assert answer.status_code == 200, answer.text
        is_json = answer.headers["content-type"].startswith("application/json")
        self.answers.append(answer.json() if is_json else answer.text)


def commands(block: Block) -> Iterator[str]:
    """The lines of a block of shell; of a console, those that are typed."""
    for line in block.code.replace("\\\n", " ").splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue
        if line.strip() and not line.startswith("#"):
            yield line.removeprefix("$ ")


def known(requirement: str) -> bool:
    """Whether there are the extras that somebody is to install."""
    found = re.fullmatch(r"(?:didyma|\.)(?:\[([\w,-]+)\])?", requirement)
    if found is None:
        return False
    wanted = set(found[1].split(",")) if found[1] else set()
    return wanted <= set(PROJECT["optional-dependencies"])
