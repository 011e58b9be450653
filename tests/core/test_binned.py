"""Products with binned rows: scores and sums are transposes of each other, bin by bin."""

from __future__ import annotations

import numpy as np
import pytest

from didyma._core.rows import BinnedRows

HEIGHT, N_COLUMNS, N_ROWS = 6, 4, 9  # the first bin adds nothing, the last is of missing values


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sloped", [False, True])
def test_scores_and_sums_are_transposes(seed, sloped):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, HEIGHT, (N_ROWS, N_COLUMNS)).astype(np.uint8)
    bins[:2] = [[0], [HEIGHT - 1]]
    running = rng.integers(0, 2, N_COLUMNS).astype(float)
    units, rises = rng.uniform(0.5, 2.0, (2, HEIGHT, N_COLUMNS))
    rows = rng.permutation(N_ROWS)
    X = BinnedRows(bins, running, units, np.zeros(N_COLUMNS), rises[: HEIGHT * sloped], HEIGHT)
    expected = np.zeros((N_ROWS, HEIGHT, N_COLUMNS))  # written out, slopes first
    for r, row in enumerate(rows):
        for j, m in enumerate(bins[row]):
            alone = not running[j] or m == HEIGHT - 1
            reached = slice(m if alone and m > 0 else 1, m + 1)
            expected[r, reached, j] = units[reached, j]
            expected[r, 0, j] = rises[reached, j].sum()
    expected = expected[:, 0 if sloped else 1 :].reshape(N_ROWS, -1)
    w, coef = rng.standard_normal(expected.shape[1]), rng.standard_normal(N_ROWS)
    scores, total = np.empty(N_ROWS), np.ones(w.size)
    X.score(rows, w, scores)
    X.combine(rows, coef, total)
    np.testing.assert_allclose(scores, expected @ w, atol=1e-12)
    np.testing.assert_allclose(total, 1.0 + coef @ expected, atol=1e-12)
