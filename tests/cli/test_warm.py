"""`didyma warm` reaches kernels of every kind."""

from __future__ import annotations

import json

import numba
import pytest

from didyma.formats import short_letor
from tests.cli.conftest import Run


@pytest.mark.skipif(
    not numba.config.DISABLE_JIT, reason="compiles for minutes; run where kernels are plain Python"
)
def test_every_kind_of_work_is_done(run: Run, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(short_letor, "SHORT", 0)
    result = run("warm", "--json")
    assert {"cache", "kernels", "compiled", "seconds"} == json.loads(result.stdout).keys()
    assert "structures" in result.stderr
