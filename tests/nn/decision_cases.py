"""Structures with all their outputs, for losses and layers that know them by an argmax alone."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import torch

from didyma import Structure
from didyma.structures import Choice, Matching, Tree
from tests.laws.enumeration import is_tree


class Runs(Structure):
    """A run of two or three neighbours: outputs of different sizes."""

    def argmax(self, scores):
        runs = [
            range(i, j) for i, j in product(range(len(scores) + 1), repeat=2) if 2 <= j - i <= 3
        ]
        return np.array(max(runs, key=lambda run: scores[list(run)].sum()))


def _runs():
    for i, j in product(range(6), repeat=2):
        if 2 <= j - i <= 3:
            row = np.zeros(5)
            row[i:j] = 1
            yield row


def _trees():
    for heads in product(range(4), repeat=3):
        if is_tree([-1, *heads]):
            arcs = np.zeros((4, 4))
            arcs[np.arange(1, 4), list(heads)] = 1
            yield arcs


def _matchings():
    for columns in permutations(range(3)):
        yield np.eye(3)[list(columns)]


# Name: structure, and all outputs (n_outputs, …) as 0/1 arrays in the shape of the scores.
CASES = {
    "own": (Runs(), np.array(list(_runs()))),
    "choice": (Choice(), np.eye(4)),
    "tree": (Tree(), np.array(list(_trees()))),
    "matching": (Matching(), np.array(list(_matchings()))),
}


def draw(outputs, batch=8, seed=0, scale=1.0):
    """Scores of a batch."""
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, *outputs.shape[1:])
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def best(outputs, scores):
    """Values and 0/1 outputs of the maximum, by enumeration."""
    rows = torch.from_numpy(outputs.reshape(len(outputs), -1))
    values, places = (scores.flatten(1) @ rows.T).max(1)
    return values, torch.from_numpy(outputs)[places]
