"""Shared fixtures."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What a law costs depends on what else the machine does: no test may fail for that.
settings.register_profile("didyma", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("didyma")

# Tests run on all cores already; threads of small networks would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def hooks() -> dict[str, object]:
    """What is shared by all of a process: who logs, who is told of faults, warnings and signals."""
    handlers = logging.getLogger().handlers
    return {
        "handlers": [one for one in handlers if not type(one).__module__.startswith("_pytest")],
        "sys.unraisablehook": sys.unraisablehook,
        "threading.excepthook": threading.excepthook,
        "warnings.showwarning": warnings.showwarning,
    } | {name.name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}


@pytest.fixture(autouse=True)
def process_is_left_as_it_was() -> Iterator[None]:
    """Law: what a test runs in this process leaves nothing there that others would meet."""
    before = hooks()
    yield
    assert hooks() == before


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets, which are never part of the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data sets are not on this machine (expected ../shared/data)")
    return folder
