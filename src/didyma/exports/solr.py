"""Models of Solr's learning to rank module, which computes in single precision.

The file is what is put into ``schema/model-store``: a ``LinearModel`` with a ``StandardNormalizer``
for each column that is scaled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.exports.description import ColumnLine, Description
from didyma.exports.engine import LuceneEngine, refuse_clipping

__all__ = ["Solr"]


class Solr(LuceneEngine):
    """A linear model of Solr."""

    title = "Solr"

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The JSON of a model."""
        if description.tables:
            raise DataError(
                "an additive model cannot be exported to Solr, which moves the thresholds of trees "
                "by 1e-6, so that 0 may be on the wrong side of one"
            )
        refuse_clipping(description, names, self.title)
        weights = {names[line.column]: line.weight for line in description.lines}
        model = {
            "class": "org.apache.solr.ltr.model.LinearModel",
            "name": name,
            "features": [_feature(line, names[line.column]) for line in description.lines],
            "params": {"weights": weights},
        }
        return self.as_json(model)

    def score(
        self, contents: bytes, names: Sequence[str], rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Scores as Solr computes them."""
        model = json.loads(contents)
        standard = {
            feature["name"]: (feature["norm"]["params"]["avg"], feature["norm"]["params"]["std"])
            for feature in model["features"]
            if "norm" in feature
        }
        return self.linear_scores(model["params"]["weights"], standard, names, rows)


def _feature(line: ColumnLine, name: str) -> dict[str, Any]:
    if line.centre == 0 and line.scale == 1:
        return {"name": name}
    params = {"avg": repr(line.centre), "std": repr(line.scale)}  # Solr wants them as texts
    return {
        "name": name,
        "norm": {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": params},
    }
