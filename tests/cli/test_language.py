"""The command line speaks one language: one name for one thing, in every command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from didyma.cli.commands import COMMANDS, Commands, app
from tests.cli.conftest import Run


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name."""
    group = Commands(name="didyma")
    for name in COMMANDS:
        command = group.get_command(None, name)
        for own, part in getattr(command, "commands", {"": command}).items():
            yield f"{name} {own}".strip(), part


ALL = dict(commands())


def parameters(command: Any, kind: str) -> list[Any]:
    return [one for one in command.params if one.param_type_name == kind]


def arguments(command: Any) -> list[str]:
    return [one.metavar for one in parameters(command, "argument")]


def flags(command: Any) -> dict[str, Any]:
    return {flag: one for one in parameters(command, "option") for flag in one.opts}


def test_the_app_knows_them() -> None:
    assert len(ALL) > 30
    assert app is not None


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
