"""The interfaces that docs/production.md lists are there, under these names."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from typer.main import get_command

from didyma.cli import app
from didyma.serve.app import Service
from didyma.serve.served import ServedModels
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "production.md").read_text()
ROWS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
    for line in PAGE.partition("|---|---|---|---|\n")[2].splitlines()
]


def options_of(command: str) -> set[str]:
    """The options of a command of didyma."""
    found: Any = get_command(app)
    for name in command.split()[1:]:
        with found.make_context(found.name, [name], resilient_parsing=True) as context:
            found = found.get_command(context, name)
        assert found is not None, command
    return {option for parameter in found.params for option in parameter.opts}


def test_each_command_is_there() -> None:
    commands = [code for row in ROWS for code in row[1]]
    assert len(commands) >= 10
    for code in commands:
        command, *options = re.split(r" (?=--)", code)
        assert set(options) <= options_of(command), code


def test_each_name_is_there() -> None:
    names = [code for row in ROWS for code in row[2]]
    assert len(names) >= 8
    for name in names:
        resolve_name(name)


def test_each_path_and_option_of_the_server_is_there() -> None:
    served = [code for row in ROWS for code in row[3]]
    paths = {getattr(route, "path", "") for route in Service(ServedModels([])).app.routes}
    assert len(served) >= 10
    for code in served:
        assert code in paths | options_of("didyma serve") | {"then"}, code


@pytest.mark.parametrize("file", ["grafana.json", "alerts.yaml", "compose.yaml"])
def test_each_file_that_is_deployed_is_there(file: str) -> None:
    assert Path(ROOT, "deploy", file).exists()
