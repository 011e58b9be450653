"""Definitions written down as slowly and plainly as possible, to compare fast code with."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np


def measure_loss(name: str, labels: np.ndarray, k: int | None = None, gain=np.exp2) -> float:
    """Loss of a ranking by the definition of its measure; labels in ranked order."""
    n, P = len(labels), int((labels > 0).sum())
    ranks = np.arange(1, n + 1)
    relevant = labels > 0
    if name == "ap":
        precision = np.cumsum(relevant) / ranks
        return 1.0 - precision[relevant].sum() / P
    if name == "rr":
        return 1.0 - 1.0 / ranks[relevant][0]
    if name == "precision":
        return min(1.0, P / k) - relevant[:k].sum() / k
    if name == "roc":
        pairs = [(a, b) for a in range(n) for b in range(n) if relevant[a] and not relevant[b]]
        return 1.0 - np.mean([a < b for a, b in pairs])
    if name == "ndcg":
        k = n if k is None else k
        discount = np.where(ranks <= k, 1.0 / np.log2(1.0 + ranks), 0.0)
        gains = gain(labels) - gain(np.zeros(n))
        return 1.0 - (gains @ discount) / (np.sort(gains)[::-1] @ discount)
    raise ValueError(name)


def coefficients(
    kind: str, labels: np.ndarray, order: tuple[int, ...], v: np.ndarray
) -> np.ndarray:
    """Coefficient of each row in the joint feature map of a ranking."""
    n = len(labels)
    position = np.empty(n, dtype=int)
    position[list(order)] = np.arange(n)
    if kind == "pairwise":
        out = np.zeros(n)
        pairs = [(a, b) for a in range(n) for b in range(n) if labels[a] > labels[b]]
        for a, b in pairs:
            sign = 1.0 if position[a] < position[b] else -1.0
            out[a] += sign / len(pairs)
            out[b] -= sign / len(pairs)
        return out
    weights = v.copy()
    if kind == "truncated":
        weights[int((labels > 0).sum()) :] = 0.0
    return weights[position]


def brute_force(kind, name, labels, scores, v, k=None, gain=np.exp2):
    """All rankings: the best value of Δ + c·s − (mean of c·s over perfect rankings)."""
    n = len(labels)
    best, gold = -np.inf, []
    for order in permutations(range(n)):
        loss = measure_loss(name, labels[list(order)], k, gain)
        c = coefficients(kind, labels, order, v)
        best = max(best, loss + c @ scores)
        if np.all(np.diff(labels[list(order)]) <= 0):
            gold.append(c)
    return best - np.mean(gold, axis=0) @ scores


def brute_force_thresholds(kind, labels, scores, v, k=None, gain=np.exp2):
    """The bound on 1 − NDCG@k over thresholds: each by all rankings of its binary labels."""
    n = len(labels)
    ranks = np.arange(1, n + 1)
    discount = np.where(ranks <= (k or n), 1.0 / np.log2(1.0 + ranks), 0.0)
    gains = gain(labels) - gain(np.zeros(n))
    ideal = np.sort(gains)[::-1] @ discount
    thresholds = []
    for lower, upper in pairwise(np.unique(labels)):
        above = (labels >= upper).astype(int)
        step = gain(np.float64(upper)) - gain(np.float64(lower))
        own = discount[: above.sum()].sum()
        thresholds.append((above, step * own / ideal, own))
    mean = np.average([own for *_, own in thresholds], weights=[w for _, w, _ in thresholds])
    return sum(
        weight * brute_force(kind, "ndcg", above, own / mean * scores, v, k)
        for above, weight, own in thresholds
    )


def best_interleaving(positives, negatives, positive, negative):
    """Best sum of gains along a monotone path, ``positive(i, j)`` and ``negative(i, j)`` each."""
    P, N = len(positives), len(negatives)
    value = {(P, N): 0.0}
    for i in range(P, -1, -1):
        for j in range(N, -1, -1):
            steps = []
            if i < P:
                steps.append(positive(i, j) + value[i + 1, j])
            if j < N:
                steps.append(negative(i, j) + value[i, j + 1])
            value[i, j] = max(steps, default=0.0)
    return value[0, 0]


def written_out(binned):
    """The matrix that a `Binned` stands for, by its definition."""
    n_rows, n_columns = binned.bins.shape
    Z = np.zeros((n_rows, binned.height, n_columns))
    for m in range(1, binned.height):
        alone = ~binned.running | (m == binned.height - 1)
        missing = binned.bins == binned.height - 1
        reached = np.where(alone, binned.bins == m, (binned.bins >= m) & ~missing)
        Z[:, m] = reached * (1.0 if binned.units is None else binned.units[m])
        if binned.rises is not None:
            Z[:, 0] += reached * binned.rises[m]
    if binned.rises is None:
        Z = Z[:, 1:]
    return Z.reshape(n_rows, -1)
