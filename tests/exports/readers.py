"""Each format read once more, row by row, by other means than the library's own."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from didyma.exports.plain import SCORER

Rows = NDArray[Any]


def lightgbm(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """By the rules of LightGBM's text format, for missing values that are NaN."""
    text, totals = contents.decode(), []
    blocks = text.partition("end of trees")[0].split("Tree=")[1:]
    trees = [
        dict(line.split("=", 1) for line in block.splitlines()[1:] if line) for block in blocks
    ]
    split = [{name: value.split() for name, value in tree.items()} for tree in trees]
    for row in rows.tolist():
        total = 0.0
        for columns in split:
            node = 0
            while node >= 0:
                x = row[int(columns["split_feature"][node])]
                decision = int(columns["decision_type"][node])
                assert decision & 12 == 8
                below = x <= float(columns["threshold"][node])
                left = bool(decision & 2) if math.isnan(x) else below
                node = int(columns["left_child" if left else "right_child"][node])
            total += float(columns["leaf_value"][-node - 1])
        totals.append(total)
    return totals


def xgboost(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """By the rules of XGBoost's JSON format."""
    trees = json.loads(contents)["learner"]["gradient_booster"]["model"]["trees"]
    totals = []
    for row in rows.astype(np.float32):
        total = 0.0
        for tree in trees:
            node = 0
            while (low := tree["left_children"][node]) >= 0:
                x = row[tree["split_indices"][node]]
                below = x < np.float32(tree["split_conditions"][node])
                left = tree["default_left"][node] if np.isnan(x) else below
                assert tree["right_children"][node] == low + 1  # as XGBoost takes for granted
                node = low + (not left)
            total += tree["split_conditions"][node]
        totals.append(total)
    return totals


def elasticsearch(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """As plug-ins do that know nothing of missing values: NaN is not below any threshold."""
    model = json.loads(contents)["model"]["model"]
    definition = json.loads(model["definition"])
    totals = []
    for row in rows.astype(np.float32):
        value = dict(zip(names, row))
        if model["type"] == "model/linear":
            for name, norm in model["feature_normalizers"].items():
                told = norm["standard"]
                value[name] = (float(value[name]) - told["mean"]) / told["standard_deviation"]
            totals.append(sum(weight * float(value[name]) for name, weight in definition.items()))
            continue
        total = 0.0
        for node in definition:
            while "leaf" not in node:
                left, right = node["children"]
                assert (node["yes"], node["no"]) == (left["nodeid"], right["nodeid"])
                assert node["missing"] == node["no"]
                node = left if np.float32(node["split_condition"]) > value[node["split"]] else right
            total += node["leaf"]
        totals.append(total)
    return totals


def elasticsearch_native(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """Trees whose nodes have numbers; features are those that have an extractor."""
    body = json.loads(contents)
    ensemble = body["definition"]["trained_model"]["ensemble"]
    extractors = body["inference_config"]["learning_to_rank"]["feature_extractors"]
    features = [extractor["query_extractor"]["feature_name"] for extractor in extractors]
    assert ensemble["feature_names"] == features
    assert set(ensemble["aggregate_output"]["weighted_sum"]["weights"]) <= {1.0}
    totals = []
    for row in rows.astype(np.float32).tolist():
        value, total = dict(zip(names, row)), 0.0
        for tree in ensemble["trained_models"]:
            nodes = tree["tree"]["tree_structure"]
            assert [node["node_index"] for node in nodes] == list(range(len(nodes)))
            node = nodes[0]
            while "leaf_value" not in node:
                x = value[features[node["split_feature"]]]
                assert node["decision_type"] == "lte"
                left = node["default_left"] if math.isnan(x) else x <= node["threshold"]
                node = nodes[node["left_child" if left else "right_child"]]
            total += node["leaf_value"]
        totals.append(total)
    return totals


def solr(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """A weighted sum of features that have been normalised, or trees."""
    model = json.loads(contents)
    totals = []
    if "trees" in model["params"]:
        for row in rows.astype(np.float32):
            value, total = dict(zip(names, row)), 0.0
            for tree in model["params"]["trees"]:
                node = tree["root"]
                while "value" not in node:
                    threshold = np.float32(node["threshold"]) + np.float32(1e-6)
                    node = node["left" if value[node["feature"]] <= threshold else "right"]
                total += float(tree["weight"]) * float(node["value"])
            totals.append(total)
        return totals
    for row in rows.tolist():
        value, total = dict(zip(names, row)), 0.0
        for feature in model["features"]:
            told = feature.get("norm", {"params": {"avg": "0", "std": "1"}})["params"]
            scaled = (value[feature["name"]] - float(told["avg"])) / float(told["std"])
            total += model["params"]["weights"][feature["name"]] * scaled
        totals.append(total)
    return totals


def vespa(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """As Python, which ranking expressions nearly are."""
    text = re.sub("#.*", "", contents.decode())
    (total,) = re.findall(r"function score\(\) \{\s*expression \{(.*?)\}", text, re.DOTALL)
    attributes = dict(re.findall(r"function (\w+)\(\) \{\s*expression: attribute\((\w+)\)", text))
    assert text.count("{") == text.count("}")
    code = compile(total.replace("if (", "choose(").replace("\n", " ").strip(), "profile", "eval")
    known = {"choose": lambda a, b, c: b if a else c, "isNan": math.isnan, "min": min, "max": max}
    totals = []
    for row in rows.tolist():
        value = dict(zip(names, row))
        features = {name: value[attribute] for name, attribute in attributes.items()}
        totals.append(eval(code, {**known, **features}))
    return totals


def onnx(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """By the reference implementation of the operators."""
    pytest.importorskip("onnx", reason="ONNX is not installed")
    from onnx import load_from_string
    from onnx.reference import ReferenceEvaluator

    model = load_from_string(contents)
    assert {prop.key: prop.value for prop in model.metadata_props} == {"columns": json.dumps(names)}
    (scores,) = ReferenceEvaluator(model).run(None, {"X": rows.astype(np.float32)})
    return list(scores.tolist())


SCRIPT = """
import { readFileSync } from "node:fs";
const { score } = await import(process.argv[1]);
const [model, rows] = JSON.parse(readFileSync(0));
console.log(JSON.stringify(rows.map((row) => score(model, row))));
"""


def javascript(contents: bytes, names: list[str], rows: Rows, *, by_name: bool) -> list[float]:
    """By the scorer that comes with the library."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    given: list[Any] = [[None if math.isnan(x) else x for x in row] for row in rows.tolist()]
    if by_name:
        given = [dict(zip(names, row)) for row in given]
    found = subprocess.run(
        [node, "--input-type=module", "--eval", SCRIPT, SCORER.as_uri()],
        input=json.dumps([json.loads(contents), given]),
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(found.stdout))


def plain_json(contents: bytes, names: list[str], rows: Rows) -> list[float]:
    """By what the format says, one value after the other."""
    model = json.loads(contents)
    totals = []
    for row in rows.tolist():
        total = model["constant"]
        for line in model["lines"]:
            x = row[line["column"]]
            x = x if line["low"] is None else max(x, line["low"])
            x = x if line["high"] is None else min(x, line["high"])
            total += line["weight"] * (x - line["centre"]) / line["scale"]
        for table in model["tables"]:
            found = table["values"]
            for binning in table["stairs"]:
                x = row[binning["column"]]
                below = sum(edge < x for edge in binning["edges"])
                found = found[binning["cells"][-1 if math.isnan(x) else below]]
            total += found
        totals.append(total)
    return totals


READERS = {
    "elasticsearch": elasticsearch,
    "elasticsearch-native": elasticsearch_native,
    "json": plain_json,
    "lightgbm": lightgbm,
    "onnx": onnx,
    "solr": solr,
    "vespa": vespa,
    "xgboost": xgboost,
}
