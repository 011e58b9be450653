"""What others see of a release: types from outside, and whom to cite."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import didyma

ROOT = Path(__file__).parents[1]
CONSUMER = """\
import numpy as np
from didyma import Lists, SVMRanker

lists = Lists(np.eye(2), np.array([1.0, 0.0]))
ranker: SVMRanker = SVMRanker(C=1.0).fit(lists)
scores: list[int] = ranker.predict(lists)
"""


def test_a_project_outside_sees_the_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "consumer.py"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
    (error,) = (line for line in found.splitlines() if "error:" in line)
    assert error.startswith("consumer.py:6: error: Incompatible types in assignment")
    assert "float64" in error


def test_who_cites_it_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [didyma.__version__]
    assert re.findall(r"^license: (.*)$", text, re.MULTILINE) == ["BSD-3-Clause"]
