"""Models of Elasticsearch: for its learning to rank plug-ins, OpenSearch's too, and for its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import Description, FloatArray
from didyma.exports.engine import LuceneEngine
from didyma.exports.trees import (
    Branch,
    BranchOrLeaf,
    at_most,
    columns_of,
    descend,
    first_above,
    sum_of_trees,
    trees_of,
)


class Elasticsearch(LuceneEngine):
    """What the plug-ins load.

    The file is the body of a request to ``_ltr/_featureset/NAME/_createmodel``: a linear model with
    its normalisers ("model/linear"), or trees ("model/xgboost+json"). The plug-ins compute in
    single precision. Older ones do not look at ``missing``, and a comparison with NaN sends it to
    ``no``: here both say the same.
    """

    title = "Elasticsearch"
    refuses_negative = True

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The body of the request that uploads the model."""
        if description.tables:
            trees = [_tree(tree, names, 0, count()) for tree in trees_of(description)]
            model = {"type": "model/xgboost+json", "definition": json.dumps(trees)}
        else:
            model = _linear(description, names)
        return self.as_json({"model": {"name": name, "model": model}})

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
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
        return sum_of_trees(definition, rows, read, self.precision)


def _linear(description: Description, names: Sequence[str]) -> dict[str, Any]:
    # A range of "min_max" is a difference of two rounded numbers; "standard" says the same better.
    return {
        "type": "model/linear",
        "feature_normalizers": {
            names[line.column]: {
                "standard": {"mean": line.centre, "standard_deviation": line.scale}
            }
            for line in description.lines
            if line.scaled
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


class ElasticsearchNative(LuceneEngine):
    """What a ``learning_to_rank`` rescorer of Elasticsearch loads, without plug-ins (from 8.12 on).

    The file is the body of ``PUT _ml/trained_models/NAME``, which needs an Enterprise licence: an
    ensemble of trees, and for each column the query whose score is its value, which by default
    reads the document's field of that name. Features are in single precision, thresholds and sums
    in double.
    """

    title = "Elasticsearch's own learning to rank"
    adds_constant = True
    refuses_negative = True
    takes_lines = False
    hint = (
        "each query_extractor reads the field of its name: put the query there whose score is the "
        "feature; to upload the model takes an Enterprise licence"
    )

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The body of the request that uploads the model."""
        trees: list[BranchOrLeaf] = [*trees_of(description)]
        if description.constant:
            trees.append(description.constant)
        columns = columns_of(trees)
        used = [names[column] for column in columns]
        place = {column: number for number, column in enumerate(columns)}
        models = [
            {"tree": _regression(used, tree_structure=_numbered_nodes(tree, place))}
            for tree in trees
        ]
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

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores as Elasticsearch computes them."""
        ensemble = json.loads(contents)["definition"]["trained_model"]["ensemble"]
        values = rows[:, [list(names).index(feature) for feature in ensemble["feature_names"]]]
        total = np.zeros(len(rows))
        weights = ensemble["aggregate_output"]["weighted_sum"]["weights"]
        for weight, model in zip(weights, ensemble["trained_models"], strict=True):
            nodes = {node["node_index"]: node for node in model["tree"]["tree_structure"]}
            total += weight * descend(0, values, partial(_read_native, nodes))
        return total.astype(np.float32).astype(np.float64)


def _regression(features: list[str], **rest: Any) -> dict[str, Any]:
    return {"feature_names": features, "target_type": "regression", **rest}


def _extractor(feature: str) -> dict[str, Any]:
    """The value of a number in the document; where it has none, the feature is 0."""
    script = {"source": "doc[params.field].value", "params": {"field": feature}}
    query = {"script_score": {"query": {"exists": {"field": feature}}, "script": script}}
    return {"feature_name": feature, "query": query}


def _numbered_nodes(tree: BranchOrLeaf, place: dict[int, int]) -> list[dict[str, Any]]:
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


def _read_native(nodes: dict[int, dict[str, Any]], index: int, rows: NDArray[Any]) -> Any:
    node = nodes[index]
    if "leaf_value" in node:
        return node["leaf_value"]
    feature = rows[:, node["split_feature"]]
    low = feature <= node["threshold"]
    low[np.isnan(feature)] = node["default_left"]
    return low, node["left_child"], node["right_child"]
