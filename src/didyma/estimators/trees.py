"""Additive rankers as trees, in the model files that engines load: LightGBM's and XGBoost's.

A feature's step function is a tree whose leaves are its bins, a pair's table a tree over both
features, and a missing value is told apart before any threshold. LightGBM compares in double
precision (numbers up to 1e-35 are 0 to it), and its scores are the ranker's. XGBoost compares and
adds in single precision; a number that is one in single precision is on the right side of an edge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.estimators.additive import AdditiveSVMRanker
from didyma.files import PathName, replace_when_done
from didyma.scoring import LEVELS

__all__ = ["FORMATS", "export", "to_lightgbm", "to_xgboost"]

NOTHING = -1e300  # a threshold that no number is below


@dataclass(frozen=True)
class _Split:
    """Rows with feature ≤ threshold go to ``low``, and so do missing ones if that is asked for."""

    feature: int
    threshold: float
    low: _Node
    high: _Node
    missing_low: bool = False


_Node: TypeAlias = "_Split | float"


def export(ranker: AdditiveSVMRanker, path: PathName, format: str) -> None:
    """Write a ranker as a model of ``format``, "lightgbm" (text) or "xgboost" (JSON).

    >>> import tempfile
    >>> from pathlib import Path
    >>> ranker = AdditiveSVMRanker(bins=2).fit([[1.0], [2.0]], [0, 1])
    >>> path = Path(tempfile.mkdtemp(), "model.txt")
    >>> export(ranker, path, "lightgbm")
    >>> path.read_text().splitlines()[0]
    'tree'
    """
    if format not in FORMATS:
        names = ", ".join(map(repr, FORMATS))
        raise DataError(f"expected one of {names}, found {format!r}", field="format")
    text = FORMATS[format](ranker)
    with replace_when_done(path) as file:
        file.write(text)


def to_lightgbm(ranker: AdditiveSVMRanker) -> str:
    """The text of a LightGBM model whose raw predictions are the ranker's scores."""
    names = _feature_names(ranker)
    head = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "objective": "lambdarank",
        "feature_names": " ".join(names),
        "feature_infos": " ".join(["[-1e+300:1e+300]"] * len(names)),
    }
    parts = ["tree\n" + _lines(head)]
    for number, tree in enumerate(_trees(ranker)):
        parts.append(f"Tree={number}\n" + _lines(_lightgbm_tree(tree)))
    parts.append("end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n")
    return "\n".join([*parts, "pandas_categorical:null\n"])


