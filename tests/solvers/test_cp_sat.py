"""Constraint models: limits, rounding, errors."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ortools")

from ortools.sat.python import cp_model

from didyma import DataError
from didyma.solvers import CpSat, Tour


def test_cp_sat_begins_at_the_last_solution_and_rounds_within_its_bound():
    model = cp_model.CpModel()
    literals = [model.new_bool_var("") for _ in range(6)]
    model.add(sum(literals) == 3)
    structure = CpSat(model, literals)
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e9):
        scores = scale * rng.standard_normal(6)
        best = np.sort(scores)[3:].sum()
        short = best - scores[structure.predict(scores)].sum()
        assert short <= 6 * 2.0**-36 * np.abs(scores).max()
    assert sum(structure._hint) == 3
    assert structure.predict(np.zeros(6)).sum() == 3
    model.maximize(sum(literals))
    with pytest.raises(DataError, match="model: expected a model without an objective"):
        CpSat(model, literals)


def test_a_tour_has_three_nodes():
    with pytest.raises(DataError, match="n_nodes: expected 3 nodes or more"):
        Tour(2)
