"""Damaged inputs of every kind: each is used, or refused with an error of ours, and none crashes.

`make fuzz` runs the same targets for longer, and keeps what it finds in the corpus.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any

import pytest

import didyma.data
from tests.fuzz.mutators import damaged
from tests.fuzz.target import CORPUS, Target, attempt, kept
from tests.fuzz.targets import READERS, TARGETS

ROUNDS = 5
OWN = {"didyma.data.lists_writer.read_records"}  # of files that live as long as the process


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_inputs_are_used_or_refused(target: Target, tmp_path: Path) -> None:
    (made := tmp_path / "seed").mkdir()
    valid = target.seed(made)
    assert attempt(target, valid, tmp_path) == "result", target.name
    for name, parts in kept(target.name).items():
        try:
            attempt(target, parts, tmp_path)
        except Exception as error:
            error.add_note(f"of the corpus: {target.name}/{name}")
            raise
    for number in range(ROUNDS):
        parts = damaged(valid, Random(f"0 {target.name} {number}"))
        try:
            attempt(target, parts, tmp_path)
        except Exception as error:
            error.add_note(f"input {number}: {parts!s:.3000}")
            raise


def test_the_corpus_is_of_targets_that_exist() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= {target.name for target in TARGETS}


def readers() -> Iterator[tuple[str, CodeType]]:
    """The functions that read files, of all formats."""
    for found in pkgutil.walk_packages(didyma.data.__path__, "didyma.data."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            own = inspect.unwrap(value) if callable(value) else value
            is_own = inspect.isfunction(own) and own.__module__ == module.__name__
            if name.startswith(("read", "blocks")) and is_own:
                yield f"{own.__module__}.{name}", own.__code__


def test_every_reader_is_a_target(tmp_path: Path) -> None:
    """By the functions that are called while valid inputs are read."""
    called: set[CodeType] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        called.add(frame.f_code)

    for target in READERS:
        (made := tmp_path / target.name).mkdir()
        valid = target.seed(made)
        for name, contents in valid.items():
            path = made / "given" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
        sys.setprofile(note)
        try:
            target.read(made / "given")
        finally:
            sys.setprofile(None)
    assert {name for name, code in readers() if code not in called} == OWN
