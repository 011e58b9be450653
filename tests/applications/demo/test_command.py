"""`didyma demo`: what it shows of a run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.conftest import Run, make

from didyma.metrics import evaluate
from didyma.report.html import Example, RankedPassage
from didyma.report.table import comparison


def test_demo_shows_the_table_and_where_the_report_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make(0)
    evaluations = {
        name: evaluate(data.X[:, k], data.y, data.groups, "AP") for k, name in enumerate("ab")
    }
    asked: dict[str, Any] = {}

    def pretend(folder: Path, *, random_state: int, report: Any) -> SimpleNamespace:
        asked.update(folder=folder, random_state=random_state)
        report("a step")
        return SimpleNamespace(
            table=comparison(evaluations),
            answers=(
                Example("who?", "", {"TextReranker": [RankedPassage(1, 3, "Ada did.", True)]}),
            ),
            files={"report": folder / "report.html"},
            next_steps=("didyma inspect x",),
        )

    monkeypatch.setattr("didyma.applications.demo.demonstration.run", pretend)
    found = run("demo", "-o", tmp_path, "--seed", "3")
    assert asked == {"folder": tmp_path, "random_state": 3}
    assert found.stderr == "a step\n"
    assert found.stdout.startswith("system")
    assert f"report: {tmp_path / 'report.html'}" in found.stdout
    assert "  didyma inspect x" in found.stdout
    assert "who?\n+ 1 (was 3)   Ada did.\n" in found.stdout
    document = json.loads(run("demo", "-o", tmp_path, "--json").stdout)
    assert document["files"] == {"report": str(tmp_path / "report.html")}
