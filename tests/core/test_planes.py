"""The dual of one example against its definition, whatever was inserted, merged and moved."""

from __future__ import annotations

import numpy as np
import pytest

from didyma._core.learning import insert, optimise
from didyma.learning.bcfw import PlaneDual


@pytest.mark.parametrize("n_planes", [2, 3, 5])
def test_every_visit_is_accounted_for(n_planes):
    rng = np.random.default_rng(n_planes)
    dual = PlaneDual.zero(np.array([0.7, 2.0]), 4, n_planes, 1.0)
    for visit in range(40):
        i = visit % 2
        insert(dual.planes, i, rng.standard_normal(4), rng.random())
        n = dual.size[i]
        np.testing.assert_allclose(dual.gram[i, :n, :n], dual.g[i, :n] @ dual.g[i, :n].T)
        planes = dual.b[i, :n] + dual.g[i, :n] @ dual.w
        gap, value = planes.max() - dual.alpha[i, :n] @ planes, dual.value()
        before, increase = optimise(dual.planes, i, dual.scales[i], dual.w)
        assert before == pytest.approx(gap)
        assert increase == pytest.approx(dual.value() - value, abs=1e-12)
        assert increase >= 0.0
        np.testing.assert_allclose(dual.alpha.sum(axis=1), 1.0)
        assert dual.alpha.min() >= 0.0
        mean = np.einsum("ik,ikf->if", dual.alpha, dual.g)
        np.testing.assert_allclose(dual.w, -dual.scales @ mean, atol=1e-12)


def test_another_C_keeps_the_shares_and_forgets_the_gaps():
    rng = np.random.default_rng(0)
    dual = PlaneDual.zero(np.array([0.5, 1.5]), 3, 4, 2.0)
    for i in (0, 1, 0, 1):
        insert(dual.planes, i, rng.standard_normal(3), 1.0)
    dual.sweep(np.array([0, 1]))
    dual.certify(np.ones(2))
    w = dual.w.copy()
    assert w.any()
    assert np.isfinite(dual.gaps).all()
    dual.move_to(6.0)
    np.testing.assert_allclose(dual.w, 3.0 * w)
    mean = np.einsum("ik,ikf->if", dual.alpha, dual.g)
    np.testing.assert_allclose(dual.w, -dual.scales @ mean)
    assert np.isinf(dual.gaps).all()
