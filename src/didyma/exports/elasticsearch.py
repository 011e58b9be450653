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
from didyma.exports.engine import LuceneEngine, refuse_clipping
from didyma.exports.trees import Branch, BranchOrLeaf, descend, first_above, trees_of


class Elasticsearch(LuceneEngine):
    """What the plug-ins load."""

    title = "Elasticsearch"
    refuses_negative = True

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The body of the request that uploads the model."""
        refuse_clipping(description, names, self.title)
        if description.tables:
            trees = [_tree(tree, names, 0, count()) for tree in trees_of(description)]
            model = {"type": "model/xgboost+json", "definition": json.dumps(trees)}
        else:
            model = _linear(description, names)
        return self.as_json({"model": {"name": name, "model": model}})

    def score(
        self, contents: bytes, names: Sequence[str], rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Scores as the plug-ins compute them."""
        model = json.loads(contents)["model"]["model"]
        definition = json.loads(model["definition"])
        if model["type"] == "model/linear":
            standard = {
                name: (own["standard"]["mean"], own["standard"]["standard_deviation"])
                for name, own in model["feature_normalizers"].items()
            }
            return self.linear_scores(definition, standard, names, rows)
        read = partial(_read, {name: column for column, name in enumerate(names)})
        total = np.zeros(len(rows), np.float32)
        for tree in definition:
            total += descend(tree, rows.astype(np.float32), read).astype(np.float32)
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
