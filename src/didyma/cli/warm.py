"""`didyma warm`: compile all kernels before they are needed."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from didyma.cli import options
from didyma.cli.output import listed, print_json, say
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.data import Lists

__all__ = ["warm"]

LOSSES = ("ap", "rr", "roc", "ndcg", "ndcg@2", "precision@2")


def warm(as_json: options.Json = False) -> None:
    """Compile everything once, for images and servers.

    Kernels are compiled when they are first called and kept in a cache; with
    this, a first fit is as fast as all others. The cache is below
    NUMBA_CACHE_DIR if that is set, else where caches are kept.

    [bold]Example[/bold]

    NUMBA_CACHE_DIR=/opt/cache didyma warm
    """
    from didyma.kernels.jit import cache_folder

    folder = cache_folder()
    if folder is None or not os.access(folder, os.W_OK):
        raise DataError("there is no folder for compiled kernels: set NUMBA_CACHE_DIR to one")
    before, began = _count(folder), time.perf_counter()
    for what, work in _works():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there is little to learn from a few random rows
            work()
        say(f"{what:<40}{time.perf_counter() - start:6.1f} s")
    found = {
        "cache": folder,
        "kernels": _count(folder),
        "compiled": _count(folder) - before,
        "seconds": round(time.perf_counter() - began, 1),
    }
    if as_json:
        print_json(found)
    else:
        typer.echo(listed(found))


def _count(folder: str) -> int:
    return sum(1 for _ in Path(folder).rglob("*.nbc"))


def _works() -> Iterator[tuple[str, Callable[[], object]]]:
    """What to do on a few rows, so that each kernel of the commands is called."""
    data = _data()
    for loss in LOSSES:
        yield f"rankings, {loss}", partial(_rank, data, loss)
    yield "rankings with grades", partial(_rank, _graded(data), "ndcg")
    yield "latent rankings", partial(_rank_latent, data)
    yield "additive rankings", partial(_rank_additive, data)
    yield "measures", partial(_measure, data)
    yield "rerankers of texts", _rerank
    yield "search", _search
    yield "requests", _size_up
    yield "structures", _structures
    yield "local polytopes", _local
    yield "tags and n-best lists", _tag
    yield "motifs", _find_motif


def _data() -> Lists:
    import numpy as np

    from didyma.data import Lists

    random = np.random.default_rng(0)
    X, y = random.normal(size=(24, 3)), np.tile([1.0, 0.0, 0.0], 8)
    return Lists(X, y, np.repeat(np.arange(4), 6))


def _graded(data: Lists) -> Lists:
    from dataclasses import replace

    return replace(data, labels=data.y * (1 + (data.X[:, 0] > 0)))


def _rank(data: Lists, loss: str) -> None:
    import numpy as np
    from scipy.sparse import csr_array

    from didyma.data import Lists
    from didyma.tasks.ranking_svm import PlainSVM

    for X in (data.X, data.X.astype(np.float32), csr_array(data.X)):
        rows = Lists(X, data.y, data.qid)
        for solver in ("bcfw", "one-slack"):
            PlainSVM(loss, solver=solver).path(rows, [1.0])


def _rank_latent(data: Lists) -> None:
    from didyma.estimators.latent import LatentPerceptronRanker, LatentSVMRanker

    LatentPerceptronRanker(epochs=1).fit(data)
    LatentSVMRanker(C=0.1).fit(data)


def _rank_additive(data: Lists) -> None:
    from didyma.estimators.additive import AdditiveSVMRanker

    AdditiveSVMRanker(bins=4, interactions=1).fit(data).predict(data)


def _measure(data: Lists) -> None:
    from didyma.metrics import Evaluator

    evaluator = Evaluator(data.y, data.groups, "AP, RR, nDCG@10, P@1, ROCArea")
    evaluator(data.X[:, 0])


def _rerank() -> None:
    from didyma.rerank.choice import FEWEST
    from didyma.rerank.text import TextReranker

    queries = ["who rings ?", "what is a ring ?"] * FEWEST
    passages = [["They ring .", "A ring of 3 grams ."], ["A ring is round .", "They rang twice ."]]
    passages, scores = passages * FEWEST, [[2.0, 1.0], [1.0, 2.0]] * FEWEST
    table = {"ring": [1.0, 0.5], "round": [0.5, 1.0]}
    for labels, given in (([[1, 0], [1, 0]], None), ([[0.5, -2.0], [3.5, 0.0]], table)):
        reranker = TextReranker(vectors=given).fit(queries, passages, labels * FEWEST, scores)
        with TemporaryDirectory() as folder:
            path = Path(folder, "model")
            reranker.save(path)
            loaded = TextReranker.load(path)
        if given is not None:
            loaded.attach(given)
        long = "They ring bells . " * 100  # of several windows
        loaded.rank(queries[0], [long, *passages[0]], scores=[1.0, 2.0, 3.0])
        loaded.explain(queries[0], passages[0], scores[0])


def _search() -> None:
    from didyma.features import BM25
    from didyma.search.index import PassageIndex

    passages = ["They ring .", "A ring is round ."]
    BM25().fit(passages).top(["ring"], 1)
    with TemporaryDirectory() as folder:
        PassageIndex.build(passages, Path(folder, "index")).search("ring")


def _size_up() -> None:
    import numpy as np

    from didyma.kernels.json_values import count_values

    count_values(np.frombuffer(b"[]", np.uint8), 1)


def _structures() -> None:
    import numpy as np

    from didyma.polytope.sparsemap import sparsemap
    from didyma.structures import Choice, Matching, ProjectiveTree, Sequence, TopK, Tree

    random = np.random.default_rng(0)
    for square in (Tree(), ProjectiveTree(), Sequence(), Matching()):
        sparsemap(random.normal(size=(2, 4, 4)), square)
    for flat in (Choice(), TopK(2)):
        sparsemap(random.normal(size=(2, 4)), flat)


def _local() -> None:
    from didyma.polytope.local import local_sparsemap
    from didyma.structures import Cardinality, FactorGraph

    edges, logic = [(0, 1), (1, 2), (0, 2)], [Cardinality((0, 1, 2), 1, 2)]
    graph = FactorGraph(3, edges=edges, logic=logic)
    table = [[0.0, 0.5], [0.5, 0.0]]
    solution = local_sparsemap([[0.0, 0.6], [0.0, 0.5], [0.0, 0.4]], graph, pairwise=[table] * 3)
    solution.jvp(solution.marginals)


def _tag() -> None:
    from didyma.estimators.tagger import TrigramTagger
    from didyma.formats.nbest import of_outputs
    from didyma.rerank.nbest import NBestReranker

    tagger = TrigramTagger().fit([["a", "ring"], ["they", "ring"]], [["D", "N"], ["P", "V"]])
    tagger.predict([["a", "ring"]])
    tagger.n_best([["a", "ring"]], 2)
    lists = of_outputs(
        ["a ring", "they ring"],
        [["D V", "D N"], ["P V", "P N"]],
        scores=[[-3.0, -4.0], [-3.0, -4.0]],
        references=["D N", "P V"],
    )
    for model in ("low-rank", "boosting", "perceptron"):
        NBestReranker(model).fit(lists).rerank(lists)


def _find_motif() -> None:
    from didyma.estimators.motif import MotifFinder

    sequences = ["ACGTTACGATCG", "TTACGGACCATG", "GGGCCCAAATTT", "CCCGGGTTTAAA"]
    MotifFinder(4, 2, n_restarts=1).fit(sequences, [1, 1, -1, -1]).predict(sequences)
