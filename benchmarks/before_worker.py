"""Times of one version of the library: ``before_worker.py kernels`` or ``before_worker.py CASE``.

The first prints a line ``name seconds`` for each kernel, the second runs a case once, as the first
thing that a process does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPEATS = 7


def tree() -> None:
    import numpy as np

    import didyma
    from didyma.structures import Tree

    didyma.sparsemap(np.random.default_rng(0).normal(size=(11, 11)), Tree())


def fit() -> None:
    import numpy as np

    import didyma

    X, y, qid = rows(np, 40, 25, 20)
    didyma.SVMRanker().fit(X, y, qid=qid)


def rank() -> None:
    import didyma

    didyma.load(sys.argv[2]).rank("what is a generator?", ["A function that yields.", "A tree."])


def layer() -> None:
    import torch

    from didyma.nn import SparseMAP
    from didyma.structures import Tree

    scores = torch.zeros(1, 11, 11, requires_grad=True)
    SparseMAP(Tree())(scores).square().sum().backward()


CASES = {case.__name__: case for case in (tree, fit, rank, layer)}


def rows(np: Any, queries: int, per_query: int, features: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.random((queries * per_query, features))
    score = X @ rng.normal(size=features) + rng.normal(size=len(X))
    return X, (score > np.quantile(score, 0.93)).astype(float), np.repeat(range(queries), per_query)


def kernels() -> Iterator[tuple[str, Callable[[], Any]]]:
    import numpy as np

    import didyma
    from didyma import structures
    from didyma.structures import Matching, ProjectiveTree, Tree

    Chain = getattr(structures, "Chain", None) or structures.Sequence  # its former name
    rng = np.random.default_rng(0)
    for n in (10, 20, 40):
        scores = rng.normal(size=(32, n + 1, n + 1))
        yield f"sparsemap, 32 trees of {n}", lambda s=scores: didyma.sparsemap(s, Tree())
    for n, tags in ((25, 5), (25, 50), (50, 20)):
        scores, steps = rng.normal(size=(32, n, tags)), rng.normal(size=(tags, tags))
        yield (
            f"sparsemap, 32 chains {n}x{tags}",
            lambda s=scores, t=steps: didyma.sparsemap(s, Chain(), transitions=t),
        )
    scores = rng.normal(size=(32, 21, 21))
    yield "sparsemap, 32 projective trees of 20", lambda: didyma.sparsemap(scores, ProjectiveTree())
    square = rng.normal(size=(32, 20, 20))
    yield "sparsemap, 32 matchings of 20", lambda: didyma.sparsemap(square, Matching())
    one = rng.normal(size=(5, 5))
    yield "sparsemap, one tree of 4", lambda: didyma.sparsemap(one, Tree())
    for n in (10, 20, 80):
        scores = rng.normal(size=(32, n + 1, n + 1))
        yield f"marginals, 32 trees of {n}", lambda s=scores: Tree().marginals(s)
    yield "marginals, 32 projective trees of 20", lambda: ProjectiveTree().marginals(square_(rng))
    X, y, qid = rows(np, 1000, 100, 136)
    for dtype in ("float64", "float32"):
        data = X.astype(dtype)
        yield (
            f"SVMRanker, 1,000 queries of 100 x 136, {dtype}",
            lambda d=data: didyma.SVMRanker(n_jobs=1).fit(d, y, qid=qid),
        )
    small = X[:20_000], y[:20_000], qid[:20_000]
    for loss in ("ndcg@10", "precision@10"):
        yield (
            f"SVMRanker, 200 queries, {loss}",
            lambda name=loss: didyma.SVMRanker(loss=name, n_jobs=1).fit(*small[:2], qid=small[2]),
        )
    reranker = didyma.load(sys.argv[2])
    words = [f"word{i}" for i in range(2000)]
    passages = [" ".join(rng.choice(words, 100)) for _ in range(100)]
    yield "rank 100 passages of 100 words", lambda: reranker.rank("word1 word2 word3", passages)
    path = Path(sys.argv[2]).with_name("rows.letor")
    yield "read 20,000 rows of LETOR", lambda: didyma.read(path)


def square_(rng: Any) -> Any:
    return rng.normal(size=(32, 21, 21))


def main() -> None:
    if sys.argv[1] != "kernels":
        CASES[sys.argv[1]]()
        return
    for name, call in kernels():
        call()
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        print(f"{name}\t{min(times)}", flush=True)


if __name__ == "__main__":
    main()
