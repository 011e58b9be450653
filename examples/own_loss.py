"""A ranking loss of your own: success@1, the share of queries whose first result is relevant.

A loss is a function of the state (i, j): what a positive costs when i positives and j negatives
stand above it, out of P and N. It is compiled, and inference stays exact.
"""

import numpy as np

from didyma import StepLoss, SVMRanker


def miss_at_one(i, j, P, N):
    return 1.0 if i == 0 and j > 0 else 0.0


def main():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 8))
    qid = np.repeat(np.arange(100), 20)
    quality = X @ rng.standard_normal(8) + 0.3 * rng.standard_normal(2000)
    y = np.zeros(2000)
    for q in range(100):
        own = np.flatnonzero(qid == q)
        y[own[np.argsort(-quality[own])[:3]]] = 1
    for loss in (StepLoss(positive=miss_at_one), "ap"):
        ranker = SVMRanker(loss, C=100).fit(X, y, qid=qid)
        first = ranker.rank(X, qid=qid) == 1
        print(f"{loss if isinstance(loss, str) else 'own'}: success@1 {np.mean(y[first]):.3f}")


if __name__ == "__main__":
    main()
