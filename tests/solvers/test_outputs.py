"""Every solver, against a list of all its outputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("ortools")
pytest.importorskip("networkx")

import torch

import didyma
from didyma import DataError
from didyma.nn import PerturbedArgmax, SPOPlusLoss, regret
from didyma.testing import check_structure
from tests.solvers.cases import CASES, LENGTHS


def drawn(name, outputs, rng, *batch):
    scores = rng.standard_normal((*batch, *outputs.shape[1:]))
    return -np.abs(scores) if name in LENGTHS else scores


@pytest.mark.parametrize("name", CASES)
def test_it_keeps_the_laws(name):
    structure, outputs = CASES[name]()
    assert len(outputs) > 2
    check_structure(
        structure, lambda rng: drawn(name, outputs, rng), outputs=lambda _: outputs, n_draws=3
    )


@pytest.mark.parametrize("name", CASES)
def test_forbidden_parts_are_never_taken(name):
    structure, outputs = CASES[name]()
    rng = np.random.default_rng(1)
    rows = outputs.reshape(len(outputs), -1)
    for _ in range(5):
        scores = drawn(name, outputs, rng)
        forbidden = rng.random(scores.shape) < 0.25
        allowed = rows[~(rows.astype(bool) & forbidden.ravel()).any(axis=1)]
        masked = np.where(forbidden, -np.inf, scores)
        if len(allowed):
            best = (allowed @ scores.ravel()).max()
            assert scores[structure.predict(masked)].sum() == pytest.approx(best)
        else:
            with pytest.raises(DataError, match="every output contains a part with score -inf"):
                structure.predict(masked)
    nothing = np.full(outputs.shape[1:], -np.inf)
    if not (rows.sum(axis=1) == 0).any():
        with pytest.raises(DataError, match="every output contains a part with score -inf"):
            structure.predict(nothing)
        with pytest.raises(DataError, match="every output contains a part with score -inf"):
            didyma.sparsemap(nothing, structure)


@pytest.mark.parametrize("name", CASES)
def test_decisions_and_copies(name):
    structure, outputs = CASES[name]()
    rng = np.random.default_rng(2)
    true, predicted = (torch.tensor(drawn(name, outputs, rng, 4)) for _ in range(2))
    rows = torch.tensor(outputs.reshape(len(outputs), -1) * 1.0)
    values = true.flatten(1) @ rows.T
    lost = values.amax(1) - values[range(4), (predicted.flatten(1) @ rows.T).argmax(1)]
    torch.testing.assert_close(regret(structure, predicted, true), lost)
    copy = pickle.loads(pickle.dumps(structure))
    np.testing.assert_array_equal(copy.predict(true.numpy()), structure.predict(true.numpy()))
    if name not in LENGTHS:  # 2 predicted − true, and noise, may be of either sign
        assert (SPOPlusLoss(structure, reduction="none")(predicted, true) >= lost - 1e-9).all()
        assert PerturbedArgmax(structure, n_samples=2)(predicted).shape == predicted.shape