def to_xgboost(ranker: AdditiveSVMRanker) -> str:
    """The JSON of an XGBoost model whose margins are the ranker's scores."""
    n_features = int(ranker.n_features_in_)
    trees = [_xgboost_tree(k, tree, n_features) for k, tree in enumerate(_trees(ranker))]
    named = hasattr(ranker, "feature_names_in_")
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(len(trees) + 1)),
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    learner = {
        "attributes": {},
        "feature_names": _feature_names(ranker) if named else [],
        "feature_types": ["float"] * n_features if named else [],
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": str(n_features),
            "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    return json.dumps({"learner": learner, "version": [2, 0, 0]})


FORMATS: dict[str, Callable[[AdditiveSVMRanker], str]] = {
    "lightgbm": to_lightgbm,
    "xgboost": to_xgboost,
}


def _feature_names(ranker: AdditiveSVMRanker) -> list[str]:
    names = getattr(ranker, "feature_names_in_", None)
    if names is None:
        return [f"Column_{j}" for j in range(ranker.n_features_in_)]
    # Names of LightGBM have no white space and none of the signs of JSON.
    return ["".join("_" if c in ' \t",:[]{}' else c for c in str(name)) for name in names]


def _trees(ranker: AdditiveSVMRanker) -> list[_Split]:
    """One tree for each feature and each pair that adds anything."""
    tables, columns = ranker.tables_, len(ranker.edges_)
    found = [_column_tree(ranker, j, tables[:, j]) for j in range(columns)]
    for (first, second), table in zip(ranker.pairs_, tables[:, columns:].T):
        found.append(_pair_tree(ranker, int(first), int(second), table))
    trees = [tree for tree in found if isinstance(tree, _Split)]
    return trees or [_Split(0, NOTHING, 0.0, 0.0)]


def _column_tree(ranker: AdditiveSVMRanker, j: int, table: NDArray[np.float64]) -> _Node:
    return _over(ranker, j, table.tolist())


def _pair_tree(
    ranker: AdditiveSVMRanker, first: int, second: int, table: NDArray[np.float64]
) -> _Node:
    levels = ranker.levels_

    def at(a: int) -> _Node:
        cells = [LEVELS * (a - 1) + b if a and b else 0 for b in levels[second].tolist()]
        return _over(ranker, second, [float(table[cell]) for cell in cells])

    subtrees = [at(a) for a in range(LEVELS + 1)]
    return _over(ranker, first, [subtrees[a] for a in levels[first].tolist()])


def _over(ranker: AdditiveSVMRanker, j: int, values: Sequence[_Node]) -> _Node:
    """The tree of one feature with a node for each of its bins, the last for missing values."""
    edges = ranker.edges_[j][np.isfinite(ranker.edges_[j])].tolist()
    if ranker.nominal_[j]:  # a category is the interval between itself and the number before it
        nodes = [values[0]]
        for category in range(1, len(edges) + 1):
            nodes += [values[category], values[0]]
        edges = [place for edge in edges for place in (float(np.nextafter(edge, -np.inf)), edge)]
    else:
        nodes = list(values[: len(edges) + 1])
    steps = list(_merged(nodes))
    rest = _balanced(j, [edges[start - 1] for start, _ in steps[1:]], [node for _, node in steps])
    missing = values[-1]
    return rest if rest == missing else _Split(j, NOTHING, missing, rest, missing_low=True)


def _merged(nodes: Sequence[_Node]) -> Iterator[tuple[int, _Node]]:
    """Runs of equal nodes: where each begins, and its node."""
    place = 0
    for node, run in groupby(nodes):
        yield place, node
        place += len(list(run))


def _balanced(j: int, edges: Sequence[float], nodes: Sequence[_Node]) -> _Node:
    if not edges:
        return nodes[0]
    middle = len(edges) // 2
    low = _balanced(j, edges[:middle], nodes[: middle + 1])
    high = _balanced(j, edges[middle + 1 :], nodes[middle + 1 :])
    return _Split(j, edges[middle], low, high)


def _flatten(tree: _Split) -> tuple[list[_Split], list[float], list[tuple[int, int]]]:
    """Splits in preorder, leaves, and the children of each split: a split, or −1 − leaf."""
    splits: list[_Split] = []
    leaves: list[float] = []
    children: list[tuple[int, int]] = []

    def visit(node: _Node) -> int:
        if not isinstance(node, _Split):
            leaves.append(node)
            return -len(leaves)
        place = len(splits)
        splits.append(node)
        children.append((0, 0))
        children[place] = (visit(node.low), visit(node.high))
        return place

    visit(tree)
    return splits, leaves, children


def _lightgbm_tree(tree: _Split) -> dict[str, Any]:
    splits, leaves, children = _flatten(tree)
    zeros = " ".join("0" for _ in splits)
    # Bits of a decision: 2 sends missing values to the left, 8 says that they are NaN.
    decisions = [8 + 2 * split.missing_low for split in splits]
    return {
        "num_leaves": len(leaves),
        "num_cat": 0,
        "split_feature": _row([split.feature for split in splits]),
        "split_gain": zeros,
        "threshold": _row([split.threshold for split in splits]),
        "decision_type": _row(decisions),
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


def _xgboost_tree(number: int, tree: _Split, n_features: int) -> dict[str, Any]:
    # The children of a node must be neighbours, so nodes stand level by level.
    nodes: list[_Node] = [tree]
    left, right, parents = [], [], [2147483647]
    for place, node in enumerate(nodes):  # which grows
        split = isinstance(node, _Split)
        left.append(len(nodes) if split else -1)
        right.append(len(nodes) + 1 if split else -1)
        if isinstance(node, _Split):
            nodes += [node.low, node.high]
            parents += [place, place]
    splits = [node if isinstance(node, _Split) else None for node in nodes]
    filler = [0.0] * len(nodes)
    return {
        "base_weights": filler,
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [int(split is not None and split.missing_low) for split in splits],
        "id": number,
        "left_children": left,
        "loss_changes": filler,
        "parents": parents,
        "right_children": right,
        "split_conditions": [
            _first_above(node.threshold) if isinstance(node, _Split) else node for node in nodes
        ],
        "split_indices": [0 if split is None else split.feature for split in splits],
        "split_type": [0] * len(nodes),
        "sum_hessian": filler,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
    }


def _first_above(threshold: float) -> float:
    """The least number of single precision above the threshold: there x < it goes to the left."""
    limits = np.finfo(np.float32)
    if threshold <= float(limits.min):
        return float(limits.min)
    rounded = np.float32(min(threshold, float(limits.max)))
    if float(rounded) <= threshold:
        rounded = np.nextafter(rounded, np.float32(np.inf))
    return float(min(rounded, limits.max))


def _row(values: Sequence[Any]) -> str:
    return " ".join(map(repr, values))


def _lines(entries: dict[str, Any]) -> str:
    return "".join(f"{key}={value}\n" for key, value in entries.items())
