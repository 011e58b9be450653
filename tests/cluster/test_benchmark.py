"""The benchmark of clusters counts rounds without one."""

from __future__ import annotations

import math

from benchmarks import cluster


def test_rounds_and_bytes_are_counted(monkeypatch):
    monkeypatch.setattr(cluster, "PROCESSES", ())
    monkeypatch.setattr(cluster, "CS", (1.0,))
    rows = cluster.run(0.005)
    assert all(math.isfinite(row.value) and row.value >= 0 for row in rows)
    rounds = [row for row in rows if row.unit == "rounds"]
    assert len(rounds) == 6
    assert all(row.value >= 3 and row.target for row in rounds)
    sent = [row.value for row in rows if row.name.endswith("sent")]
    assert all(8 * 136 < value < 4 * 8 * 136 for value in sent)  # a vector or two
