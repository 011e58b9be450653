"""`didyma warm` reaches kernels of every kind."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from didyma import AdditiveSVMRanker, PassageIndex, Reranker, TextReranker, load, local_sparsemap
from didyma.features import text
from didyma.kernels.jit import Kernel
from didyma.structures import FactorGraph
from tests.cli.conftest import Run
from tests.rerank.texts import made

pytestmark = [
    pytest.mark.skipif(
        not numba.config.DISABLE_JIT,
        reason="compiles for minutes; run where kernels are plain Python",
    ),
    pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning"),
]


def kind_of(value: Any) -> Any:
    """What Numba compiles for anew."""
    if isinstance(value, tuple):
        return tuple(map(kind_of, value))
    if isinstance(value, np.ndarray):
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return value.dtype.str, value.ndim, layout, value.flags.writeable
    return (
        np.asarray(value).dtype.str if isinstance(value, (int, float, np.generic)) else type(value)
    )


@contextmanager
def called(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Any]]:
    """Kernels that are called from Python, and with what."""
    found: set[Any] = set()
    call, within = Kernel.__call__, threading.local()

    def note(self: Kernel, *arguments: Any) -> Any:
        if getattr(within, "kernel", False):
            return call(self, *arguments)
        found.add((self.__qualname__, *map(kind_of, arguments)))
        within.kernel = True
        try:
            return call(self, *arguments)
        finally:
            within.kernel = False

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "__call__", note)
        yield found


def first_uses(folder: Path) -> dict[str, Callable[[], object]]:
    """What users do first, each with what was made before."""
    lists = made(12, n_passages=4)
    rows = text.TextFeatures([text.SmallFeatures()])
    Reranker(rows, AdditiveSVMRanker(bins=8)).fit(lists).save(folder / "additive")
    TextReranker(quick=True).fit(lists).save(folder / "linear")
    index = PassageIndex.build([*lists.items], folder / "index")
    query, passages = "when does the ship sail?", ["The ship sails in 1801.", "A tree grows."]

    def rank(name: str) -> None:
        reranker = load(folder / name)
        reranker.rank(query, passages)
        reranker.explain(query, passages)
        index.search(query, reranker=reranker)

    graph = FactorGraph(3, edges=[(0, 1), (1, 2)])
    return {
        "rerank rank with an additive model": lambda: rank("additive"),
        "rerank rank": lambda: rank("linear"),
        "ask": lambda: PassageIndex.open(folder / "index").search(query),
        "local": lambda: local_sparsemap(np.zeros((3, 2)), graph, pairwise=np.ones((2, 2, 2))),
    }


def test_after_it_first_uses_compile_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    uses = first_uses(tmp_path)
    with called(monkeypatch) as compiled:
        result = run("warm", "--json")
    assert {"cache", "kernels", "compiled", "seconds"} == json.loads(result.stdout).keys()
    assert "structures" in result.stderr
    for name, use in uses.items():
        with called(monkeypatch) as needed:
            use()
        assert needed, name
        assert needed <= compiled, (name, needed - compiled)
