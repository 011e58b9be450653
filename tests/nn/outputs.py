"""All outputs of small structures, as vectors: what layers and losses are held against."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from didyma import DataError, Structure
from didyma.structures.chain import Chain
from didyma.structures.choice import Choice
from didyma.structures.matching import Matching
from didyma.structures.segmentation import Segmentation
from didyma.structures.top_k import TopK
from didyma.structures.tree import Tree


class Contiguous(Structure):
    """A run of two neighbours; ``bonus`` scores where it starts."""

    def additional(self, shape):
        return {"bonus": (shape[0] - 1,)}

    def argmax(self, scores, bonus=None):
        bonus = np.zeros(len(scores) - 1) if bonus is None else bonus
        start = int(np.argmax(scores[:-1] + scores[1:] + bonus))
        parts = [start, start + 1]
        return np.array([*parts, len(scores) + start] if bonus.any() else parts)


@dataclass
class Case:
    """A batch of two instances, the second shorter where lengths are known."""

    structure: Structure
    shape: tuple[int, ...]
    lengths: Any
    gold: Any
    candidates: list[Any]  # natural outputs, of which some may be impossible
    additional: dict[str, tuple[int, ...]]

    def __str__(self):
        return f"{type(self.structure).__name__}-{len(self.additional)}"


def heads(n):
    return [(-1, *rest) for rest in product(range(-1, n + 1), repeat=n)]


CASES = [
    Case(Choice(), (4,), [4, 3], [1, 0], list(range(4)), {}),
    Case(
        Chain(),
        (3, 2),
        [3, 2],
        [[0, 1, 1], [1, 0, -1]],
        list(product((-1, 0, 1), repeat=3)),
        {"transitions": (2, 2), "start": (2,), "end": (2, 2)},  # end: one per instance
    ),
    Case(
        Chain(),
        (3, 2),
        None,
        [[0, 1, 1], [1, 0, 0]],
        list(product((0, 1), repeat=3)),
        {"transitions": (2, 2, 2, 2)},
    ),
    Case(Tree(), (4, 4), [3, 2], [[-1, 2, 0, 2], [-1, 0, 1, -1]], heads(3), {}),
    Case(
        Matching(),
        (3, 2),
        [[3, 2], [2, 2]],
        [[1, -1, 0], [0, 1, -1]],
        list(product((-1, 0, 1), repeat=3)),
        {},
    ),
    Case(
        TopK(2, exactly=False),  # one of its outputs has no part at all
        (3,),
        [3, 2],
        [[1, 0, 1], [0, 0, 0]],
        list(product((0, 1), repeat=3)),
        {},
    ),
    Case(
        Segmentation(),
        (3, 2, 2),
        [3, 2],
        [[0, 1, 2], [2, 0, -1]],
        list(product(range(-1, 4), repeat=3)),
        {"transitions": (2, 2)},
    ),
]


def tensors(case, dtype=torch.float64, seed=0, scale=0.5):
    """Scores and additional scores of a batch of two, all of which want gradients."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return (scale * torch.randn(*shape, generator=generator, dtype=dtype)).requires_grad_()

    return normal(2, *case.shape), {name: normal(*s) for name, s in case.additional.items()}


def vectors(case, scores, b, **additional):
    """Parts M (D, d) and additional parts N (D, f) of instance b's outputs, and their scores."""
    structure = case.structure
    layout = structure.lay_out(scores, case.lengths, **additional)
    found = {}
    for candidate in case.candidates:
        outputs = np.array(case.gold)
        outputs[b] = candidate
        try:
            parts, extra_parts = structure.encode(outputs, layout)
        except DataError:
            continue
        m, n = np.zeros(layout.scores.shape[1]), np.zeros(layout.extra.shape[1])
        np.add.at(m, parts[b][parts[b] >= 0], 1)
        np.add.at(n, extra_parts[b][extra_parts[b] >= 0], 1)
        found[m.tobytes(), n.tobytes()] = m, n
    M, N = (np.array(rows) for rows in zip(*found.values()))
    scores, extra = layout.scores[b], layout.extra_of(b)
    theta = np.where(M > 0, scores, 0) @ np.ones(M.shape[1]) + N @ extra
    return M, N, theta
