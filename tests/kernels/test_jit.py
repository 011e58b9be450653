"""Compilation: caches that are hit, missing or unusable, and templates."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from didyma.kernels.jit import bind, jit, specialise

PROGRAM = """
import numpy as np
from didyma.learning.plane_dual import PlaneDual
from didyma.kernels.select import descending
index = np.arange(3)
descending(np.array([1.0, 3.0, 2.0]), index)
print(index.tolist(), sum(descending.stats.cache_hits.values()))
"""


def run(cache_dir: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache_dir}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_kernels_are_cached_across_processes(tmp_path):
    assert run(str(tmp_path)) == "[1, 2, 0] 0"
    assert run(str(tmp_path)) == "[1, 2, 0] 1"
    assert [path.name for path in tmp_path.iterdir()] == ["didyma"]


def test_an_unusable_cache_folder_does_no_harm(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(str(blocked / "below")) == "[1, 2, 0] 0"


def operation(x):
    raise AssertionError("never bound")


def twice(x):
    return operation(operation(x))


def test_one_template_serves_compiled_and_plain_functions():
    @jit
    def double(x):
        return 2.0 * x

    native = specialise(twice, "twice_double", cached=False, operation=double)
    plain = bind(twice, "twice_list", operation=lambda x: [x])
    assert native(3.0) == 12.0
    assert plain(3.0) == [[3.0]]
    assert native.py_func.__name__ == "twice_double"


def test_sums_may_be_reordered_but_nan_and_infinity_are_kept():
    @jit
    def classify(x):
        return np.isnan(x), np.isinf(x)

    assert classify(np.nan) == (True, False)
    assert classify(np.inf) == (False, True)
