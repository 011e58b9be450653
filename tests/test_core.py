"""The compiled core: which build is loaded, and what it takes as arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from didyma import _core
from didyma._core.sums import dot

BUILDS = {path.name.split(".")[0] for path in Path(_core.__file__).parent.glob("*.so")}
BUILDS -= {"strict"}  # which adds in index order


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("build", sorted(BUILDS))
def test_every_build_has_the_same_bits(build: str) -> None:
    numbers = np.random.default_rng(0).normal(size=1003)
    program = (
        "import numpy as np; from didyma._core.sums import dot; "
        "a = np.random.default_rng(0).normal(size=1003); print(dot(a, a).hex())"
    )
    assert run(program, DIDYMA_CORE=build).stdout.strip() == dot(numbers, numbers).hex()


def test_an_unknown_build_says_how_to_make_it() -> None:
    done = run("import didyma._core", DIDYMA_CORE="v9")
    assert "no build 'v9': run `pip install .`" in done.stderr


@pytest.mark.parametrize(
    "argument",
    [
        np.zeros(4, np.float32),
        np.zeros((2, 2)),
        np.zeros(8)[::2],
        np.zeros(4, ">f8"),
        [0.0, 0.0],
        None,
    ],
)
def test_nothing_is_converted(argument: object) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        dot(argument, np.zeros(4))


def test_read_only_and_empty_arrays_are_read() -> None:
    ones = np.ones(3)
    ones.flags.writeable = False
    assert dot(ones, ones) == 3.0
    assert dot(ones[:0], ones[:0]) == 0.0
