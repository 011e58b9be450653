"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What a law costs depends on what else the machine does: no test may fail for that.
settings.register_profile("didyma", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("didyma")

# Tests run on all cores already; threads of small networks would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets, which are never part of the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data sets are not on this machine (expected ../shared/data)")
    return folder
