"""Models of the learning to rank plug-ins of Elasticsearch and OpenSearch.

The file is the body of a request to ``_ltr/_featureset/NAME/_createmodel``: a linear model with its
normalisers ("model/linear"), or trees ("model/xgboost+json"). The plug-ins compute in single
precision. Older ones do not look at ``missing``, and a comparison with NaN sends it to ``no``: here
both say the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import Description
from didyma.exports.engine import Engine, refuse_clipping
from didyma.exports.trees import Branch, BranchOrLeaf, descend, first_above, trees_of

__all__ = ["Elasticsearch"]


class Elasticsearch(Engine):
    """What the plug-ins load."""

    title = "Elasticsearch"
    precision = np.float32
    adds_constant = False
    by_name = True

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The body of the request that uploads the model."""
        refuse_clipping(description, names, self.title)
        if description.tables:
            trees = [_tree(tree, names, 0, count()) for tree in trees_of(description)]
            model = {"type": "model/xgboost+json", "definition": json.dumps(trees)}
        else:
            model = _linear(description, names)
        return (json.dumps({"model": {"name": name, "model": model}}, indent=2) + "\n").encode()

    def score(
        self, contents: bytes, names: Sequence[str], rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Scores as the plug-ins compute them."""
        model = json.loads(contents)["model"]["model"]
        definition = json.loads(model["definition"])
        columns = dict(zip(names, rows.astype(np.float32).T))
        if model["type"] == "model/xgboost+json":
            place = {name: column for column, name in enumerate(names)}
            leaves = (
                descend(tree, rows.astype(np.float32), partial(_read, place)) for tree in definition
            )
            return _sum(leaves, len(rows))
        for name, normaliser in model["feature_normalizers"].items():
            told = normaliser["standard"]
            mean, deviation = np.float32(told["mean"]), np.float32(told["standard_deviation"])
            columns[name] = (columns[name] - mean) / deviation
        parts = (columns[name] * np.float32(weight) for name, weight in definition.items())
        return _sum(parts, len(rows))


def _sum(parts: Iterator[NDArray[Any]], n: int) -> NDArray[np.float64]:
    """The sum in single precision."""
    total = np.zeros(n, np.float32)
    for part in parts:
        total += part.astype(np.float32)
    return total.astype(np.float64)


def _linear(description: Description, names: Sequence[str]) -> dict[str, Any]:
    # A range of "min_max" is a difference of two rounded numbers; "standard" says the same better.
    scaled = [line for line in description.lines if line.centre != 0 or line.scale != 1]
    return {
        "type": "model/linear",
        "feature_normalizers": {
            names[line.column]: {
                "standard": {"mean": line.centre, "standard_deviation": line.scale}
            }
            for line in scaled
        },
        "definition": json.dumps({names[line.column]: line.weight for line in description.lines}),
    }


def _tree(
    node: BranchOrLeaf, names: Sequence[str], depth: int, number: Iterator[int]
) -> dict[str, Any]:
    own = next(number)
    if not isinstance(node, Branch):
        return {"nodeid": own, "leaf": node}
    low, high = (_tree(child, names, depth + 1, number) for child in (node.low, node.high))
    return {
        "nodeid": own,
        "depth": depth,
        "split": names[node.column],
        "split_condition": first_above(node.threshold),
        "yes": low["nodeid"],
        "no": high["nodeid"],
        "missing": high["nodeid"],
        "children": [low, high],
    }


def _read(place: dict[str, int], node: dict[str, Any], rows: NDArray[np.float32]) -> Any:
    if "leaf" in node:
        return node["leaf"]
    children = {child["nodeid"]: child for child in node["children"]}
    x = rows[:, place[node["split"]]]
    low = np.float32(node["split_condition"]) > x
    low[np.isnan(x)] = node["missing"] == node["yes"]
    return low, children[node["yes"]], children[node["no"]]
