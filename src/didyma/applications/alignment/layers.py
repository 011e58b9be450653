"""Soft alignment of two sentences: by softmax, by two chains, or by one matching.

Each layer takes scores (B, M, N) of pairs of words, padded to the longest sentences, and the words
of premise and hypothesis, ``lengths`` (B, 2) on the CPU. It says how much of each hypothesis word a
premise word is aligned to, and the other way round. Chains and matchings are solved by SparseMAP,
so that both are mixtures of few structures (Niculae, Martins, Blondel and Cardie 2018).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from didyma.errors import check_choice
from didyma.nn import sparsemap
from didyma.polytope import Distributions
from didyma.structures import Chain, DistanceBins, Matching


class Aligned(NamedTuple):
    """Weights (B, M, N) of hypothesis words for each premise word, and the other way round.

    Both are 0 in padding. ``solutions`` has the structures: of one matching, or of the chain over
    the premise and the chain over the hypothesis.
    """

    to_hypothesis: Tensor
    to_premise: Tensor
    solutions: tuple[Distributions, ...] = ()


class SoftmaxAlignment(nn.Module):
    """Every word chooses for itself: a softmax over each row, and one over each column.

    >>> scores = torch.tensor([[[1.0, 1.0], [0.0, 0.0]]])
    >>> SoftmaxAlignment()(scores, torch.tensor([[2, 2]])).to_hypothesis
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """

    def forward(self, scores: Tensor, lengths: Tensor) -> Aligned:
        """Dense weights; rows of the first and columns of the second sum to 1."""
        rows, columns = (
            torch.arange(size) < lengths[:, side, None]
            for side, size in enumerate(scores.shape[1:])
        )
        inside = (rows[:, :, None] & columns[:, None, :]).to(scores.device)
        masked = scores.masked_fill(~inside, torch.finfo(scores.dtype).min)
        return Aligned(masked.softmax(2) * inside, masked.softmax(1) * inside)


class _SparseMAPAlignment(nn.Module):
    """A layer whose weights are mixtures of structures; SparseMAP stops at a gap of ``tol``."""

    def __init__(self, tol: float = 1e-9, n_jobs: int | None = None) -> None:
        super().__init__()
        self.solver = {"tol": tol, "n_jobs": n_jobs}

    def _solve(
        self, scores: Tensor, structure: Chain | Matching, lengths: Tensor, **additional: Tensor
    ) -> tuple[Tensor, Distributions]:
        options = {"lengths": lengths, "return_solution": True, **self.solver}
        return sparsemap(scores, structure, **options, **additional)


class SequentialAlignment(_SparseMAPAlignment):
    """A chain over the premise, whose tags are hypothesis words, and one the other way round.

    Each chain has nine weights of its own, by how far the alignment moves from a word to the next
    (see `DistanceBins`): 18 parameters, which begin at 0.
    """

    def __init__(self, tol: float = 1e-9, n_jobs: int | None = None) -> None:
        super().__init__(tol, n_jobs)
        self.weights = nn.Parameter(torch.zeros(2, DistanceBins.n_weights))

    def forward(self, scores: Tensor, lengths: Tensor) -> Aligned:
        """Rows of the first and columns of the second sum to 1."""
        m, n = lengths.T
        to_hypothesis, over_premise = self._chain(scores, m, n, self.weights[0])
        to_premise, over_hypothesis = self._chain(scores.mT, n, m, self.weights[1])
        return Aligned(to_hypothesis, to_premise.mT, (over_premise, over_hypothesis))

    def _chain(
        self, scores: Tensor, lengths: Tensor, n_tags: Tensor, weights: Tensor
    ) -> tuple[Tensor, Distributions]:
        outside = torch.arange(scores.shape[2]) >= n_tags[:, None]
        scores = scores.masked_fill(outside[:, None, :].to(scores.device), -torch.inf)
        bins = DistanceBins(n_tags.tolist()).indices()
        additional = {name: weights[torch.from_numpy(index)] for name, index in bins.items()}
        return self._solve(scores, Chain(), lengths, **additional)


class MatchingAlignment(_SparseMAPAlignment):
    """One mixture of maximal matchings for both directions; it has no parameters.

    Lines of the shorter side sum to 1, those of the longer side to 1 at most.

    >>> scores = torch.tensor([[[2.0, 1.0], [2.0, 0.5]]])
    >>> MatchingAlignment()(scores, torch.tensor([[2, 2]])).to_premise
    tensor([[[0.3750, 0.6250],
             [0.6250, 0.3750]]])
    """

    def forward(self, scores: Tensor, lengths: Tensor) -> Aligned:
        """The same weights twice."""
        weights, solution = self._solve(scores, Matching(), lengths)
        return Aligned(weights, weights, (solution,))


ALIGNMENTS = ("softmax", "sequential", "matching")


def alignment_layer(name: str, tol: float = 1e-9, n_jobs: int | None = None) -> nn.Module:
    """The layer of that name; SparseMAP stops at a duality gap of ``tol``."""
    check_choice(name, ALIGNMENTS, "alignment")
    if name == "softmax":
        return SoftmaxAlignment()
    return (SequentialAlignment if name == "sequential" else MatchingAlignment)(tol, n_jobs)
