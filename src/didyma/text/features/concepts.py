"""Explicit semantic analysis: a text as the concepts that its stems occur in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from didyma._core.text import concept_cosines
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable
from didyma.text.features.reading import Reading

# So that a saved model stays small. Keeping the strongest entries also makes the cosines better:
# what a common stem has in all other concepts is noise.
MOST_CONCEPTS = 1024
STRONGEST = 32  # entries of a stem
MOST_ENTRIES = 2**18


@dataclass(frozen=True, eq=False)
class Concepts(Serialisable):
    """Concepts are the lists of passages that a model is trained on, or evenly chosen ones of them.

    The weight of a stem in a concept is (1 + log tf) · log(1 + n / df), each concept scaled to
    length 1; a text is the sum over its content words of the weights of their stems, times
    log(1 + n / df). Of each stem the strongest entries are kept, in 255 steps of the greatest: the
    cosine of two texts does not depend on the scale.

    Attributes
    ----------
    stems : array of shape (n_stems,), int32, ascending
        Places in the reader's vocabulary.
    starts : array of shape (n_stems + 1,)
        Entries ``starts[s]`` to ``starts[s + 1]`` are those of stem s.
    concepts, weights : arrays
        Number of the concept, and weight, of each entry. Files of 0.2 have all entries, in single
        precision.
    """

    stems: Annotated[NDArray[np.int32], Saved("stems")]
    starts: Annotated[NDArray[np.int32] | NDArray[np.int64], Saved("starts")]
    concepts: Annotated[NDArray[np.int16], Saved("entries")]
    weights: Annotated[NDArray[np.uint8] | NDArray[np.float32], Saved("entries")]

    @classmethod
    def fit(cls, reading: Reading) -> Self:
        """The concepts of a reading's lists."""
        n_lists = len(reading.queries)
        n = min(n_lists, MOST_CONCEPTS)
        chosen = np.arange(n) * n_lists // max(n, 1)
        lists = [np.unique(reading.rows[a:b]) for a, b in _bounds(reading, chosen)]
        parts = [
            reading.stems[reading.begins[text] : reading.ends[text]][
                ~reading.is_stop[reading.terms[reading.begins[text] : reading.ends[text]]]
            ]
            for texts in lists
            for text in texts
        ]
        owner = np.repeat(np.arange(n), list(map(len, lists)))
        stems = reading.lexicon.stem_places[np.concatenate([np.zeros(0, np.int32), *parts])]
        concept = np.repeat(owner, list(map(len, parts)))
        # By stem, and then by concept.
        entries, tf = np.unique(stems.astype(np.int64) * n + concept, return_counts=True)
        stem, concept = np.divmod(entries, max(n, 1))
        present, place, df = np.unique(stem, return_inverse=True, return_counts=True)
        rarity = np.log1p(n / np.maximum(df, 1))[place]
        weights = (1 + np.log(tf)) * rarity
        norms = np.sqrt(np.bincount(concept, weights**2, minlength=n))
        weights *= rarity / norms[concept]
        most = STRONGEST
        while most > 1 and np.minimum(df, most).sum() > MOST_ENTRIES:
            most //= 2
        order = np.lexsort((-weights, place))
        strongest = np.arange(len(order)) - np.repeat(np.cumsum(df) - df, df) < most
        entries_kept = np.sort(order[strongest])
        steps = 255 * weights[entries_kept] / weights.max(initial=0.0)
        return cls(
            present.astype(np.int32),
            np.concatenate([[0], np.cumsum(np.minimum(df, most))]).astype(np.int32),
            concept[entries_kept].astype(np.int16),
            np.maximum(np.rint(steps), 1).astype(np.uint8),
        )

    def cosines(self, reading: Reading, ends: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosine of each row and its query; text i is read to ``ends[i]``."""
        if not len(self.stems):
            return np.zeros(len(reading))
        wanted = reading.lexicon.stem_places
        at = np.minimum(np.searchsorted(self.stems, wanted), len(self.stems) - 1)
        places = np.where(self.stems[at] == wanted, at, -1).astype(np.int32)
        return concept_cosines(reading.numbered(ends), places, *self._entries)

    @cached_property
    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.float32], int]:
        """What the kernel takes: starts, concepts, weights and the number of concepts."""
        n_concepts = int(self.concepts.max()) + 1
        starts, weights = self.starts.astype(np.int64), self.weights.astype(np.float32)
        return starts, self.concepts, weights, n_concepts

    def _check_state(self) -> None:
        n_entries, n_starts = len(self.concepts), len(self.stems) + 1
        if len(self.starts) != n_starts or tuple(self.starts[[0, -1]]) != (0, n_entries):
            raise ValueError(f"expected {n_entries} concepts of {len(self.stems)} stems")
        if (np.diff(self.starts) < 0).any() or (np.diff(self.stems, prepend=-1) <= 0).any():
            raise ValueError("the concepts are not in order")
        if n_entries and not 0 <= self.concepts.min() <= self.concepts.max() < MOST_CONCEPTS:
            raise ValueError(f"expected concepts below {MOST_CONCEPTS}")


def _bounds(reading: Reading, lists: NDArray[np.int64]) -> zip[tuple[int, int]]:
    return zip(reading.bounds[lists].tolist(), reading.bounds[lists + 1].tolist())
