"""The two bounds over grades in small: the table, the page, the errors."""

from __future__ import annotations

import json
from itertools import islice

from reproductions import grades, study


def test_the_comparison_in_small(tmp_path, monkeypatch, capsys):
    page, report = tmp_path / "RESULTS.md", tmp_path / "report.json"
    page.write_text("<!-- grades: begin -->\n<!-- grades: end -->\n")
    monkeypatch.setattr(study, "RESULTS", page)
    monkeypatch.setattr(grades, "CS", (0.1, 10.0))
    monkeypatch.setattr(grades, "N_QUERIES", (12, 6, 20))
    monkeypatch.setattr(grades, "N_ROWS", 12)
    monkeypatch.setattr(grades, "read_parts", lambda folder: None)
    monkeypatch.setattr(grades, "in_turn", lambda parts: islice(grades.synthetic(), 1))
    assert grades.main(["--write", "--json", str(report)]) == 0
    assert capsys.readouterr().out.strip() in page.read_text()
    found = json.loads(report.read_text())
    assert list(found["MQ2008"]) == [
        *("ndcg, joint", "ndcg, thresholds", "ndcg@10, joint", "ndcg@10, thresholds", "ap"),
    ]
    assert len(found["MQ2008"]["ap"]["values"]) == 20
    assert len(found["Five grades, synthetic"]["ap"]["values"]) == 100
    assert found["MQ2008"]["ndcg, joint"]["less joint"] == 0.0
    assert all(0.3 < row["nDCG@10"] < 1.0 for row in found["MQ2008"].values())
