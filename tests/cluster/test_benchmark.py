"""The benchmark of clusters counts rounds without one."""

from __future__ import annotations

import math
from collections import defaultdict

from benchmarks import cluster


def test_rounds_and_bytes_are_counted(monkeypatch):
    monkeypatch.setattr(cluster, "PROCESSES", ())
    monkeypatch.setattr(cluster, "CASES", dict.fromkeys(cluster.CASES, (1.0,)))
    rows = cluster.run(0.005)
    assert all(math.isfinite(row.value) and row.value >= 0 for row in rows)
    rounds = [row for row in rows if row.unit == "rounds"]
    assert len(rounds) == 6
    assert all(row.value >= 3 and row.target for row in rounds)
    sent = [row.value for row in rows if row.name.endswith("sent")]
    assert all(8 * 136 < value < 4 * 8 * 136 for value in sent)  # a vector or two


def test_the_page_has_a_place_for_every_table():
    """Figures of the page are those of a run: what it says of large problems, too."""
    found = cluster.sections(defaultdict(lambda: 2.0))
    page = cluster.PAGE.read_text()
    for name, table in found.items():
        assert f"<!-- {name}: begin -->" in page
        assert f"<!-- {name}: end -->" in page
        assert len({row.count("|") for row in table.splitlines()}) == 1
    assert "| 100 | standardised | 2 | 2 | 2 |" in found["rounds"]
    assert "| work in a round | 200 s |" in found["large"]
