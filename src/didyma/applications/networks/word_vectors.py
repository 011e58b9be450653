"""Word vectors that a user has: checked, and where a network starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from didyma import DataError

# Words and the vector of each, as `didyma.data.word_vectors.read` gives them.
Vectors: TypeAlias = "tuple[Sequence[str], ArrayLike]"


def as_vectors(vectors: Vectors | None, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """Words and a matrix of their vectors; of no words, in the dimension wanted, without any."""
    if vectors is None:
        return [], np.zeros((0, dimension), np.float32)
    words, given = list(vectors[0]), np.asarray(vectors[1], dtype=np.float32)
    if not words:
        raise DataError("expected vectors of some words, found none", field="vectors")
    if given.ndim != 2 or len(given) != len(words) or not given.size:
        raise DataError(
            f"expected a vector for each of {len(words)} words, found shape {given.shape}",
            field="vectors",
        )
    return words, given


def start_from(
    embedding: nn.Embedding, numbers: Sequence[int], given: NDArray[np.float32], *, tune: bool
) -> None:
    """Give the rows ``numbers`` these vectors, and others the same spread; train them or not."""
    with torch.no_grad():
        embedding.weight *= float(given.std())
        embedding.weight[list(numbers)] = torch.from_numpy(given)
    embedding.weight.requires_grad_(tune)
