"""Kernels that find masks and forbid parts, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from didyma._core.polytope import extent, forbid, has_masks

LARGEST = 1e300
VALUES = st.sampled_from([-np.inf, -2e300, -1e300, -5e4, -999.0, -1.0, 0.0, 0.5, 40.0, 1e300])
WRONG = st.sampled_from([np.nan, np.inf, 2e300])
MATRICES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=4), elements=VALUES)


@given(MATRICES)
def test_extent(values):
    highest, lowest, positive = extent(values)
    for b, row in enumerate(values):
        finite = row[row > -np.inf]
        assert highest[b] == finite.max(initial=-np.inf)
        assert lowest[b] == finite.min(initial=np.inf)
        assert positive[b] == sum(value for value in row if value > 0.0)


@given(MATRICES, st.booleans(), st.data())
def test_has_masks(scores, shared, data):
    n = 1 if shared else len(scores)
    extra = data.draw(arrays(np.float64, (n, 2), elements=VALUES))
    rows = np.concatenate([scores, np.broadcast_to(extra, (len(scores), 2))], axis=1)
    expected = any(
        -np.inf < value < -1e3 * max(1.0, row.max()) for row in rows for value in row.tolist()
    )
    assert has_masks(scores, extra, 1e3) == expected


@given(st.integers(1, 3), st.integers(1, 4), st.booleans(), st.data())
def test_forbid(n, size, repeated, data):
    """Flags of all scores, of one instance for all, or none at all."""
    scores = data.draw(arrays(np.float64, n * size, elements=st.one_of(VALUES, WRONG)))
    used = data.draw(
        arrays(np.bool_, data.draw(st.sampled_from([0, size if repeated else n * size])))
    )
    counts = np.resize(used, n * size) if used.size else np.ones(n * size, bool)
    changed, wrong = forbid(scores, used, LARGEST)
    bad = np.flatnonzero(counts & ~(scores <= LARGEST))
    if len(bad):
        assert wrong == bad[0]
        return
    assert wrong == -1
    expected = np.where(counts & (scores >= -LARGEST), scores, -np.inf)
    np.testing.assert_array_equal(changed if changed.size else scores, expected)
    assert bool(changed.size) == (not np.array_equal(scores, expected))  # copied only if it must be


@pytest.mark.parametrize("used", [np.zeros(0, bool), np.zeros(3, bool)])
def test_nothing_to_forbid(used):
    changed, wrong = forbid(np.zeros(0), used, LARGEST)
    assert changed.size == 0
    assert wrong == -1
