"""ONNX graphs: a matrix X of single precision in, a vector of scores out.

A linear model is five operators, an additive one a ``TreeEnsembleRegressor``. The names of columns
are in the metadata, as JSON under "columns".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from didyma.errors import MissingExtraError
from didyma.exports.description import Description, FloatArray
from didyma.exports.engine import Engine
from didyma.exports.trees import Branch, at_most, level_order, trees_of

# Versions of operators and of the file that runtimes of the last years read.
OPERATORS, TREES, FILE = 17, 3, 8


class Onnx(Engine):
    """Graphs that onnxruntime and others run."""

    title = "ONNX"
    precision = np.float32

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The graph of a model."""
        try:
            from onnx import TensorProto, checker, helper
        except ImportError:
            raise MissingExtraError("writing ONNX", "onnx") from None
        draw = _draw_trees if description.tables else _draw_lines
        nodes, constants = draw(description, len(names))
        single = TensorProto.FLOAT
        graph = helper.make_graph(
            nodes,
            name,
            [helper.make_tensor_value_info("X", single, ["rows", len(names)])],
            [helper.make_tensor_value_info("scores", single, ["rows"])],
            [
                helper.make_tensor(key, kind, values.shape, values.ravel().tolist())
                for key, kind, values in constants
            ],
        )
        operators = [helper.make_opsetid("", OPERATORS), helper.make_opsetid("ai.onnx.ml", TREES)]
        model = helper.make_model(
            graph, producer_name="didyma", opset_imports=operators, ir_version=FILE
        )
        helper.set_model_props(model, {"columns": json.dumps(list(names))})
        checker.check_model(model)
        return bytes(model.SerializeToString())

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores by onnxruntime."""
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("comparing scores with those of ONNX", "onnx") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            contents, options, providers=["CPUExecutionProvider"]
        )
        (scores,) = session.run(["scores"], {"X": rows.astype(np.float32)})
        return np.asarray(scores, np.float64)


def _draw_lines(description: Description, n: int) -> tuple[list[Any], list[Any]]:
    """X within limits, less centres, over scales, times weights, plus the constant."""
    from onnx import TensorProto, helper

    limits = np.finfo(np.float32)
    low, high = np.full(n, limits.min, float), np.full(n, limits.max, float)
    centre, scale, weight = np.zeros(n), np.ones(n), np.zeros((n, 1))
    for line in description.lines:
        j = line.column
        low[j], high[j] = max(line.low, limits.min), min(line.high, limits.max)
        centre[j], scale[j], weight[j] = line.centre, line.scale, line.weight
    constant = np.array([description.constant])
    keys = ("low", "high", "centre", "scale", "weight", "constant")
    nodes = [
        helper.make_node("Max", ["X", "low"], ["above"]),
        helper.make_node("Min", ["above", "high"], ["within"]),
        helper.make_node("Sub", ["within", "centre"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "weight"], ["products"]),
        helper.make_node("Add", ["products", "constant"], ["column"]),
        helper.make_node("Squeeze", ["column", "one"], ["scores"]),
    ]
    values = (low, high, centre, scale, weight, constant)
    numbers = [(key, TensorProto.FLOAT, value) for key, value in zip(keys, values)]
    return nodes, [*numbers, ("one", TensorProto.INT64, np.array([1]))]


def _draw_trees(description: Description, n: int) -> tuple[list[Any], list[Any]]:
    """All trees in one operator."""
    from onnx import TensorProto, helper

    tables: dict[str, list[Any]] = {f"nodes_{key}": [] for key in NODE}
    tables |= {f"target_{key}": [] for key in LEAF}

    def add(kind: str, keys: Sequence[str], values: Sequence[Any]) -> None:
        for key, value in zip(keys, values):
            tables[f"{kind}_{key}"].append(value)

    for number, tree in enumerate(trees_of(description)):
        for place, (node, low) in enumerate(level_order(tree)):
            if isinstance(node, Branch):
                at = at_most(node.threshold)
                add("nodes", NODE, (number, place, node.column, "BRANCH_LEQ", at, low, low + 1, 0))
            else:
                add("nodes", NODE, (number, place, 0, "LEAF", 0.0, 0, 0, 0))
                add("target", LEAF, (number, place, 0, node))
    trees = helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["column"],
        domain="ai.onnx.ml",
        n_targets=1,
        base_values=[description.constant],
        aggregate_function="SUM",
        post_transform="NONE",
        **tables,
    )
    squeeze = helper.make_node("Squeeze", ["column", "one"], ["scores"])
    return [trees, squeeze], [("one", TensorProto.INT64, np.array([1]))]


NODE = (
    *("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"),
    "missing_value_tracks_true",
)
LEAF = ("treeids", "nodeids", "ids", "weights")
