"""Dense retrieval: the passages whose vectors are nearest to that of a query.

Up to `EXACT` passages all products are computed. Beyond, a graph of neighbours finds the nearest
(HNSW, by the package `usearch`), if it was installed when the vectors were written.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.ranking.featuriser import check_array
from didyma.text.encoders.encoder import Encoder, Fingerprint
from didyma.text.encoders.resolution import EncoderLike, is_installed, restore

BLOCK = 16_384  # vectors that are multiplied at once
EXACT = 100_000  # passages beyond which neighbours are looked up
GRAPH = "neighbours.usearch"


class DenseVectors:
    """Vectors of passages, and the encoder that made them: top k by s(q, d) = v(q)'v(d).

    All products are computed, a block of float16 numbers at a time, unless there is a graph.
    """

    def __init__(
        self, vectors: NDArray[np.float16], name: str, fingerprint: Fingerprint, path: Path
    ) -> None:
        check_array("vectors", vectors, np.float16, (len(vectors), fingerprint.vectors.shape[1]))
        self.vectors, self.name, self.fingerprint, self._path = vectors, name, fingerprint, path
        self._encoder: Encoder | None = None

    def attach(self, encoder: EncoderLike) -> None:
        """Use this encoder for queries; another than that of the passages is refused."""
        self._encoder = restore(self.name, self.fingerprint, encoder)

    @property
    def encoder(self) -> Encoder:
        """What encodes queries: that of the passages, found by its name or attached."""
        if self._encoder is None:
            self._encoder = restore(self.name, self.fingerprint)
        if self._encoder is None:
            problem = f"was made with the encoder {self.name}, which has to be attached"
            raise DataError(problem, path=self._path, field="encoder")
        return self._encoder

    def encode(self, query: str) -> NDArray[np.float32]:
        """The vector of a query; shape (dimension,)."""
        return self.encoder.encode_queries([query])[0]

    def cosines(
        self, query: NDArray[np.float32], places: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Cosine of a query's vector and each passage, or those at some places."""
        if places is not None:
            return self.vectors[places].astype(np.float32) @ query
        scores = np.empty(len(self.vectors), np.float32)
        for start in range(0, len(self.vectors), BLOCK):
            block = self.vectors[start : start + BLOCK].astype(np.float32)
            scores[start : start + BLOCK] = block @ query
        return scores

    def nearest(self, query: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Places of the k passages nearest to a query's vector, the nearest first."""
        if self._graph is None:
            return largest(self.cosines(query), k)
        count = min(k, len(self.vectors))
        keys = self._graph.search(query, count, threads=1).keys
        places = np.sort(np.asarray(keys).astype(np.int64))
        return places[largest(self.cosines(query, places), count)]

    @cached_property
    def _graph(self) -> Any:
        """The graph that was written, None if there is none, or nothing to read it with."""
        if not (self._path / GRAPH).is_file() or not is_installed("usearch"):
            return None
        from usearch.index import Index

        graph = Index.restore(self._path / GRAPH, view=True)
        if graph is None or (graph.ndim, len(graph)) != self.vectors.shape[::-1]:
            raise DataError("is damaged: expected the neighbours of all passages", path=self._path)
        return graph


def write_graph(vectors: NDArray[np.float32], path: Path) -> bool:
    """Write the neighbours of many vectors of unit length; say whether it was done."""
    if len(vectors) <= EXACT or not is_installed("usearch"):
        return False
    from usearch.index import Index

    graph = Index(ndim=vectors.shape[1], metric="ip", dtype="f16")
    graph.add(np.arange(len(vectors)), vectors)
    graph.save(path)
    return True


def largest(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Places of the k largest, largest first, of equal ones the first."""
    k = min(k, len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k] if k else np.inf
    places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")][:k]
