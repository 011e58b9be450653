"""Whatever is compiled into a kernel is part of its fingerprint."""

from __future__ import annotations

import os
import subprocess
import sys
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from didyma.kernels.fingerprint import fingerprint
from didyma.kernels.jit import bind, jit, jit_sum, specialise


def inner(x):
    return x + 1


def other(x):
    return x + 2


def outer(x):
    return step(x) * SCALE


def step(x):
    return inner(x)


def recursive(x):
    return recursive(x - 1) if x > 0 else SCALE


SCALE = 2.0


class Pair(NamedTuple):
    first: int
    second: int


class Triple(NamedTuple):
    first: int
    second: int
    third: int


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"step": jit(inner)}, {"step": jit(other)}),
        ({"step": inner}, {"step": other}),
        ({"step": jit(inner)}, {"step": jit_sum(inner)}),
        ({"step": bind(step, "a", inner=inner)}, {"step": bind(step, "a", inner=other)}),
        (
            {"step": specialise(step, "a", inner=inner)},
            {"step": specialise(step, "a", inner=other)},
        ),
        ({"SCALE": 1.0}, {"SCALE": 2.0}),
        ({"SCALE": 1.0}, {"SCALE": 1}),
        ({"SCALE": (1, 2)}, {"SCALE": (1, 3)}),
        ({"SCALE": np.arange(3)}, {"SCALE": np.arange(4)}),
        ({"SCALE": np.float32(1)}, {"SCALE": np.float64(1)}),
        ({"SCALE": Pair}, {"SCALE": Triple}),
    ],
)
def test_a_change_of_what_is_used_is_seen(before: dict[str, Any], after: dict[str, Any]):
    first = fingerprint(bind(outer, "outer", **before))
    assert first == fingerprint(bind(outer, "outer", **before))
    assert first != fingerprint(bind(outer, "outer", **after))


def test_names_and_places_do_not_matter():
    assert fingerprint(inner) == fingerprint(bind(inner, "renamed"))


def test_a_kernel_may_call_itself():
    assert fingerprint(recursive) != fingerprint(bind(recursive, "recursive", SCALE=3.0))


@pytest.mark.parametrize("name", ["didyma.kernels.made_up", "a_users_module"])
def test_attributes_of_modules_are_followed(name: str):
    def use(x):
        return module.step(x)  # noqa: F821

    def bound(function: FunctionType) -> FunctionType:
        module = ModuleType(name)
        module.step = function  # type: ignore[attr-defined]
        return bind(use, "use", module=module)

    assert fingerprint(bound(inner)) == fingerprint(bound(inner))
    assert fingerprint(bound(inner)) != fingerprint(bound(other))


def test_defaults_and_closures_count():
    def closed(shift):
        return lambda x, scale=shift: x * scale + shift

    assert fingerprint(closed(1)) == fingerprint(closed(1))
    assert fingerprint(closed(1)) != fingerprint(closed(2))


def test_what_cannot_be_described_is_refused():
    with pytest.raises(TypeError, match="global value of type object"):
        fingerprint(bind(outer, "outer", SCALE=object()))


def test_a_fingerprint_is_the_same_in_every_process():
    """Else a kernel that calls a sum would be compiled again and again: its options are a set."""
    code = "from didyma.kernels import fingerprint, rows; print(fingerprint.fingerprint(rows.dot))"
    found = set()
    for seed in range(6):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-c", code]
        found.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(found) == 1
