"""Products with binned rows: scores and sums are transposes of each other, bin by bin."""

from __future__ import annotations

import numpy as np
import pytest

from didyma._core.rows import BinnedRows

HEIGHT, N_COLUMNS, N_ROWS = 6, 4, 9  # the first bin adds nothing, the last is of missing values


@pytest.mark.parametrize("seed", range(4))
def test_scores_and_sums_are_transposes(seed):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, HEIGHT, (N_ROWS, N_COLUMNS)).astype(np.uint8)
    bins[:2] = [[0], [HEIGHT - 1]]
    running = rng.integers(0, 2, N_COLUMNS).astype(float)
    units = rng.uniform(0.5, 2.0, N_COLUMNS)
    rows = rng.permutation(N_ROWS)
    X = BinnedRows(bins, running, units, np.zeros(N_COLUMNS), HEIGHT)
    w, coef = rng.standard_normal((HEIGHT - 1) * N_COLUMNS), rng.standard_normal(N_ROWS)
    expected = np.zeros((N_ROWS, HEIGHT - 1, N_COLUMNS))  # written out
    for r, row in enumerate(rows):
        for j, m in enumerate(bins[row]):
            if m == HEIGHT - 1:
                expected[r, m - 1, j] = units[j]
            elif m > 0:
                expected[r, (0 if running[j] else m - 1) : m, j] = units[j]
    expected = expected.reshape(N_ROWS, -1)
    scores, total = np.empty(N_ROWS), np.ones(w.size)
    X.score(rows, w, scores)
    X.combine(rows, coef, total)
    np.testing.assert_allclose(scores, expected @ w, atol=1e-12)
    np.testing.assert_allclose(total, 1.0 + coef @ expected, atol=1e-12)
