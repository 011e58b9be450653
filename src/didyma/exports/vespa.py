"""Rank profiles of Vespa, which computes in double precision.

The file is a ``rank-profile`` to be put into a schema. Each column is a function of its own, at
first an attribute: there one says where its value comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import ColumnLine, Description
from didyma.exports.engine import Engine, spelled
from didyma.exports.ranking_expression import evaluate_function
from didyma.exports.trees import Branch, BranchOrLeaf, trees_of

COMMENT = """\
# Written by didyma. Each function feature_… says where the value of a column comes from: replace
# attribute(…) by query(…), bm25(…) or any other rank feature where it is no field of documents.
"""


class Vespa(Engine):
    """A rank profile."""

    title = "Vespa"
    by_name = True
    illegal = "[^A-Za-z0-9_]|^(?=[0-9])"  # names are identifiers

    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The text of a rank profile."""
        terms = [_product(line, _feature(names[line.column])) for line in description.lines]
        terms += [_if(tree, names) for tree in trees_of(description)]
        if description.constant:
            terms.append(_number(description.constant))
        features = (
            _block(f"function {_feature(names[j])}()", f"expression: attribute({names[j]})")
            for j in description.columns
        )
        total = _block("function score()", _block("expression", " +\n".join(terms)))
        phase = _block("first-phase", "expression: score")
        profile = spelled([name], self.illegal)[0]
        text = _block(f"rank-profile {profile}", *features, total, phase)
        return f"{COMMENT}{text}\n".encode()

    def score(
        self, contents: bytes, names: Sequence[str], rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Scores by the text of the profile."""
        attributes = dict(zip(names, rows.T))
        found = evaluate_function(contents.decode(), "score", attributes)
        return np.broadcast_to(found, len(rows)).astype(np.float64)


def _block(head: str, *parts: str) -> str:
    lines = [f"    {line}" for part in parts for line in part.splitlines()]
    return "\n".join([f"{head} {{", *lines, "}"])


def _feature(name: str) -> str:
    return f"feature_{name}"


def _number(value: float) -> str:
    """A constant; one with a sign in parentheses."""
    return repr(value) if value >= 0 else f"({value!r})"


def _product(line: ColumnLine, x: str) -> str:
    if line.low > -np.inf:
        x = f"max({x}, {_number(line.low)})"
    if line.high < np.inf:
        x = f"min({x}, {_number(line.high)})"
    if line.centre:
        x = f"({x} - {_number(line.centre)})"
    scaled = f" / {_number(line.scale)}" if line.scale != 1 else ""
    return f"{_number(line.weight)} * {x}{scaled}"


def _if(node: BranchOrLeaf, names: Sequence[str]) -> str:
    if not isinstance(node, Branch):
        return _number(node)
    x, low, high = _feature(names[node.column]), _if(node.low, names), _if(node.high, names)
    if node.threshold == np.inf:
        return f"if (isNan({x}) == 1, {high}, {low})"
    return f"if ({x} <= {_number(node.threshold)}, {low}, {high})"
