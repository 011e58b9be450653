"""What a pool of cuts remembers."""

from __future__ import annotations

import numpy as np

from didyma.learning.cutting_plane import UNUSED, CutPool
from didyma.learning.problem import Cut


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
