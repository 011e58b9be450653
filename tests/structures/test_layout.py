from __future__ import annotations

import numpy as np
import pytest

from didyma.structures import Chain

RNG = np.random.default_rng(0)
SCORES, LENGTHS = RNG.normal(size=(3, 5, 2)), [5, 2, 3]
SHARED, OWN = RNG.normal(size=2), RNG.normal(size=(3, 2))


@pytest.mark.parametrize("start", [SHARED, OWN], ids=["shared", "of each instance"])
def test_instances_keep_their_scores(start):
    layout = Chain().lay_out(SCORES, LENGTHS, start=start)
    assert len(layout) == 3
    place = layout.additional["start"]
    assert place.shared is (start is SHARED)
    for b, expected in enumerate(np.broadcast_to(start, (3, 2))):
        np.testing.assert_array_equal(
            layout.extra_of(b)[place.start : place.stop].reshape(place.shape), expected
        )
        scores, n = layout.scores[b].reshape(layout.shape), LENGTHS[b]
        np.testing.assert_array_equal(scores[:n], SCORES[b, :n])
        assert (scores[n:] == -np.inf).all()


@pytest.mark.parametrize("start", [SHARED, OWN], ids=["shared", "of each instance"])
@pytest.mark.parametrize("some", [[2, 0], np.array([True, False, True])])
def test_some_instances(start, some):
    layout = Chain().lay_out(SCORES, LENGTHS, start=start)
    part = layout.select(some)
    np.testing.assert_array_equal(part.scores, layout.scores[some])
    np.testing.assert_array_equal(part.sizes, layout.sizes[some])
    np.testing.assert_array_equal(part.extra, layout.extra_of(some))
    assert part.additional is layout.additional
