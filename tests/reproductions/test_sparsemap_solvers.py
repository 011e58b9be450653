"""Figure 2 of SparseMAP in small: the order of the solvers, the table, the figure."""

from __future__ import annotations

import numpy as np

from reproductions import sparsemap_solvers, study


def test_the_active_set_needs_the_fewest_calls(tmp_path, capsys, monkeypatch):
    curves = sparsemap_solvers.measure(n_words=6, n_instances=3, limit=60)
    calls = [curve.calls_to(1e-2) for curve in curves.values()]
    assert calls[0] <= min(calls)
    for curve in curves.values():
        assert np.all(np.diff(curve.suboptimality, axis=0) <= 1e-9)
    assert curves["active set"].suboptimality[-1].max() < 1e-10

    page = tmp_path / "RESULTS.md"
    page.write_text("<!-- sparsemap_solvers: begin -->\n<!-- sparsemap_solvers: end -->\n")
    monkeypatch.setattr(study, "RESULTS", page)
    monkeypatch.setattr(sparsemap_solvers, "FIGURE", tmp_path / "figure.svg")
    monkeypatch.setattr(sparsemap_solvers, "measure", lambda *sizes: curves)
    sparsemap_solvers.main(["--write", "--plot", str(tmp_path / "other.png")])
    printed = capsys.readouterr().out
    assert "| active set |" in printed
    assert printed.strip() in page.read_text()
    assert (tmp_path / "figure.svg").stat().st_size > 1000
    assert (tmp_path / "other.png").stat().st_size > 1000
