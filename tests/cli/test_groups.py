from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import typer
from typer.testing import CliRunner

from didyma.cli import options
from didyma.cli.fit import RANKER
from didyma.cli.groups import Option, ParametersOf, command, flag_of

PARSER = "didyma.applications.parsing.parser.DependencyParser"
RESOLVER = "didyma.applications.coreference.resolver.CoreferenceResolver"


@dataclass(frozen=True)
class Place:
    PANEL: ClassVar[str] = "Places"

    folder: Annotated[Path, options.text("FOLDER", "Where.")] = Path("here")
    deep: Annotated[bool, options.flag("--deep", "How.", "Depth")] = False


def run(group: ParametersOf, *words: str, code: int = 0) -> Any:
    """What a command is given for options of a group, or what it prints if that is wrong."""
    got: list[Any] = []

    def show(*, place: Place, parameters: Any) -> None:
        got.append((place, parameters))

    show.__annotations__["parameters"] = Annotated[dict[str, Any], group]
    app = typer.Typer()
    app.command()(command(show))
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return got[0] if got else result.output + result.stderr


def test_members_of_groups_are_options() -> None:
    group = ParametersOf(PARSER, {None: ["loss", "tags", "layers", "random_state"]})
    place, parameters = run(group, "--tags", "none", "--seed", "7", "--folder", "there", "--deep")
    assert place == Place(Path("there"), True)
    assert parameters == {"loss": "sparsemap", "tags": None, "layers": 2, "random_state": 7}
    assert "'--loss'" in run(group, "--loss", "none", code=2)
    assert "'--layers'" in run(group, "--layers", "0", code=2)


def test_a_group_has_a_panel_of_the_help_unless_an_option_names_another() -> None:
    @command
    def show(*, place: Place, label: Annotated[str, options.text("NAME", "What.")] = "") -> None:
        pass

    def panels(function: Any) -> dict[str, str | None]:
        parameters = inspect.signature(function).parameters.items()
        return {n: p.annotation.__metadata__[0].rich_help_panel for n, p in parameters}

    assert panels(show) == {"folder": "Places", "deep": "Depth", "label": None}


def test_flags_that_set_a_value() -> None:
    group = ParametersOf(PARSER, {None: [Option("single_root", ("--roots",), "Many.", sets=False)]})
    assert run(group)[1] == {"single_root": True}
    assert run(group, "--roots")[1] == {"single_root": False}


def test_numbers_above_zero() -> None:
    group = ParametersOf(RESOLVER, {None: ["r"]})
    assert run(group, "--r", "0.5")[1] == {"r": 0.5}
    for wrong in ("0", "-1", "inf", "nan"):
        assert "expected a number above 0" in run(group, "--r", wrong, code=2)


def test_of_several_classes_only_what_was_given() -> None:
    assert run(RANKER)[1] == {}
    given = run(RANKER, "--bins", "8", "--increasing", "a, b", "--interactions", "3")[1]
    assert RANKER.read("svm, with --bins", given) == {
        "bins": 8,
        "increasing": ("a", "b"),
        "interactions": 3,
    }
    assert list(RANKER.takers("epochs")) == ["latent-perceptron"]
    assert list(RANKER.takers("patience")) == ["svm", "svm, with --bins", "latent-svm"]
    with pytest.raises(typer.BadParameter, match="expected a number or auto, found 'x'"):
        RANKER.read("svm, with --bins", {"interactions": "x"})


def test_names_of_flags() -> None:
    assert [flag_of(name) for name in ("max_iter", "random_state")] == ["--max-iter", "--seed"]
