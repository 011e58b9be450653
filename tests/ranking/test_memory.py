"""What fitting holds beyond its data: a fifth of them at most, however they are stored.

Arrays are counted as they are allocated, which is the same in every run.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from didyma import AdditiveSVMRanker, SVMRanker
from didyma.learning import bcfw, monitor
from didyma.ranking import bins
from didyma.ranking import problem as ranking

N_QUERIES, N_ROWS, N_FEATURES = 300, 100, 136
CONSTANTS = (  # what does not grow with the data, and would be much beside these few
    *((bcfw, "FREE_MEMORY", 0), (bins, "SAMPLE", 500), (bins, "CELLS", 64)),
    *((monitor, "LOOKS", ((5, 1.0),)), (ranking, "ROWS", 4096)),
)


def judged(kind: str) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    X: Any = random.normal(size=(N_QUERIES * N_ROWS, N_FEATURES))
    if kind == "csr":
        X *= random.random(X.shape) < 0.2
    y = (X[:, :5].sum(axis=1) > 1.0).astype(float)
    if kind == "csr":
        X = sp.csr_array(X)
    elif kind == "float32":
        X = X.astype(np.float32)
    return X, y, np.repeat(np.arange(N_QUERIES), N_ROWS)


@pytest.mark.parametrize("kind", ["float64", "float32", "csr", "binned"])
def test_fitting_needs_little_more_than_its_data(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for constant in CONSTANTS:
        monkeypatch.setattr(*constant)
    X, y, qid = judged(kind)

    def fit() -> None:
        # One fit, without cross-validation; tables of bins do not grow with the data either.
        additive = AdditiveSVMRanker(C=4.0, line="quantile", bins=8, interactions=0)
        ranker = additive if kind == "binned" else SVMRanker(C=10.0)
        ranker.set_params(tol=0.02, n_jobs=1).fit(X, y, qid=qid)

    fit()  # what is compiled or remembered does not count
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    size = sum(part.nbytes for part in (*parts, y, qid))
    tracemalloc.start()
    try:
        fit()
        extra = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert extra <= 0.2 * size
