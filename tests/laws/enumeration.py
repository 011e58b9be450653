"""Every output of small instances, by brute force, in the form that `encode` takes."""

from __future__ import annotations

import itertools

import numpy as np


def sequences(n, tags, padded=None):
    padded = n if padded is None else padded
    for chosen in itertools.product(range(tags), repeat=n):
        yield np.array([*chosen, *[-1] * (padded - n)])


def is_tree(heads):
    """heads[1:] of words 1..n: every word reaches the root."""
    for word in range(1, len(heads)):
        seen = set()
        while word != 0:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word]
    return True


def is_projective(heads):
    """No two arcs cross, and every arc spans only descendants of its head."""
    arcs = [(min(m, h), max(m, h)) for m, h in enumerate(heads) if m > 0]
    return not any(a < c < b < d for (a, b), (c, d) in itertools.permutations(arcs, 2))


def trees(n, padded=None, single_root=False, projective=False):
    padded = n if padded is None else padded
    for chosen in itertools.product(range(n + 1), repeat=n):
        heads = [-1, *chosen]
        if not is_tree(heads) or (single_root and chosen.count(0) != 1):
            continue
        if projective and not is_projective(heads):
            continue
        yield np.array([*heads, *[-1] * (padded - n)])


def matchings(n, m):
    if n <= m:
        for columns in itertools.permutations(range(m), n):
            yield np.array(columns)
    else:
        for rows in itertools.permutations(range(n), m):
            columns = np.full(n, -1)
            columns[list(rows)] = np.arange(m)
            yield columns


def forests(n):
    edges = list(itertools.combinations(range(n), 2))
    for size in range(n):
        for chosen in itertools.combinations(edges, size):
            parent = list(range(n))

            def root(i, parent=parent):
                while parent[i] != i:
                    i = parent[i]
                return i

            for i, j in chosen:
                if root(i) == root(j):
                    break
                parent[root(i)] = root(j)
            else:
                adjacency = np.zeros((n, n), dtype=bool)
                for i, j in chosen:
                    adjacency[i, j] = True
                yield adjacency


def subsets(n, k, exactly):
    for size in [k] if exactly else range(k + 1):
        for chosen in itertools.combinations(range(n), size):
            mask = np.zeros(n, dtype=bool)
            mask[list(chosen)] = True
            yield mask


def assignments(n, states, allowed=lambda chosen: True):
    for chosen in itertools.product(range(states), repeat=n):
        if allowed(chosen):
            yield np.array(chosen)


def segmentations(n, longest, labels):
    """Tags of all ways to cut: 2t where a segment with label t begins, 2t + 1 inside."""
    if n == 0:
        yield np.array([], int)
    for length in range(1, min(longest, n) + 1):
        for label in range(labels):
            segment = [2 * label, *[2 * label + 1] * (length - 1)]
            for rest in segmentations(n - length, longest, labels):
                yield np.array([*segment, *rest])


def warpings(n, m, steps):
    """Cells of all paths from the first to the last."""

    def ways(i, j):
        if (i, j) == (n - 1, m - 1):
            yield [(i, j)]
        elif i < n and j < m:
            for a, b in steps:
                for rest in ways(i + a, j + b):
                    yield [(i, j), *rest]

    for path in ways(0, 0):
        cells = np.zeros((n, m), bool)
        cells[tuple(np.array(path).T)] = True
        yield cells


def ordered_pairs(n, m):
    """Cells of all matchings, of any size, that do not cross."""
    for size in range(min(n, m) + 1):
        for rows in itertools.combinations(range(n), size):
            for columns in itertools.combinations(range(m), size):
                cells = np.zeros((n, m), bool)
                cells[list(rows), list(columns)] = True
                yield cells


def binary_trees(n, labels):
    """Labels of the spans of all binary trees, −1 elsewhere."""

    def spans(i, j):
        if i == j:
            yield [(i, j)]
        for k in range(i, j):
            for one, other in itertools.product(list(spans(i, k)), list(spans(k + 1, j))):
                yield [(i, j), *one, *other]

    for tree in spans(0, n - 1):
        for chosen in itertools.product(range(labels), repeat=len(tree)):
            output = np.full((n, n), -1)
            output[tuple(np.array(tree).T)] = chosen
            yield output


def paths(edges, source, target):
    """Edges of all ways from one node to another."""

    def ways(node):
        if node == target:
            yield []
        for e, (a, b) in enumerate(edges):
            if a == node:
                for rest in ways(b):
                    yield [e, *rest]

    for way in ways(source):
        yield np.isin(np.arange(len(edges)), way)


def fitting(weights, capacity):
    for chosen in itertools.product((False, True), repeat=len(weights)):
        if np.dot(chosen, weights) <= capacity:
            yield np.array(chosen)


def spaced(n):
    """Sets of options of which no two are neighbours."""
    for chosen in itertools.product((False, True), repeat=n):
        if not any(a and b for a, b in itertools.pairwise(chosen)):
            yield np.array(chosen)
