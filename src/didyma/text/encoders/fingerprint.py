"""How an encoder is known again: by its vectors of a few fixed texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from didyma.model import Saved, Serialisable

# Short and long, several scripts, a number and a sign: what tokenisers and prefixes disagree about.
PROBES = (
    "when do swifts sleep?",
    "Swifts sleep on the wing, at heights of up to 3,000 m; young ones do so for two years.",
    "Ein Fluß, der im Sommer versiegt. Река, 河流, نهر",
)
SAME = 0.9999  # least cosine of two vectors of a probe by one encoder on two machines


@dataclass(frozen=True, eq=False)
class Fingerprint(Serialisable):
    """Vectors of `PROBES` as queries, then as documents; shape (2 × n_probes, dimension).

    Machines, numbers of threads and sizes of batches change the last digits of a vector, so two
    fingerprints are the same if the cosines of their rows are all at least .9999. Another model,
    another prefix or another way of pooling moves some row by more than that.

    >>> first = Fingerprint(np.eye(2, 3, dtype=np.float32))
    >>> first.matches(Fingerprint(first.vectors + np.float32(1e-3)))
    True
    >>> first.matches(Fingerprint(first.vectors[::-1])), first.matches(Fingerprint(np.eye(2)))
    (False, False)
    """

    vectors: Annotated[NDArray[np.float32], Saved("probes", "dimension")]

    def matches(self, other: Fingerprint) -> bool:
        """Whether both are of one encoder."""
        if self.vectors.shape != other.vectors.shape:
            return False
        lengths = np.linalg.norm(self.vectors, axis=1) * np.linalg.norm(other.vectors, axis=1)
        products = np.einsum("ij,ij->i", self.vectors, other.vectors)
        both_zero = ~self.vectors.any(axis=1) & ~other.vectors.any(axis=1)
        return bool((both_zero | ((products >= SAME * lengths) & (lengths > 0))).all())

    def _check_state(self) -> None:
        if self.vectors.ndim != 2 or not np.isfinite(self.vectors).all():
            raise ValueError("expected vectors of finite numbers as a fingerprint")
