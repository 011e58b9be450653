"""What a pool of cuts remembers, its minimiser, and the search along a line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from didyma.errors import DataError
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import (
    PRECISION,
    UNUSED,
    CutPool,
    Line,
    OneSlack,
    ProximalBundle,
)
from didyma.learning.n_slack import NSlack
from didyma.learning.problem import Cut, OneHinge, clipped
from didyma.learning.solution import Clock


def test_the_zero_cut_is_never_forgotten():
    pool = CutPool(2)
    for direction, loss in (([-1.0, 0.0], 5.0), ([0.0, -1.0], 5.0), ([0.0, -1.0], -9.0)):
        pool.add(Cut(np.array(direction), loss))
    for _ in range(UNUSED + 1):
        mean = pool.minimise(1.0, pool.losses)
        pool.forget()
    assert len(pool.losses) == 3  # the last cut was never active
    np.testing.assert_array_equal(pool.directions[0], [0.0, 0.0])
    assert pool.losses[0] == 0.0
    assert 0 not in pool.solution.active  # though it was not active either
    np.testing.assert_allclose(mean.direction, [-0.5, -0.5])


@pytest.mark.parametrize("seed", range(40))
def test_the_minimiser_of_cuts_over_signed_weights(seed):
    """By SLSQP: ½‖w‖² + C ξ over w with these signs and ξ above all cuts."""
    rng = np.random.default_rng(seed)
    n_features, n_cuts, C = *rng.integers(1, 8, 2), 10.0 ** rng.uniform(-1, 2)
    signs = rng.integers(-1, 2, n_features).astype(float)
    pool = CutPool(n_features, signs)
    for _ in range(n_cuts):
        pool.add(Cut(rng.normal(size=n_features), rng.uniform(0, 2)))
        w, bound = pool.minimiser(C)  # each from the last one's weights
    above = np.column_stack([-pool.directions, np.ones(len(pool.losses))])
    lower = np.where(signs > 0, 0.0, -np.inf)
    upper = np.where(signs < 0, 0.0, np.inf)
    exact = minimize(
        lambda z: 0.5 * z[:-1] @ z[:-1] + C * z[-1],
        np.append(np.zeros(n_features), pool.losses.max()),
        jac=lambda z: np.append(z[:-1], C),
        bounds=list(zip([*lower, -np.inf], [*upper, np.inf])),
        constraints={
            "type": "ineq",
            "fun": lambda z: above @ z - pool.losses,
            "jac": lambda z: above,
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    np.testing.assert_array_equal(clipped(w, signs), w)
    value = 0.5 * w @ w + C * np.max(pool.losses + pool.directions @ w)
    assert bound == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert value == pytest.approx(exact.fun, rel=1e-6, abs=1e-7)


class Rising(OneHinge):
    """The hinge over weights that must not be negative."""

    weight_signs = np.ones(2)


@pytest.mark.parametrize(("problem", "end"), [(OneHinge(), 10.0), (Rising(), 1.0)], ids=type)
def test_a_search_goes_beyond_where_it_was_sent_unless_signs_may_change(problem, end):
    towards = np.array([0.02, 0.04])
    line = Line(problem, 10.0, np.zeros(2), Clock())
    line.towards(towards)
    np.testing.assert_allclose(line.w, end * towards, rtol=PRECISION)


@pytest.mark.parametrize("solver", [BCFW(), NSlack(), ProximalBundle()], ids=type)
def test_solvers_that_know_no_signs_refuse_them(solver):
    with pytest.raises(DataError, match="must have signs"):
        solver.solve(Rising(), 1.0)
    assert OneSlack().solve(Rising(), 10.0).result.converged
