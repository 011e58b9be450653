"""Models of Elasticsearch's own learning to rank, for clusters without plug-ins (8.12 and newer).

The file is the body of ``PUT _ml/trained_models/NAME``, which needs an Enterprise licence: an
ensemble of trees, and for each column the query whose score is its value, which by default reads
the document's field of that name. Features are in single precision, thresholds and sums in double.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import Description
from didyma.exports.engine import LuceneEngine, refuse_lines
from didyma.exports.trees import Branch, BranchOrLeaf, at_most, columns_of, descend, trees_of


class ElasticsearchNative(LuceneEngine):
    """What a ``learning_to_rank`` rescorer of Elasticsearch loads."""

    title = "Elasticsearch's own learning to rank"
    adds_constant = True
    refuses_negative = True
    hint = (
        "each query_extractor reads the field of its name: put the query there whose score is the "
        "feature; to upload the model takes an Enterprise licence"
    )

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The body of the request that uploads the model."""
        refuse_lines(description, self.title)
        trees: list[BranchOrLeaf] = [*trees_of(description)]
        if description.constant:
            trees.append(description.constant)
        columns = columns_of(trees)
        used = [names[column] for column in columns]
        place = {column: number for number, column in enumerate(columns)}
        models = [{"tree": _regression(used, tree_structure=_nodes(tree, place))} for tree in trees]
        total = {"weighted_sum": {"weights": [1.0] * len(models)}}
        ensemble = _regression(used, trained_models=models, aggregate_output=total)
        extractors = [{"query_extractor": _extractor(feature)} for feature in used]
        return self.as_json(
            {
                "description": f"{name}, written by didyma",
                "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
                "definition": {"trained_model": {"ensemble": ensemble}},
            }
        )

    def score(
        self, contents: bytes, names: Sequence[str], rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Scores as Elasticsearch computes them."""
        ensemble = json.loads(contents)["definition"]["trained_model"]["ensemble"]
        values = rows[:, [list(names).index(feature) for feature in ensemble["feature_names"]]]
        total = np.zeros(len(rows))
        weights = ensemble["aggregate_output"]["weighted_sum"]["weights"]
        for weight, model in zip(weights, ensemble["trained_models"], strict=True):
            nodes = {node["node_index"]: node for node in model["tree"]["tree_structure"]}

            def read(index: int, x: NDArray[Any], nodes: dict[int, Any] = nodes) -> Any:
                return _read(nodes[index], x)

            total += weight * descend(0, values, read)
        return total.astype(np.float32).astype(np.float64)


def _regression(features: list[str], **rest: Any) -> dict[str, Any]:
    return {"feature_names": features, "target_type": "regression", **rest}


def _extractor(feature: str) -> dict[str, Any]:
    """The value of a number in the document; where it has none, the feature is 0."""
    script = {"source": "doc[params.field].value", "params": {"field": feature}}
    query = {"script_score": {"query": {"exists": {"field": feature}}, "script": script}}
    return {"feature_name": feature, "query": query}


def _nodes(tree: BranchOrLeaf, place: dict[int, int]) -> list[dict[str, Any]]:
    """The nodes of a tree, numbered from its root on."""
    nodes: list[dict[str, Any]] = []

    def add(node: BranchOrLeaf) -> int:
        index = len(nodes)
        nodes.append({"node_index": index})
        if isinstance(node, Branch):
            nodes[index] |= {
                "split_feature": place[node.column],
                "decision_type": "lte",
                "threshold": at_most(node.threshold),
                "default_left": False,
                "left_child": add(node.low),
                "right_child": add(node.high),
            }
        else:
            nodes[index]["leaf_value"] = node
        return index

    add(tree)
    return nodes


def _read(node: dict[str, Any], x: NDArray[Any]) -> Any:
    if "leaf_value" in node:
        return node["leaf_value"]
    feature = x[:, node["split_feature"]]
    low = feature <= node["threshold"]
    low[np.isnan(feature)] = node["default_left"]
    return low, node["left_child"], node["right_child"]
