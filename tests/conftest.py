"""Shared fixtures."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.uncompiled import UNCOMPILED

# What a law costs depends on whether its kernel has been compiled, and on what else the machine
# does: no test may fail for that.
settings.register_profile("didyma", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("didyma")

# Compiling makes millions of objects that live on, and looking through them again and again for
# garbage took an eighth of its time.
gc.set_threshold(100_000, 50, 50)

# Tests run on all cores already; threads of small networks would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Uncompiled kernels divide by zero and overflow as compiled ones do, but NumPy tells."""
    if UNCOMPILED:
        config.addinivalue_line("filterwarnings", r"ignore::RuntimeWarning:didyma\.kernels\..*")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets, which are never part of the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data sets are not on this machine (expected ../shared/data)")
    return folder
