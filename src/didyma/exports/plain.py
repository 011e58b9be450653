"""Plain JSON, which says what `Description` does, for the scorer in ``score.js`` and for others."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from didyma.exports.description import BinTable, ColumnLine, Description, FloatArray
from didyma.exports.engine import Engine

SCORER = Path(__file__).with_name("npm") / "score.js"
"""A module of JavaScript that scores rows by such a file, in browsers and in Node."""


class PlainJson(Engine):
    """Lines and tables as JSON."""

    title = "JSON"
    hint = f"{SCORER} scores rows by such files, in browsers and in Node"

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The JSON of a model."""
        model = {
            "format": "didyma",
            "version": 1,
            "name": name,
            "columns": list(names),
            "constant": description.constant,
            "lines": [_line(line) for line in description.lines],
            "tables": [_table(table) for table in description.tables],
        }
        return (json.dumps(model) + "\n").encode()

    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores as ``score.js`` computes them."""
        model = json.loads(contents)
        total = np.full(len(rows), model["constant"])
        for line in model["lines"]:
            x = rows[:, line["column"]]
            if line["low"] is not None:
                x = np.maximum(x, line["low"])
            if line["high"] is not None:
                x = np.minimum(x, line["high"])
            total += line["weight"] * (x - line["centre"]) / line["scale"]
        for table in model["tables"]:
            cells = []
            for binning in table["stairs"]:
                x = rows[:, binning["column"]]
                step = np.where(np.isnan(x), -1, np.searchsorted(binning["edges"], x))
                cells.append(np.array(binning["cells"])[step])
            total += np.array(table["values"])[tuple(cells)]
        return total


def _line(line: ColumnLine) -> dict[str, Any]:
    return {
        **{key: getattr(line, key) for key in ("column", "weight", "centre", "scale")},
        **{key: _finite(getattr(line, key)) for key in ("low", "high")},
    }


def _finite(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None


def _table(table: BinTable) -> dict[str, Any]:
    binnings = [
        {"column": one.column, "edges": list(one.edges), "cells": list(one.cells)}
        for one in table.binnings
    ]
    return {"stairs": binnings, "values": table.values.tolist()}
