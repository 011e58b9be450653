"""Candidates: which columns are tried, and how they are scaled."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

from didyma.text.candidates import candidates, clipping
from didyma.text.features import SmallFeatures


def test_candidates_begin_with_what_is_cheap():
    names = [*SmallFeatures().names, "concepts", "person:length", "vector_cosine"]
    names += ["bm25 in list", "vector_cosine in list"]
    tried = candidates(names, 1000)
    sizes = [len(candidate.columns) for candidate in tried if not candidate.additive]
    assert sizes == [16, 17, 17, 18, 19, 19, 20, 21]
    sizes = [len(candidate.columns) for candidate in tried if candidate.additive]
    assert sizes == [17, 19, 20, 21]
    places = {str(candidate): place for place, candidate in enumerate(tried)}
    assert places["small set"] == 0
    assert places["small set in lists"] < places["small set in lists, additive"]
    assert max(tried[0].Cs) == 100
    assert max(candidates(names, 20)[0].Cs) == 10
    quick = candidates(names, 20, quick=True)
    assert [candidate.name for candidate in quick] == ["small set", "small set and vectors"]
    german = candidates([*SmallFeatures().names, "concepts"], 20)
    assert [candidate.name for candidate in german] == ["small set", "plain set"]


def test_far_values_count_as_four_deviations():
    X = np.random.default_rng(0).normal(3, 2, size=(100, 2))
    X[:, 1] = 7.0
    learned = clipping(X)
    assert learned["scale_"][1] == 1
    scaler = MinMaxScaler(feature_range=learned["feature_range"], clip=True)
    for name in ("scale_", "min_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"):
        setattr(scaler, name, learned[name])
    far = scaler.transform(np.array([[1e6, 7.0], [-1e6, 7.0], [X[:, 0].mean(), 7.0]]))
    assert far == pytest.approx(np.array([[4, 0], [-4, 0], [0, 0]]), abs=1e-9)
