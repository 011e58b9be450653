"""Parts of a collection that take turns: three to train on, one to choose by, one to test on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from didyma.data import letor
from didyma.data.lists import Lists

__all__ = ["N_PARTS", "Fold", "in_turn", "join", "read_parts", "turns"]

N_PARTS = 5

Data = TypeVar("Data")


@dataclass(frozen=True, eq=False)
class Fold(Generic[Data]):
    """What to train on, to choose by, and to test on."""

    train: Data
    validation: Data
    test: Data


def turns(parts: Sequence[Data]) -> Iterator[tuple[list[Data], Data, Data]]:
    """Fold 1 trains on parts 1 to 3, chooses by 4 and tests on 5; the others follow in turn."""
    for first in range(len(parts)):
        *training, validation, test = [*parts[first:], *parts[:first]]
        yield training, validation, test


def in_turn(parts: Sequence[Lists]) -> list[Fold[Lists]]:
    """The folds of parts of dense rows."""
    return [Fold(join(training), *others) for training, *others in turns(parts)]


def join(parts: Sequence[Lists]) -> Lists:
    """Dense rows of some parts together; no query stands in two of them."""
    X = np.concatenate([part.X for part in parts])
    y = np.concatenate([part.y for part in parts])
    return Lists(X, y, np.concatenate([part.qid for part in parts]))


def read_parts(folder: Path) -> list[Lists]:
    """S1.txt to S5.txt of a LETOR collection as dense rows."""
    return [letor.read(folder / f"S{n + 1}.txt", sparse=False) for n in range(N_PARTS)]
