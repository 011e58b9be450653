"""A user's compiled argmax: the address of a C function, beside the same in Python."""

from __future__ import annotations

import copy
import ctypes
import pickle
import shutil
import subprocess
from functools import cached_property

import numpy as np
import pytest

import didyma
from didyma import DataError
from didyma.structures import CFunction

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")

SOURCE = """
#include <math.h>
#include <stdint.h>

/* The best run of three neighbours, and the bonus of its first place. */
int64_t run(const double *scores, const double *additional, const int64_t *shape, int64_t *parts)
{
    int64_t n = shape[0], best = -1;
    double highest = -INFINITY;
    for (int64_t i = 0; i + 3 <= n; ++i) {
        double score = scores[i] + scores[i + 1] + scores[i + 2] + additional[i];
        if (score > highest) {
            highest = score;
            best = i;
        }
    }
    if (best < 0) return -1;
    for (int64_t j = 0; j < 3; ++j) parts[j] = best + j;
    parts[3] = n + best;
    return 4;
}

int64_t twice(const double *scores, const double *additional, const int64_t *shape, int64_t *parts)
{
    parts[0] = parts[1] = 1;
    return 2;
}

int64_t beyond(const double *scores, const double *additional, const int64_t *shape, int64_t *parts)
{
    parts[0] = 2 * shape[0];
    return 1;
}

int64_t many(const double *scores, const double *additional, const int64_t *shape, int64_t *parts)
{
    return 2 * shape[0] + 1;
}
"""


class Run(CFunction):
    """Three neighbours."""

    def __init__(self, library: str, name: str = "run") -> None:
        self.library, self.name = library, name

    @cached_property
    def address(self) -> int:
        """Of the function of this name."""
        function = getattr(ctypes.CDLL(self.library), self.name)
        return ctypes.cast(function, ctypes.c_void_p).value

    def additional(self, shape):
        """One for each place where a run can begin, and two that are never used."""
        return {"bonus": shape}


class PythonRun(didyma.Structure):
    """The same in Python."""

    def additional(self, shape):
        return {"bonus": shape}

    def argmax(self, scores, bonus=None):
        bonus = np.zeros(len(scores)) if bonus is None else bonus
        runs = scores[:-2] + scores[1:-1] + scores[2:] + bonus[:-2]
        start = int(np.argmax(runs))
        return np.array([start, start + 1, start + 2, len(scores) + start])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    source, target = folder / "run.c", folder / "librun.so"
    source.write_text(SOURCE)
    subprocess.run(
        [COMPILER, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", target, source], check=True
    )
    return str(target)


@needs_compiler
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_it_is_solved_as_the_same_in_python(library, n_jobs):
    rng = np.random.default_rng(0)
    scores, bonus = 0.3 * rng.standard_normal((40, 20)), rng.standard_normal(20)
    found, expected = (
        didyma.sparsemap(scores, structure, bonus=bonus, return_solution=True, n_jobs=n_jobs)
        for structure in (Run(library), PythonRun())
    )
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1].support_size.max() > 3
    for name in ("parts", "extra_parts", "weights", "gap", "n_iter"):
        np.testing.assert_array_equal(getattr(found[1], name), getattr(expected[1], name))
    (one, one_bonus), (other, other_bonus) = found[1].vjp(scores), expected[1].vjp(scores)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one_bonus["bonus"], other_bonus["bonus"])


@needs_compiler
def test_its_argmax_names_parts_and_additional_ones(library):
    scores = np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    assert Run(library).argmax(scores).tolist() == [1, 2, 3, 6]
    assert Run(library).argmax(scores, bonus=[9.0, 0, 0, 0, 0]).tolist() == [0, 1, 2, 5]


@needs_compiler
def test_what_is_impossible_or_wrong_is_refused(library):
    with pytest.raises(DataError, match="instance 1: every output contains a part with score -inf"):
        didyma.sparsemap([[0.0, 0.0, 0.0], [0.0, -np.inf, 0.0]], Run(library))
    with pytest.raises(DataError, match="every output"):
        Run(library).argmax([0.0, -np.inf, 0.0])
    for name, message in (
        ("twice", "Run must return different part indices from 0 to 5, returned 1 twice"),
        ("beyond", "Run must return different part indices from 0 to 5, returned 6"),
        ("many", "as many part indices as there are scores at most, 6, returned 7"),
    ):
        with pytest.raises(DataError, match=message):
            didyma.sparsemap(np.zeros(3), Run(library, name))


@needs_compiler
def test_copies_look_the_address_up_again(library):
    scores = np.random.default_rng(1).standard_normal(9)
    run = Run(library)
    expected = didyma.sparsemap(scores, run)
    for other in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert "address" not in vars(other)
        np.testing.assert_array_equal(didyma.sparsemap(scores, other), expected)
