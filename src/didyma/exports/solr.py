"""Models of Solr's learning to rank module, which computes in single precision.

The file is what is put into ``schema/model-store``: a ``LinearModel`` with a ``StandardNormalizer``
for each column that is scaled, or a ``MultipleAdditiveTreesModel``. Solr adds 1e-6 to thresholds of
trees when it reads them, in single precision, so a file has thresholds that end where they should.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import ColumnLine, Description, FloatArray
from didyma.exports.engine import LuceneEngine
from didyma.exports.trees import (
    LARGEST,
    Branch,
    BranchOrLeaf,
    at_most,
    columns_of,
    sum_of_trees,
    trees_of,
)

SLACK = np.float32(1e-6)  # that Solr adds to the thresholds of trees
NEAR = 4  # numbers of single precision beside T − slack that are tried


class Solr(LuceneEngine):
    """A linear model of Solr, or one of trees."""

    title = "Solr"

    def place(self, edge: float) -> float:
        """Where a threshold is after Solr has read it."""
        return float(np.float32(before_slack(edge)) + SLACK)

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The JSON of a model."""
        if description.tables:
            return self.as_json(_trees(description, names, name))
        weights = {names[line.column]: line.weight for line in description.lines}
        model = {
            "class": "org.apache.solr.ltr.model.LinearModel",
            "name": name,
            "features": [_feature(line, names[line.column]) for line in description.lines],
            "params": {"weights": weights},
        }
        return self.as_json(model)

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores as Solr computes them."""
        model = json.loads(contents)
        if "trees" in model["params"]:
            place = {name: column for column, name in enumerate(names)}
            roots = [(float(tree["weight"]), tree["root"]) for tree in model["params"]["trees"]]
            return sum_of_trees(roots, rows, partial(_read, place), self.precision)
        standard = {
            feature["name"]: (feature["norm"]["params"]["avg"], feature["norm"]["params"]["std"])
            for feature in model["features"]
            if "norm" in feature
        }
        return self.linear_scores(model["params"]["weights"], standard, names, rows)


def _feature(line: ColumnLine, name: str) -> dict[str, Any]:
    if not line.scaled:
        return {"name": name}
    params = {"avg": repr(line.centre), "std": repr(line.scale)}  # Solr wants them as texts
    return {
        "name": name,
        "norm": {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": params},
    }


def _trees(description: Description, names: Sequence[str], name: str) -> dict[str, Any]:
    trees = trees_of(description)
    return {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": name,
        "features": [{"name": names[column]} for column in columns_of(trees)],
        "params": {"trees": [{"weight": "1", "root": _node(tree, names)} for tree in trees]},
    }


def _node(node: BranchOrLeaf, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(node, Branch):
        return {"value": repr(float(node))}
    return {
        "feature": names[node.column],
        "threshold": repr(before_slack(node.threshold)),
        "left": _node(node.low, names),
        "right": _node(node.high, names),
    }


def before_slack(edge: float) -> float:
    """The number t of single precision for which x ≤ t + 1e-6 says x ≤ edge.

    Near 0, and at −1, −2, −4, …, there may be none. Then t + 1e-6 is the next number above, or the
    next one below if the edge is just below a number, as the lower end of a category is.

    >>> before_slack(0.0) == -float(SLACK), float(np.float32(before_slack(0.25)) + SLACK)
    (True, 0.25)
    """
    threshold, above = at_most(edge), float(np.nextafter(edge, np.inf))
    candidates = [np.float32(threshold) - SLACK]
    for way in (np.float32(-LARGEST), np.float32(LARGEST)):
        beside = candidates[0]
        for _ in range(NEAR):
            candidates.append(beside := np.nextafter(beside, way))
    sums = {float(t): float(t + SLACK) for t in candidates}
    wanted = range(-1, 1) if float(np.float32(above)) == above else range(2)  # signs of differences
    allowed = [t for t, total in sums.items() if np.sign(total - threshold) in wanted]
    return min(allowed, key=lambda t: abs(sums[t] - threshold))


def _read(
    place: dict[str, int], node: tuple[float, dict[str, Any]], rows: NDArray[np.float32]
) -> Any:
    weight, branch = node
    if "value" in branch:
        return weight * float(np.float32(branch["value"]))
    threshold = np.float32(branch["threshold"]) + SLACK
    low = rows[:, place[branch["feature"]]] <= threshold
    return low, (weight, branch["left"]), (weight, branch["right"])
