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
