"""A few trials of survival; `make survive` runs a hundred."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.survival.trials import PROGRAMS

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_programs_go_on() -> None:
    """In a process of its own, without threads, so that it may fork."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.survival.trials", "--trials", str(len(PROGRAMS))],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts.keys() == PROGRAMS.keys()
    for own in counts.values():
        assert own["the same objective"] == own["trials"] <= own["deaths"]
