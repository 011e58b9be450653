"""LightGBM's text files, which it reads and compares in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from didyma.exports.description import Description, FloatArray
from didyma.exports.engine import Engine
from didyma.exports.trees import Branch, BranchOrLeaf, sum_of_trees, trees_of

FAR = 1e300  # what stands for infinity
RIGHT = 8  # a decision by a number, in which NaN is a missing value and goes to the right


class LightGBM(Engine):
    """Trees of LightGBM, whose raw predictions are the scores."""

    title = "LightGBM"
    takes_lines = False
    unnamed = "Column_{place}"
    illegal = r'[\s",:\[\]{}]'

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The text of a model."""
        head = {
            "version": "v4",
            "num_class": 1,
            "num_tree_per_iteration": 1,
            "label_index": 0,
            "max_feature_idx": len(names) - 1,
            "objective": "lambdarank",
            "feature_names": " ".join(names),
            "feature_infos": " ".join([f"[{-FAR!r}:{FAR!r}]"] * len(names)),
        }
        parts = ["tree\n" + _lines(head)]
        for number, tree in enumerate(trees_of(description)):
            parts.append(f"Tree={number}\n" + _lines(_tree(tree)))
        parts.append("end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n")
        return "\n".join([*parts, "pandas_categorical:null\n"]).encode()

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores by the rules of the format, of the decisions that are written here."""
        roots = []
        trees, _, _ = contents.decode().partition("end of trees")
        for block in trees.split("Tree=")[1:]:
            entries = (line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
            roots.append(({key: np.array(value.split(), float) for key, value in entries}, 0))
        return sum_of_trees(roots, rows, _read, self.precision)


def _read(node: tuple[dict[str, FloatArray], int], rows: FloatArray) -> Any:
    tree, number = node
    if number < 0:
        return float(tree["leaf_value"][-1 - number])
    x, to = rows[:, int(tree["split_feature"][number])], tree["decision_type"][number]
    low = (x <= tree["threshold"][number]) & (to == RIGHT)
    return low, *((tree, int(tree[f"{side}_child"][number])) for side in ("left", "right"))


def _tree(tree: Branch) -> dict[str, Any]:
    branches: list[Branch] = []
    leaves: list[float] = []
    children: list[tuple[int, int]] = []

    def visit(node: BranchOrLeaf) -> int:
        """Number a node: a branch in preorder, a leaf as −1 − its place."""
        if not isinstance(node, Branch):
            leaves.append(node)
            return -len(leaves)
        place = len(branches)
        branches.append(node)
        children.append((0, 0))
        children[place] = (visit(node.low), visit(node.high))
        return place

    visit(tree)
    zeros = " ".join("0" for _ in branches)
    return {
        "num_leaves": len(leaves),
        "num_cat": 0,
        "split_feature": _row([branch.column for branch in branches]),
        "split_gain": zeros,
        "threshold": _row([min(branch.threshold, FAR) for branch in branches]),
        "decision_type": _row([RIGHT for _ in branches]),
        "left_child": _row([low for low, _ in children]),
        "right_child": _row([high for _, high in children]),
        "leaf_value": _row(leaves),
        "leaf_weight": " ".join("0" for _ in leaves),
        "leaf_count": " ".join("0" for _ in leaves),
        "internal_value": zeros,
        "internal_weight": zeros,
        "internal_count": zeros,
        "is_linear": 0,
        "shrinkage": 1,
    }


def _row(values: Sequence[Any]) -> str:
    return " ".join(map(repr, values))


def _lines(entries: dict[str, Any]) -> str:
    return "".join(f"{key}={value}\n" for key, value in entries.items())
