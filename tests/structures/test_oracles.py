"""An argmax in Python, as solvers call it."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import didyma


class Waiting(didyma.Structure):
    """Two options; says how many threads were inside at once."""

    concurrent = True

    def __init__(self):
        self.inside = self.most = 0
        self.lock = threading.Lock()

    def argmax(self, scores):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.02)
        with self.lock:
            self.inside -= 1
        if np.isclose(scores[0], 13.0):
            raise RuntimeError("thirteen")
        return np.argsort(-scores)[:2]


def test_threads_share_the_instances_of_a_batch():
    scores = np.random.default_rng(0).standard_normal((8, 4))
    structure = Waiting()
    together = didyma.sparsemap(scores, structure, n_jobs=4)
    assert structure.most > 1
    structure.most = 0
    alone = didyma.sparsemap(scores, structure, n_jobs=1)
    assert structure.most == 1
    np.testing.assert_array_equal(together, alone)
    scores[:, 0] = 13.0
    with pytest.raises(RuntimeError, match="thirteen"):
        didyma.sparsemap(scores, structure, n_jobs=4)
