"""Tables of steps as trees, which several engines take.

A tree sends x ≤ threshold to the left and everything else, missing values among it, to the right.
So comparing as IEEE numbers do is enough, and no engine needs a rule for missing values: one is
told apart first, by not being at most infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.exports.description import Binning, Description, FloatArray

LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Branch:
    """Rows with column ≤ threshold go to ``low``, all others to ``high``."""

    column: int
    threshold: float
    low: BranchOrLeaf
    high: BranchOrLeaf


BranchOrLeaf: TypeAlias = "Branch | float"


def trees_of(description: Description) -> list[Branch]:
    """One tree for each table; a tree that would be one leaf has a branch all the same."""
    trees = (_tree(table.binnings, table.values) for table in description.tables)
    return [tree if isinstance(tree, Branch) else Branch(0, 0.0, tree, tree) for tree in trees]


def level_order(tree: BranchOrLeaf) -> list[tuple[BranchOrLeaf, int]]:
    """Nodes level by level, each with the place of its low child; the high one comes next."""
    nodes, low_children = [tree], []
    for node in nodes:  # which grows
        low_children.append(len(nodes))
        if isinstance(node, Branch):
            nodes += [node.low, node.high]
    return list(zip(nodes, low_children))


def columns_of(trees: Iterable[BranchOrLeaf]) -> list[int]:
    """Columns that trees look at, in ascending order."""
    nodes = (node for tree in trees for node, _ in level_order(tree))
    return sorted({node.column for node in nodes if isinstance(node, Branch)})


def _tree(binnings: Sequence[Binning], values: FloatArray) -> BranchOrLeaf:
    if not binnings:
        return float(values)
    first, *rest = binnings
    subtrees = [_tree(rest, own) for own in values]
    *numbers, missing = (subtrees[cell] for cell in first.cells)
    known = _balanced(first.column, *_merged(first.edges, numbers))
    return known if known == missing else Branch(first.column, math.inf, known, missing)


def _merged(
    edges: Sequence[float], nodes: Sequence[BranchOrLeaf]
) -> tuple[list[float], list[BranchOrLeaf]]:
    """Without edges between equal nodes."""
    steps = [k for k in range(len(edges)) if nodes[k] != nodes[k + 1]]
    return [edges[k] for k in steps], [nodes[0], *(nodes[k + 1] for k in steps)]


def _balanced(column: int, edges: Sequence[float], nodes: Sequence[BranchOrLeaf]) -> BranchOrLeaf:
    if not edges:
        return nodes[0]
    middle = len(edges) // 2
    low = _balanced(column, edges[:middle], nodes[: middle + 1])
    high = _balanced(column, edges[middle + 1 :], nodes[middle + 1 :])
    return Branch(column, edges[middle], low, high)


def at_most(threshold: float) -> float:
    """The greatest number of single precision that is at most the threshold.

    Of numbers in single precision the same ones are at most either.
    """
    rounded = np.float32(np.clip(threshold, -LARGEST, LARGEST))
    below = np.nextafter(rounded, np.float32(-LARGEST))
    return float(rounded if float(rounded) <= threshold else below)


def first_above(threshold: float) -> float:
    """The least number of single precision above the threshold, for engines that ask x < it."""
    return float(np.nextafter(np.float32(at_most(threshold)), np.float32(LARGEST)))


Read: TypeAlias = "Callable[[Any, NDArray[Any]], float | tuple[NDArray[np.bool_], Any, Any]]"


def descend(root: Any, rows: NDArray[Any], read: Read) -> FloatArray:
    """The leaves of rows in a tree of some format.

    ``read(node, rows)`` gives the value of a leaf, or which of the rows go to the left, and the
    node there and that to the right.
    """
    leaves = np.empty(len(rows))
    waiting = [(root, np.arange(len(rows)))]
    while waiting:
        node, places = waiting.pop()
        leaf_or_branch = read(node, rows[places])
        if isinstance(leaf_or_branch, tuple):
            low, to_low, to_high = leaf_or_branch
            waiting += [(to_low, places[low]), (to_high, places[~low])]
        else:
            leaves[places] = leaf_or_branch
    return leaves


def sum_of_trees(
    roots: Iterable[Any], rows: NDArray[Any], read: Read, precision: type[np.floating[Any]]
) -> FloatArray:
    """The sum over trees of the leaves of rows, both in a precision; ``read`` is as above."""
    values, total = rows.astype(precision), np.zeros(len(rows), precision)
    for root in roots:
        total += descend(root, values, read).astype(precision)
    return total.astype(np.float64)
