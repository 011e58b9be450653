"""What docs/serve.md says beyond its commands, which tests/docs runs."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.serve.process import ServerProcess

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(text)
    service = unit["Service"]
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert f"%S/{service['StateDirectory']}/" in service["ExecStart"]  # where it may write


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd is not installed")
    (text,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "didyma.service"
    path.write_text(text.replace("/opt/didyma/bin/didyma", "/bin/true"))
    verified = subprocess.run([analyze, "verify", path], capture_output=True, text=True)
    assert not [line for line in verified.stderr.splitlines() if "didyma.service" in line]
    exposure = [analyze, "security", "--offline=true", "--threshold=15", path]  # of 100; before 17
    assert subprocess.run(exposure, capture_output=True).returncode == 0


def test_a_model_that_needs_scores_says_so_when_it_is_loaded(tmp_path: Path) -> None:
    from didyma.text.text_reranker import TextReranker
    from tests.text.texts import made

    path = tmp_path / "first.safetensors"
    TextReranker(quick=True).fit(made(12, scores=True)).save(path)
    with ServerProcess(path) as server:
        (said,) = [own for own in server.before if own["event"] == "needs scores"]
        assert said["level"] == "WARNING"
        assert said["model"] == "first"
        assert "trained with the first stage's scores" in said["reason"]
        body = {"query": "when?", "documents": ["Here."]}
        assert server.client.post("/v2/rerank", json=body).status_code == 400
