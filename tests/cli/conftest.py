"""Small files and a way to run commands on them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from didyma import execution
from didyma.cli import app
from didyma.data import formats
from didyma.data.lists import Lists

Run = Callable[..., Any]
MAP, ROC, NAMED = (f"{name}.didyma.safetensors" for name in ("map", "roc", "named"))  # models


def make(seed: int, n_queries: int = 12, *, names: bool = False) -> Lists:
    """Queries of eight rows, whose relevance the first two of four features tell, nearly."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(8 * n_queries, 4)).round(3)
    signal = 2 * X[:, 0] - X[:, 1] + random.normal(size=len(X))
    y = np.zeros(len(X))
    for rows in np.arange(len(X)).reshape(n_queries, 8):
        y[rows[np.argsort(-signal[rows])[:2]]] = [2, 1]
    qid = np.repeat([f"s{seed}q{q}" for q in range(n_queries)], 8)
    docid = np.array([f"d{row}" for row in range(len(X))])
    return Lists(X, y, qid, docid, ("bm25", "length", "age", "clicks") if names else None)


def interrupt(arguments: list[str], sent: signal.Signals, awaited: str, code: int) -> str:
    """Send a signal to a command when it has said something; what else it says on stderr."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from didyma.cli import main; main()", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if awaited in line:  # there is something to keep
            break
    process.send_signal(sent)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait() == code, rest
    return rest


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command; its exit code must be the one that is expected."""
    # Wide enough for no message of usage to be broken into lines.
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    budget = execution.threads(None)

    def invoke(*arguments: object, code: int = 0, died: type[BaseException] | None = None) -> Any:
        words = [str(argument) for argument in arguments]
        if died is not None:
            with pytest.raises(died):
                CliRunner().invoke(app, words, catch_exceptions=False)
            return None
        found = CliRunner().invoke(app, words)
        shown = f"{found.stdout}\n{found.stderr}\n{found.exc_info}"
        assert found.exit_code == code, shown
        assert "Traceback" not in found.output, shown
        if code == 1:
            assert found.stderr.splitlines()[-1].startswith("error: "), shown
        return found

    with budget:  # what --jobs sets ends with the test
        yield invoke


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data files, models trained on them, runs and judgements; not to be changed by a test."""
    folder = tmp_path_factory.mktemp("cli")
    for seed, name in enumerate(("train", "dev", "test")):
        data = make(seed)
        formats.write(data, folder / f"{name}.letor")
        formats.write(make(seed, names=True), folder / f"{name}.csv")
    lines = [f"{q} 0 {d} {y:.0f}" for q, d, y in zip(data.qid, data.docid, data.y)]
    (folder / "qrels.txt").write_text("\n".join(lines) + "\n")
    for name, *options in (
        ("map", "train.letor"),
        ("named", "train.csv"),
        ("roc", "train.letor", "--loss", "roc", "--scale", "query-minmax"),
    ):
        arguments = ["fit", str(folder / options[0]), *options[1:]]
        model = folder / f"{name}.didyma.safetensors"
        found = CliRunner().invoke(app, [*arguments, "-o", str(model)])
        assert found.exit_code == 0, found.output
        if name != "named":
            files = [str(model), str(folder / "test.letor"), "-o", str(folder / f"{name}.run")]
            assert CliRunner().invoke(app, ["rank", *files, "--tag", name]).exit_code == 0
    return folder
