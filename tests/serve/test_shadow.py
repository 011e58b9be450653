from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from didyma.serve.watch import ShadowComparison, rank_correlation


def test_correlation_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 50):
        scores, others = rng.integers(0, 5, n) + 0.0, rng.normal(size=n).round(1)
        scores[0] += 10
        others[-1] -= 10
        assert rank_correlation(scores, others) == pytest.approx(spearmanr(scores, others)[0])
    assert rank_correlation([1.0, 1.0], [1.0, 2.0]) is None


def test_tops_are_compared():
    comparison = ShadowComparison()
    scores = np.arange(20.0)
    comparison.add(scores, scores)
    comparison.add(scores, -scores)
    comparison.add(np.zeros(0), np.zeros(0))
    told = comparison.to_dict()
    assert (told["requests"], told["displaced_tops"]) == (2, 1)
    assert told["overlap"]["mean"] == pytest.approx(0.5)
    assert told["correlation"]["mean"] == pytest.approx(0.0)
    assert dict(comparison.overlap.cumulative)["0.0"] == 1
    assert dict(comparison.correlation.cumulative)["-1.0"] == 1
