"""The compiled core: which build is loaded, and what it takes as arguments."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import didyma
from didyma import _core
from didyma._core.sources import digest
from didyma._core.sums import dot

BUILDS = {path.name.split(".")[0] for path in Path(_core.__file__).parent.glob("*.so")}
BUILDS -= {
    "strict",
    "sanitized",
}  # which adds in index order, which wants its libraries loaded first


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


SUM = """
import numpy as np
from didyma._core.sums import dot
numbers = np.random.default_rng(0).normal(size=1003)
print(dot(numbers, numbers).hex())
"""
TREES = """
import hashlib
import numpy as np
import didyma
scores = 0.3 * np.random.default_rng(0).normal(size=(8, 16, 16))
u, solution = didyma.sparsemap(scores, didyma.structures.Tree(), return_solution=True)
moved, _ = solution.vjp(scores)
for array in (u, solution.parts, solution.weights, solution.gap, moved):
    print(hashlib.sha256(array.tobytes()).hexdigest())
"""
MARGINALS = """
import hashlib
import numpy as np
import didyma
rng = np.random.default_rng(0)
scores, p = rng.normal(size=(2, 8, 24, 24))
scores[0, 1, 2] = scores[0, 2, 1] = 60.0
lengths = np.arange(23, 15, -1)
for single_root in (False, True):
    tree = didyma.structures.Tree(single_root)
    layout = tree.lay_out(scores, lengths)
    moved, _ = tree.covariances(layout, p.reshape(8, -1), np.zeros((8, 0)))
    for array in (*tree.expectations(layout), moved):
        print(hashlib.sha256(array.tobytes()).hexdigest())
"""
LEARNERS = """
import hashlib
import numpy as np
import scipy.sparse as sp
import didyma
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 21)) * (rng.random((600, 21)) < 0.7)
y, qid = rng.integers(0, 2, 600), np.repeat(np.arange(40), 15)
y[::15], y[1::15] = 0, 1
fits = [
    didyma.SVMRanker(C=10.0).fit(rows, y, qid=qid).coef_
    for rows in (X, X.astype(np.float32), sp.csr_array(X))
]
fits += [
    didyma.SVMRanker(C=10.0, solver="one-slack").fit(X, y, qid=qid).coef_,
    didyma.LatentPerceptronRanker(epochs=3).fit(X, y, qid=qid).coef_,
    didyma.AdditiveSVMRanker(C=1.0, bins=8).fit(X, y, qid=qid).predict(X),
]
for fit in fits:
    print(hashlib.sha256(fit.tobytes()).hexdigest())
"""
STRUCTURES = """
import hashlib
import numpy as np
import didyma
from didyma.structures import Matching, ProjectiveTree, Chain, Tree
rng = np.random.default_rng(0)
for structure in (Tree(), ProjectiveTree(), Matching(), Chain()):
    for spread in (0.03, 0.3, 3.0):
        u = didyma.sparsemap(spread * rng.normal(size=(60, 7, 7)), structure)
        print(hashlib.sha256(u.tobytes()).hexdigest())
"""
VECTORS = """
import hashlib
import numpy as np
from didyma.data.lists import Lists
from didyma.text.features.union import TextFeatures
from didyma.text.features.word_vectors import WordVectors
rng = np.random.default_rng(0)
words = [f"word{n}" for n in range(40)]
table = dict(zip(words, rng.normal(size=(40, 37)).astype(np.float32)))
lists = Lists.of_texts(["word1 word2 word3"], [[" ".join(rng.choice(words, 9)) for _ in range(9)]])
X = TextFeatures([WordVectors(table)]).fit(lists).transform(lists)
print(hashlib.sha256(X.tobytes()).hexdigest())
"""
PROGRAMS = {
    "sum": SUM,
    "trees": TREES,
    "marginals": MARGINALS,
    "learners": LEARNERS,
    "structures": STRUCTURES,
    "vectors": VECTORS,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_build_has_the_same_bits(program: str) -> None:
    """Also where a compiler may fuse products with sums: trees are solved with rotations."""
    done = [run(program, DIDYMA_CORE=build) for build in sorted(BUILDS)]
    assert not any(one.returncode for one in done), [one.stderr for one in done]
    assert len({one.stdout for one in done}) == 1


def test_an_unknown_build_says_how_to_make_it() -> None:
    done = run("import didyma._core", DIDYMA_CORE="v9")
    assert "no build 'v9': run `pip install .`" in done.stderr


def test_a_build_of_other_sources_says_how_to_make_it_anew(tmp_path: Path) -> None:
    (tmp_path / "hatch_build.py").touch()
    (tmp_path / "src" / "core").mkdir(parents=True)
    (tmp_path / "src" / "didyma").symlink_to(Path(didyma.__file__).parent)
    (path := tmp_path / "src" / "core" / "array.hpp").write_text("// other sources\n")
    for build, command in {"baseline": "make core", "checked": "--build checked"}.items():
        if build in BUILDS:
            done = run("import didyma._core", DIDYMA_CORE=build, PYTHONPATH=str(tmp_path / "src"))
            assert re.search(f"{build}' is not of this src/core: run `.*{command}`", done.stderr)
    before = digest(path.parent)
    path.write_text("// others again\n")
    assert digest(path.parent) != before


@pytest.mark.parametrize(
    "argument",
    [
        np.zeros(4, np.float32),
        np.zeros((2, 2)),
        np.zeros(8)[::2],
        np.zeros(4, ">f8"),
        [0.0, 0.0],
        None,
    ],
)
def test_nothing_is_converted(argument: object) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        dot(argument, np.zeros(4))


def test_read_only_and_empty_arrays_are_read() -> None:
    ones = np.ones(3)
    ones.flags.writeable = False
    assert dot(ones, ones) == 3.0
    assert dot(ones[:0], ones[:0]) == 0.0
