"""Train one peer in the peers' own environment, where neither didyma nor scikit-learn exists.

    python peer_worker.py PEER FOLDER

reads X, y, group and X_test from the folder's .npy files, writes scores.npy there and prints the
seconds that training took. Building the library's own data set from the arrays counts as training.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TREES = 100


def lightgbm_lambdarank(X: Any, y: Any, group: Any) -> Callable[[Any], Any]:
    import lightgbm

    parameters = {"objective": "lambdarank", "num_threads": 1, "verbose": -1}
    data = lightgbm.Dataset(X, y, group=group)
    return lightgbm.train(parameters, data, num_boost_round=TREES).predict


def _xgboost(parameters: dict[str, Any], X: Any, y: Any, group: Any) -> Callable[[Any], Any]:
    import xgboost

    data = xgboost.DMatrix(X, y, group=group, nthread=1)
    model = xgboost.train({**parameters, "nthread": 1}, data, num_boost_round=TREES)
    return lambda rows: model.predict(xgboost.DMatrix(rows))


def xgboost_trees(X: Any, y: Any, group: Any) -> Callable[[Any], Any]:
    return _xgboost({"objective": "rank:map", "tree_method": "hist"}, X, y, group)


def xgboost_linear(X: Any, y: Any, group: Any) -> Callable[[Any], Any]:
    return _xgboost({"objective": "rank:map", "booster": "gblinear"}, X, y, group)


TRAIN = {
    "lightgbm_lambdarank": lightgbm_lambdarank,
    "xgboost_trees": xgboost_trees,
    "xgboost_linear": xgboost_linear,
}


def main() -> None:
    train, folder = TRAIN[sys.argv[1]], Path(sys.argv[2])
    X, y, group, X_test = (
        np.load(folder / f"{name}.npy") for name in ("X", "y", "group", "X_test")
    )
    few = group[:10]
    train(X[: few.sum()], y[: few.sum()], few)  # loads libraries, as ours are loaded
    start = time.perf_counter()
    score = train(X, y, group)
    seconds = time.perf_counter() - start
    np.save(folder / "scores.npy", score(X_test))
    print(seconds)


if __name__ == "__main__":
    main()
