"""Dense retrieval: the passages whose vectors are nearest to that of a query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.ranking.featuriser import check_array
from didyma.text.encoders.encoder import Encoder
from didyma.text.encoders.fingerprint import Fingerprint
from didyma.text.encoders.resolution import EncoderLike, restore

__all__ = ["DenseVectors", "largest"]

BLOCK = 16_384  # vectors that are multiplied at once


class DenseVectors:
    """Vectors of passages, and the encoder that made them: top k by s(q, d) = v(q)'v(d).

    All products are computed, a block of float16 numbers at a time.
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

    def scores(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Cosine of each query and each passage; shape (n_queries, n_passages)."""
        asked = self.encoder.encode_queries(queries)
        scores = np.empty((len(queries), len(self.vectors)), np.float32)
        for start in range(0, len(self.vectors), BLOCK):
            block = self.vectors[start : start + BLOCK].astype(np.float32)
            scores[:, start : start + BLOCK] = asked @ block.T
        return scores


def largest(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Places of the k largest, largest first, of equal ones the first."""
    k = min(k, len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k] if k else np.inf
    places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")][:k]
