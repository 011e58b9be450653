"""XGBoost's JSON files, which it reads and compares in single precision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import Description, FloatArray
from didyma.exports.engine import Engine
from didyma.exports.trees import Branch, first_above, level_order, sum_of_trees, trees_of

NO_PARENT = 2147483647


class XGBoost(Engine):
    """Trees of XGBoost, whose margins are the scores."""

    title = "XGBoost"
    takes_lines = False
    unnamed = "f{place}"
    precision = np.float32
    illegal = r"[\[\]<]"

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The JSON of a model."""
        branches = trees_of(description)
        trees = [_tree(number, tree, len(names)) for number, tree in enumerate(branches)]
        named = description.features.names is not None
        model = {
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
            "iteration_indptr": list(range(len(trees) + 1)),
            "tree_info": [0] * len(trees),
            "trees": trees,
        }
        learner = {
            "attributes": {},
            "feature_names": list(names) if named else [],
            "feature_types": ["float"] * len(names) if named else [],
            "gradient_booster": {"model": model, "name": "gbtree"},
            "learner_model_param": {
                "base_score": "0E0",
                "boost_from_average": "1",
                "num_class": "0",
                "num_feature": str(len(names)),
                "num_target": "1",
            },
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        }
        return json.dumps({"learner": learner, "version": [2, 0, 0]}).encode()

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores by the rules of the format."""
        trees = json.loads(contents)["learner"]["gradient_booster"]["model"]["trees"]
        return sum_of_trees([(tree, 0) for tree in trees], rows, _read, self.precision)


def _read(node: tuple[dict[str, list[Any]], int], rows: NDArray[np.float32]) -> Any:
    tree, number = node
    condition = np.float32(tree["split_conditions"][number])
    low = tree["left_children"][number]
    if low < 0:
        return float(condition)
    x = rows[:, tree["split_indices"][number]]
    to_low = np.where(np.isnan(x), bool(tree["default_left"][number]), x < condition)
    return to_low, (tree, low), (tree, low + 1)  # XGBoost expects children to be neighbours


def _tree(number: int, tree: Branch, n_columns: int) -> dict[str, Any]:
    nodes = level_order(tree)  # in which the children of a node are neighbours, as they must be
    splits, parents = [], [NO_PARENT]
    for place, (node, low) in enumerate(nodes):
        if isinstance(node, Branch):
            splits.append((first_above(node.threshold), node.column, low, low + 1))
            parents += [place, place]
        else:
            splits.append((node, 0, -1, -1))
    conditions, columns, left, right = map(list, zip(*splits))
    filler = [0.0] * len(nodes)
    return {
        "base_weights": filler,
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [0] * len(nodes),
        "id": number,
        "left_children": left,
        "loss_changes": filler,
        "parents": parents,
        "right_children": right,
        "split_conditions": conditions,
        "split_indices": columns,
        "split_type": [0] * len(nodes),
        "sum_hessian": filler,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_columns),
            "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
    }
