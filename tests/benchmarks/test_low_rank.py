from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import low_rank, nbest_lists


def test_a_benchmark_returns_figures(monkeypatch):
    monkeypatch.setattr(low_rank, "environment", lambda package: None)
    monkeypatch.setattr(low_rank, "FACTOR", 2)
    monkeypatch.setattr(low_rank, "_measure", low_rank.fit)  # in this process
    rows = low_rank.run(0.005)
    absent = [row for row in rows if row.figure == "absent"]
    assert len(absent) == 3
    assert all("cca-zoo" in row.name for row in absent)
    assert all(math.isfinite(row.value) and row.value > 0 for row in rows if row not in absent)
    assert any("exact fit" in row.name and row.target == "≤ 60" for row in rows)


def test_speed_counts_at_equal_correlation_only(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 6))
    peer = (np.eye(6)[:, :2], np.eye(6)[:, :2])
    rows = list(low_rank._compare("peer", X, X, 2, 1e-6, lambda: peer, seconds=1e9))
    assert rows[0].ok
    assert [row.value for row in rows[1:]] == pytest.approx([2.0, 2.0], rel=1e-4)
    sums = iter([2.0, 1.9])  # the peer's, and ours
    monkeypatch.setattr(low_rank, "_correlations", lambda *_: next(sums))
    assert not next(low_rank._compare("peer", X, X, 2, 1e-6, lambda: peer, seconds=1e9)).ok


def test_the_lists_are_what_they_say():
    X, Y, lists = nbest_lists.nbest_lists(30, candidates=4, seed=3)
    assert X.shape == (30, nbest_lists.INPUTS)
    assert Y.shape[1] == lists.X.shape[1] == nbest_lists.OUTPUTS
    assert lists.groups.sizes.tolist() == [4] * 30
    tags = nbest_lists.TAGS
    counts = Y[:, :tags].sum(axis=1)
    np.testing.assert_array_equal(X.sum(axis=1), 3 * counts)
    np.testing.assert_array_equal(lists.X[:, :tags].sum(axis=1), np.repeat(counts, 4))
    right = lists.losses == 0
    assert right.any()
    assert not right.all()
    np.testing.assert_array_equal(
        lists.X[np.flatnonzero(right)].toarray(),
        Y[lists.groups.codes[right]].toarray(),
    )
    assert np.corrcoef(lists.losses, lists.scores)[0, 1] < -0.5
