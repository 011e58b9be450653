from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from didyma import __version__
from didyma.cli import app
from didyma.cli.output import check_output, explain
from didyma.errors import DataError
from tests.cli.conftest import Run

COMMANDS = ("fit", "predict", "rank", "eval", "compare", "convert", "inspect", "demo")


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"didyma {__version__}\n"


def test_help_names_every_command(run: Run) -> None:
    shown = run("--help").stdout
    for command in COMMANDS:
        assert command in shown
    assert "didyma fit train.txt" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(run: Run, command: str) -> None:
    shown = run(command, "--help").stdout
    assert "Example" in shown
    assert f" didyma {command} " in shown.partition("Example")[2]


def test_wrong_calls_are_explained(run: Run) -> None:
    assert "No such command 'fitt'" in run("fitt", code=2).stderr
    assert "Missing argument" in run("fit", code=2).stderr
    assert "--colour" in run("fit", "x", "--colour", code=2).stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from didyma.cli import app\n"
        "try:\n    app(['fit', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'ir_measures', 'pandas', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Train a ranker" in found.stdout
    assert found.stderr.strip() == "[]"


def test_a_closed_pipe_ends_quietly(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    arguments = ["predict", folder / "map.didyma.safetensors", folder / "test.letor"]
    code = "from didyma.cli import main; main()"
    found = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (found.returncode, found.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_process_keeps_its_best_model(
    folder: Path, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    output = tmp_path / "m.safetensors"
    arguments = [
        *("fit", str(folder / "train.letor"), "--tol", "1e-15", "--max-iter", "1000000000"),
        *("-o", str(output)),
    ]
    rest = interrupt(arguments, sent, "passes", code)
    assert "the best model so far was kept" in rest
    assert output.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_an_interrupted_reranker_is_kept(tmp_path: Path) -> None:
    records = []
    for i in range(40):
        words = [f"w{(i + k) % 7}" for k in range(4)]
        right = " ".join(word.upper() for word in words)
        texts = [" ".join(reversed(right.split())), right]
        candidates = [{"text": text, "score": -float(k)} for k, text in enumerate(texts)]
        record = {"input": " ".join(words), "reference": right, "candidates": candidates}
        records.append(json.dumps({"id": str(i), **record}))
    train, output = tmp_path / "train.jsonl", tmp_path / "m.safetensors"
    train.write_text("\n".join(records))
    arguments = ["nbest", "fit", str(train), "--model-type", "svm", "-o", str(output)]
    for setting in ("solver=bcfw", "tol=1e-15", "max_iter=1000000000"):
        arguments += ["--set", setting]
    rest = interrupt(arguments, signal.SIGTERM, "round", 143)
    assert "the best model so far was kept" in rest
    assert output.exists()


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


def test_errors_are_one_line() -> None:
    assert explain(FileNotFoundError(errno.ENOENT, "No such file", "a")) == "a: No such file"
    assert explain(OSError("something")) == "something"
    assert explain(MemoryError("2 TiB")) == "out of memory (2 TiB)"
    assert explain(MemoryError()) == "out of memory"
    assert explain(ValueError("first\nsecond")) == "first"
    assert explain(ValueError()) == "ValueError"


def test_memory_and_unforeseen_errors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from didyma.cli import inspect

    def fail(error: Exception) -> None:
        def raises(*_: object) -> None:
            raise error

        monkeypatch.setattr(inspect, "is_model", raises)

    fail(MemoryError())
    assert run("inspect", "x", code=1).stderr == "error: out of memory\n"
    fail(PermissionError(errno.EACCES, "Permission denied", "x"))
    assert run("inspect", "x", code=1).stderr == "error: x: Permission denied\n"
    fail(RuntimeError("a bug"))  # which nobody should mistake for a mistake of theirs
    assert isinstance(CliRunner().invoke(app, ["inspect", "x"]).exception, RuntimeError)


def test_outputs_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a"
    source.touch()
    check_output(None)
    check_output(tmp_path / "b", source, None)
    check_output(Path(os.devnull), source)
    (tmp_path / "link").symlink_to(source)
    for path, message in (
        (tmp_path / "link", "is an input"),
        (tmp_path, "a folder"),
        (tmp_path / "none" / "b", "there is no folder"),
    ):
        with pytest.raises(DataError, match=message):
            check_output(path, source)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DataError, match="no permission"):
        check_output(tmp_path / "b")
