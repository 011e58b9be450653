"""LightGBM, cross-validated over queries, in an environment where nothing else need exist.

    python rerank_worker.py FOLDER

reads train_{X,y,group}.npy, test_X.npy, fold.npy (of each training query) and settings.json. What
has the best mean average precision over the held-out folds, of settings and numbers of trees, is
trained once more on all queries; its scores of the test rows are written to scores.npy, and what
was chosen is printed as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def average_precision(y: Any, scores: Any) -> float:
    """Of one query, relevant if the grade is at least 1; ties in the order given."""
    relevant = y[np.argsort(-scores, kind="stable")] >= 1
    places = np.flatnonzero(relevant) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def mean_precision(y: Any, group: Any, scores: Any) -> float:
    """Mean over the queries that have relevant rows and others."""
    ends = np.cumsum(group)
    values = [
        average_precision(y[end - size : end], scores[end - size : end])
        for end, size in zip(ends, group)
        if 0 < np.sum(y[end - size : end] >= 1) < size
    ]
    return float(np.mean(values)) if values else 0.0


def main() -> None:
    """Do what the folder asks for."""
    import lightgbm

    folder = Path(sys.argv[1])
    wanted = json.loads((folder / "settings.json").read_text())
    trees = wanted["trees"]
    X, y, group = (np.load(folder / f"train_{name}.npy") for name in ("X", "y", "group"))
    fold = np.load(folder / "fold.npy")
    of_row = np.repeat(fold, group)
    y = np.round(y).astype(int)  # grades, as its objective has them

    def train(rows: Any, groups: Any, setting: Any, n_trees: int) -> Any:
        given = {"objective": "lambdarank", "num_threads": wanted["threads"], "verbose": -1}
        data = lightgbm.Dataset(X[rows], y[rows], group=group[groups])
        return lightgbm.train({**given, **setting}, data, n_trees)

    found = np.zeros((len(wanted["settings"]), len(trees)))
    for k, setting in enumerate(wanted["settings"]):
        for held_out in np.unique(fold):
            model = train(of_row != held_out, fold != held_out, setting, max(trees))
            rows = of_row == held_out
            for n, count in enumerate(trees):
                scores = model.predict(X[rows], num_iteration=count)
                found[k, n] += mean_precision(y[rows], group[fold == held_out], scores)
    k, n = np.unravel_index(found.argmax(), found.shape)
    chosen = {**wanted["settings"][k], "trees": trees[n]}
    everything = np.ones(len(y), bool), np.ones(len(group), bool)
    model = train(*everything, wanted["settings"][k], trees[n])
    np.save(folder / "scores.npy", model.predict(np.load(folder / "test_X.npy")))
    print(json.dumps(chosen))


if __name__ == "__main__":
    main()
