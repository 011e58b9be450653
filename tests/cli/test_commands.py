"""The command line as a whole: one language, one line for a mistake, exit codes."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from didyma import __version__
from didyma.cli.commands import COMMANDS, Commands, app
from tests.cli.conftest import Run, interrupt


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name."""
    group = Commands(name="didyma")
    for name in COMMANDS:
        command = group.get_command(None, name)
        for own, part in getattr(command, "commands", {"": command}).items():
            yield f"{name} {own}".strip(), part


ALL = dict(commands())


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"didyma {__version__}\n"


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
def test_an_interruption_while_it_is_imported_says_nothing() -> None:
    code = """if True:
        import os, signal, sys
        class Interruption:
            def find_spec(self, name, *_):
                if name == "typer":
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Interruption())
        from didyma.__main__ import main; main()
    """
    found = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True)
    assert (found.returncode, found.stdout, found.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_process_keeps_its_best_model(
    folder: Path, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    output = tmp_path / "m.safetensors"
    arguments = [
        *("fit", str(folder / "train.letor"), "-o", str(output)),
        *("--model-type", "latent-perceptron", "--epochs", "1000000000"),
    ]
    rest = interrupt(arguments, sent, "passes", code)
    assert "the best model so far was kept" in rest
    assert output.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_an_interrupted_reranker_is_kept(tmp_path: Path) -> None:
    records = []
    for i in range(40):
        words = [f"w{(i + k) % 7}" for k in range(4)]
        upper = " ".join(word.upper() for word in words)
        texts = [" ".join(reversed(upper.split())), upper]
        right = texts[i % 2]  # which nothing tells, so that training never ends
        candidates = [{"text": text, "score": -float(k)} for k, text in enumerate(texts)]
        record = {"input": " ".join(words), "reference": right, "candidates": candidates}
        records.append(json.dumps({"id": str(i), **record}))
    train, output = tmp_path / "train.jsonl", tmp_path / "m.safetensors"
    train.write_text("\n".join(records))
    arguments = ["nbest", "fit", str(train), "--model-type", "perceptron", "-o", str(output)]
    rest = interrupt([*arguments, "--set", "epochs=1000000000"], signal.SIGTERM, "round", 143)
    assert "the best model so far was kept" in rest
    assert output.exists()


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


def parameters(command: Any, kind: str) -> list[Any]:
    return [one for one in command.params if one.param_type_name == kind]


def arguments(command: Any) -> list[str]:
    return [one.metavar for one in parameters(command, "argument")]


def flags(command: Any) -> dict[str, Any]:
    return {flag: one for one in parameters(command, "option") for flag in one.opts}


@pytest.mark.parametrize("name", ALL)
def test_arguments_have_one_name_each(name: str) -> None:
    found = arguments(ALL[name])
    known = {"TRAIN", "MODEL", "DATA", "[MODEL] DATA", "MODEL|RUN", "DATA|QRELS", "MODEL|PREDICTED"}
    known |= {"PASSAGES", "INDEX", "QUERY"}  # of searches
    assert set(found) <= known | {"IN", "OUT", "FILE", "LOG", "STORE", "OLD", "NEW"}
    if any("MODEL" in metavar for metavar in found):
        assert "MODEL" in found[0], "the model comes first"
    if name.split()[-1] == "fit":
        assert found == ["TRAIN"]
    if name.split()[-1] == "eval":
        model, data = found
        assert model.startswith("MODEL")
        assert data.startswith("DATA")


def test_a_flag_means_the_same_everywhere() -> None:
    metavars, shorts = defaultdict(set), defaultdict(set)
    for name, command in ALL.items():
        for flag, option in flags(command).items():
            if flag.startswith("--"):
                if name not in ("demo", "index") or flag != "--output":  # a folder
                    metavars[flag].add(option.metavar)
            else:
                shorts[flag] |= {long for long in option.opts if long.startswith("--")}
    # Losses and measures have names without end for rankings, and a few elsewhere.
    # A test set is a file, or a share of what is read.
    differ = {flag for flag, found in metavars.items() if len(found) > 1}
    assert differ <= {"--loss", "--measure", "--C", "--checkpoint", "--test"}
    assert {flag for flag, found in shorts.items() if len(found) > 1} == set()


def test_one_name_for_each_thing() -> None:
    # An index comes first in ask, which can do without a model.
    every = {
        flag for name in ALL for flag in flags(ALL[name]) if (name, flag) != ("ask", "--model")
    }
    others = {"--model", "--kind", "--models", "--seeds", "--random-state", "--threads", "--n-jobs"}
    others |= {"--valid", "--validation", "--held-out", "--eval", "--out", "--workers"}
    assert not every & others


@pytest.mark.parametrize("name", [name for name in ALL if name.split()[-1] == "fit"])
def test_what_trains_has_the_same_options(name: str) -> None:
    found = flags(ALL[name])
    assert {"--output", "-o"} <= found.keys()
    if name != "tag fit":  # which counts
        assert "--jobs" in found


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_help_with_an_example(run: Run, name: str) -> None:
    shown = run(*name.split(), "--help").stdout
    assert f"didyma {name}" in shown.partition("Example")[2]


def test_the_short_help_is_that_of_the_command() -> None:
    group = Commands(name="didyma")
    for name, (_, text) in COMMANDS.items():
        told = (group.get_command(None, name).help or "").partition("\n\n")[0]
        assert " ".join(told.split()) == text


def test_jobs_limit_the_threads(run: Run, folder: Any, tmp_path: Any) -> None:
    from didyma.execution import n_cores

    run("fit", folder / "train.letor", "--jobs", 1, "-o", tmp_path / "m.safetensors")
    assert n_cores() == 1
