from __future__ import annotations

import numpy as np
import pytest

from didyma.structures import Chain

RNG = np.random.default_rng(0)
SCORES, SHARED, OWN = (
    RNG.normal(size=(3, 4, 2)),
    RNG.normal(size=(2, 2)),
    RNG.normal(size=(3, 2, 2)),
)


@pytest.mark.parametrize("transitions", [SHARED, OWN], ids=["shared", "of each instance"])
def test_instances_keep_their_scores(transitions):
    layout = Chain().lay_out(SCORES, LENGTHS, transitions=transitions)
    assert len(layout) == 3
    place = layout.additional["transitions"]
    assert place.shared is (transitions is SHARED)
    for b, expected in enumerate(np.broadcast_to(transitions, (3, 2, 2))):
        np.testing.assert_array_equal(
            layout.extra_of(b)[place.start : place.stop].reshape(place.shape), expected
        )
        scores, n = layout.scores[b].reshape(layout.shape), LENGTHS[b]
        np.testing.assert_array_equal(scores[:n], SCORES[b, :n])
        assert (scores[n:] == -np.inf).all()


@pytest.mark.parametrize("transitions", [SHARED, OWN], ids=["shared", "of each instance"])
@pytest.mark.parametrize("some", [[2, 0], np.array([True, False, True])])
def test_some_instances(transitions, some):
    layout = Chain().lay_out(SCORES, LENGTHS, transitions=transitions)
    part = layout.select(some)
    np.testing.assert_array_equal(part.scores, layout.scores[some])
    np.testing.assert_array_equal(part.sizes, layout.sizes[some])
    np.testing.assert_array_equal(part.extra, layout.extra_of(some))
    assert part.additional is layout.additional
