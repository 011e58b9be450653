"""The Viterbi kernel on sizes that no enumeration reaches, against a plain dynamic programme."""

from __future__ import annotations

import numpy as np
import pytest

from didyma._core.structures import chain


def reference(scores: np.ndarray, transitions: np.ndarray, start: np.ndarray, end: np.ndarray):
    """Best tags and score; of equally good tags the lowest, from the last position on."""
    value = scores[0] + start
    origins = []
    for i in range(1, len(scores)):
        candidates = value[:, None] + transitions[i - 1]
        origins.append(candidates.argmax(axis=0))
        value = candidates.max(axis=0) + scores[i]
    value = value + end
    tags = [int(value.argmax())]
    for origin in reversed(origins):
        tags.append(int(origin[tags[-1]]))
    return tags[::-1], value.max()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("n_tags", [1, 2, 5, 7, 8, 9, 10, 11, 16, 33])
def test_parts(n_tags: int, integers: bool, tied: bool) -> None:
    rng = np.random.default_rng(n_tags)
    padded = 12

    def numbers(*shape: int) -> np.ndarray:
        values = rng.integers(-1, 2, shape) if integers else rng.normal(size=shape)
        return np.where(rng.random(shape) < 0.1, -np.inf, values.astype(float))

    for n in (1, 2, 5, 12):
        scores, start, end = numbers(padded, n_tags), numbers(n_tags), numbers(n_tags)
        transitions = numbers(1 if tied else padded - 1, n_tags, n_tags)
        extra = np.concatenate([transitions.ravel(), start, end])
        dims = np.array([n_tags, 0 if tied else n_tags**2, transitions.size, len(extra) - n_tags])
        parts, extra_parts = np.full(padded, -1, np.int32), np.full(padded + 1, -1, np.int32)
        count = chain(
            scores.ravel(),
            extra,
            dims,
            np.array([n]),
            np.zeros(padded * n_tags),
            np.zeros(0, np.int64),
            parts,
            extra_parts,
        )
        each = np.broadcast_to(transitions, (padded - 1, n_tags, n_tags))
        tags, value = reference(scores[:n], each, start, end)
        if value == -np.inf:
            assert count == -1
            continue
        assert count == n
        assert parts[:n].tolist() == [i * n_tags + tag for i, tag in enumerate(tags)]
        assert (parts[n:] == -1).all()
        assert (extra_parts[n + 1 :] == -1).all()
        found = scores.ravel()[parts[:n]].sum() + extra[extra_parts[: n + 1]].sum()
        np.testing.assert_allclose(found, value)
