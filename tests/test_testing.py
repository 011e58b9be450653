"""The laws that users test their own structures by: they pass what is right, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from didyma import DataError
from didyma.testing import check_structure
from tests.structures.test_prediction import Evens, Fits, Walk, evens


def all_evens(scores):
    return [np.isin(np.arange(len(scores)), parts) for parts in evens(len(scores))]


def test_the_law_suite_passes_what_is_right():
    check_structure(Evens(), lambda rng: rng.standard_normal(5))
    check_structure(Evens(), lambda rng: rng.standard_normal(5), outputs=all_evens)
    check_structure(
        Walk(),
        lambda rng: (
            rng.standard_normal(4),
            {"first": rng.standard_normal(4), "last": rng.standard_normal(4)},
        ),
    )
    check_structure(
        Fits(),
        lambda rng: (rng.random(4), {"weights": rng.integers(1, 4, 4), "capacity": 5}),
    )


class Greedy(Evens):
    """Drops the best where it should drop the worst."""

    def argmax(self, scores):
        best = np.flatnonzero(scores > 0)
        return best[1:] if len(best) % 2 else best


class Fickle(Evens):
    """Answers otherwise at every second call."""

    calls = 0

    def argmax(self, scores):
        self.calls += 1
        return super().argmax(scores if self.calls % 2 else -scores)


class Odd(Evens):
    """Remembers what it was asked before."""

    def __init__(self):
        self.last = None

    def argmax(self, scores):
        first, self.last = self.last, scores
        return super().argmax(scores if first is None or scores[0] == first[0] else first)


@pytest.mark.parametrize("structure", [Greedy(), Fickle(), Odd()])
def test_the_law_suite_fails_what_is_wrong(structure):
    with pytest.raises(AssertionError):
        check_structure(structure, lambda rng: rng.standard_normal(5), outputs=all_evens)


def test_the_law_suite_wants_single_instances():
    with pytest.raises(DataError, match="draw: expected scores of one instance, with 1 axes"):
        check_structure(Evens(), lambda rng: rng.standard_normal((2, 5)))
