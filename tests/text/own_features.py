"""Featurisers of a user's own, in a module that can be imported."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from didyma.model import Saved
from didyma.ranking.featuriser import Featuriser


class Shared(Featuriser):
    """How many words query and passage share, and how long the passage is."""

    names = ("shared", "length")
    mean_: Annotated[float, Saved()]

    def fit(self, lists):
        self.mean_ = float(np.mean([len(text) for text in lists.items]))
        return self

    def transform(self, lists):
        rows = []
        for text, query in zip(lists.items, lists.groups.codes.tolist()):
            asked = set(lists.queries[query].lower().replace("?", "").split())
            words = set(text.lower().replace(".", "").split())
            rows.append([len(asked & words), len(text) / self.mean_])
        return np.array(rows, float).reshape(-1, 2)


class Unsaved(Shared):
    """Not what its path leads to."""


Other, Unsaved = Unsaved, None
