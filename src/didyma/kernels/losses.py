"""Ranking losses as steps: what each positive costs by the place it takes.

A loss is  Δ = scale(P, N, k) · (Σ positive(i, j, P, N, k) + Σ negative(i, j, P, N, k)),  summed
over the items of a ranking, each taken at the state (i, j) of positives and negatives placed
before it. Each step function is zero along a perfect ranking. ``k`` is the cut-off of losses that
have one: behind rank k, the steps of a positive depend on i alone and those of a negative on j.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = [
    "ap_positive",
    "before",
    "discount",
    "ndcg_positive",
    "negative",
    "no_scale",
    "per_cutoff",
    "per_ideal_dcg",
    "per_pair",
    "per_positive",
    "precision_positive",
    "roc_positive",
    "rr_positive",
]

DISCOUNTS = 1.0 / np.log2(np.arange(2.0, 1026.0))  # a logarithm costs more than all else of a step


@jit
def discount(above):
    """1/log2(1 + rank) of the item that so many stand above."""
    return DISCOUNTS[above] if above < DISCOUNTS.shape[0] else 1.0 / np.log2(above + 2.0)


@jit
def negative(i, j, P, N, k):
    """Negatives cost nothing by themselves, unless a loss says otherwise."""
    return 0.0


def before(i, j, P, N, k):
    """A ``step(i, j, P, N)`` that behind rank k costs nothing: a template."""
    return step(i, j, P, N) if i + j < k else 0.0  # type: ignore[name-defined]  # noqa: F821


@jit
def no_scale(P, N, k):
    """Steps are the loss."""
    return 1.0


@jit
def ap_positive(i, j, P, N, k):
    """1 − AP: of the precision at this positive, the share that negatives take."""
    return j / (i + j + 1.0)


@jit
def per_positive(P, N, k):
    """Mean over positives."""
    return 1.0 / P


@jit
def rr_positive(i, j, P, N, k):
    """1 − 1/rank of the first positive."""
    return j / (j + 1.0) if i == 0 else 0.0


@jit
def ndcg_positive(i, j, P, N, k):
    """Discount lost by standing at rank i + j + 1 instead of i + 1."""
    ideal = discount(i) if i < k else 0.0
    return ideal - (discount(i + j) if i + j < k else 0.0)


@jit
def per_ideal_dcg(P, N, k):
    """One over the discounted gain of a perfect ranking."""
    ideal = 0.0
    for i in range(min(P, k)):
        ideal += discount(i)
    return 1.0 / ideal


@jit
def precision_positive(i, j, P, N, k):
    """One for each positive pushed out of the first k ranks: min(1, P/k) − precision@k."""
    return 1.0 if i < k <= i + j else 0.0


@jit
def per_cutoff(P, N, k):
    """Mean over the first k ranks."""
    return 1.0 / k


@jit
def roc_positive(i, j, P, N, k):
    """Negatives above this positive: 1 − area under the ROC curve."""
    return np.float64(j)


@jit
def per_pair(P, N, k):
    """Mean over pairs."""
    return 1.0 / (np.float64(P) * N)
