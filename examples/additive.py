"""An additive ranker: functions that can be read, and trees that other engines load.

    python examples/additive.py functions.svg

Relevance rises with a text score until it saturates, falls with age, and depends on whether length
and depth go together. A linear ranker sees a part of that, step functions the two curves, and a
table of one pair the rest. The picture shows them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from didyma import AdditiveSVMRanker, SVMRanker, export
from didyma.report import draw_functions, terms

NAMES = ["text", "age", "length", "depth", "noise"]


def results(n_queries: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Twenty results for each query, four of them relevant; every tenth age is not known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20 * n_queries, len(NAMES)))
    text, age, length, depth, _ = X.T
    hidden = 2 * np.tanh(2 * text) - np.exp(age / 2) + length * depth
    hidden = hidden.reshape(n_queries, 20) + 0.3 * rng.normal(size=(n_queries, 20))
    y = (hidden >= np.sort(hidden)[:, [-4]]).astype(int).ravel()
    X[rng.random(len(X)) < 0.1, 1] = np.nan
    return pd.DataFrame(X, columns=NAMES), y, np.repeat(np.arange(n_queries), 20)


def main() -> Any:
    X, y, qid = results(150, seed=0)
    test, test_y, test_qid = results(100, seed=1)
    linear = SVMRanker().fit(X.fillna(0), y, qid=qid)
    print(f"linear: MAP {linear.score(test.fillna(0), test_y, qid=test_qid):.3f}")
    signs: Any = {"increasing": ["text"], "decreasing": ["age"]}
    alone = AdditiveSVMRanker(interactions=0, **signs).fit(X, y, qid=qid)
    print(f"additive: MAP {alone.score(test, test_y, qid=test_qid):.3f}")
    ranker = AdditiveSVMRanker(interactions=1, **signs).fit(X, y, qid=qid)
    print(f"with one interaction: MAP {ranker.score(test, test_y, qid=test_qid):.3f}")
    for first, second in ranker.pairs_:
        print(f"the pair is {NAMES[first]} and {NAMES[second]}")
    for name, importance in zip(NAMES, ranker.feature_importances_):
        print(f"{name:8}{importance:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.txt")
        export(ranker, path, "lightgbm")
        print(f"as trees: {path.read_text().count('Tree=')}")
    return draw_functions(terms(ranker, NAMES, ranker.changed_orders(test, test_qid), top=4))


if __name__ == "__main__":
    figure = main()
    if sys.argv[-1].endswith((".png", ".svg")):
        figure.savefig(sys.argv[-1], dpi=150)
