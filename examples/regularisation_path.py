"""Choose C on held-out queries: a whole path costs about two fits."""

import numpy as np

from didyma import SVMRanker


def judged(seed, n_queries=200, n_rows=30, n_features=20):
    rng = np.random.default_rng(seed)
    X = rng.random((n_queries * n_rows, n_features))
    quality = X @ np.linspace(-1, 1, n_features) + rng.standard_normal(len(X))
    qid = np.repeat(np.arange(n_queries), n_rows)
    top = np.sort(quality.reshape(n_queries, n_rows), axis=1)[:, -3]
    return X, (quality >= np.repeat(top, n_rows)).astype(float), qid


def main():
    X, y, qid = judged(0)
    X_dev, y_dev, qid_dev = judged(1)
    path = SVMRanker("ap").path(X, y, np.geomspace(0.1, 1000, 9), qid=qid)
    for ranker in path:
        value = ranker.score(X_dev, y_dev, qid=qid_dev)
        print(f"C {ranker.C:8.1f}   passes {ranker.result_.passes:5.1f}   dev MAP {value:.4f}")


if __name__ == "__main__":
    main()
