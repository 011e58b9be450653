"""The best tree over words: maximum spanning arborescence of a dense graph, O(n²).

Edmonds' algorithm along a growing path. Each component (at first a word) asks for its best head;
a head that is new extends the path, one on the path closes a cycle, which is contracted into a new
component. What an arc into the cycle is worth is its gain over the arc that it replaces, so the row
of a contracted component is an elementwise maximum, and nothing else ever has to be updated.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["arborescence", "arborescence_index", "arborescence_work"]

DONE, UNSEEN = -1, -2  # instead of a place on the path


def arborescence_work(n: int) -> int:
    """Scratch floats for n words: a value per component and a row per contracted one."""
    return 2 * n + 1 + n * (n + 1)


def arborescence_index(n: int) -> int:
    """Scratch integers for n words."""
    return 9 * n + 3


@jit
def highest(row, start, stop):
    """Maximum of row[start:stop], in four strands that need not wait for each other."""
    a = b = c = d = -np.inf
    i = start
    while i + 4 <= stop:
        a = row[i] if row[i] > a else a
        b = row[i + 1] if row[i + 1] > b else b
        c = row[i + 2] if row[i + 2] > c else c
        d = row[i + 3] if row[i + 3] > d else d
        i += 4
    while i < stop:
        a = row[i] if row[i] > a else a
        i += 1
    a = b if b > a else a
    c = d if d > c else c
    return c if c > a else a


@jit
def arcs(scores, stride, rows, width, component):
    """What each head is worth to a component; words come before contracted components."""
    if component < width:
        return scores[component * stride :]
    return rows[(component - width) * width :]


@jit
def arborescence(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.Tree`; dims are the stride of a row and whether one root.

    With a single root, trees compare by their number of root arcs first and by score second. No
    cycle contains a root arc, so this order needs no second key: a component takes the root only
    where it has no other head.
    """
    stride, single_root, n = dims[0], dims[1], size[0]
    width = n + 1
    value = work[: 2 * n + 1]  # of the arc into each component
    rows = work[2 * n + 1 :]  # of contracted components
    source = index[: 2 * n + 1]  # head of each component, a word
    place = index[2 * n + 1 : 3 * n + 2]  # of each word on the path
    path = index[3 * n + 2 : 4 * n + 2]  # components
    begin = index[4 * n + 2 : 5 * n + 2]  # of a component's words in `order`
    order = index[5 * n + 2 : 6 * n + 2]  # words of the path
    members = index[6 * n + 2 : 8 * n + 2]  # of the contracted components, one after another
    first = index[8 * n + 2 : 9 * n + 3]  # of a contracted component's members
    place[0] = DONE
    for word in range(1, width):
        place[word] = UNSEEN
    n_components, n_members, n_roots = width, 0, 0
    for start in range(1, width):
        depth, n_words, head = 0, 0, start
        while place[head] != DONE:
            if place[head] == UNSEEN:
                place[head] = depth
                path[depth] = head
                begin[depth] = n_words
                order[n_words] = head
                depth += 1
                n_words += 1
            else:  # contract the cycle
                bottom = place[head]
                merged = arcs(scores, stride, rows, width, n_components)
                first[n_components - width] = n_members
                for v in range(width):
                    merged[v] = -np.inf
                for i in range(bottom, depth):
                    members[n_members] = path[i]
                    n_members += 1
                    row = arcs(scores, stride, rows, width, path[i])
                    loss = value[path[i]]
                    for v in range(width):
                        gain = row[v] - loss
                        merged[v] = gain if gain > merged[v] else merged[v]
                for i in range(begin[bottom], n_words):
                    merged[order[i]] = -np.inf
                    place[order[i]] = bottom
                path[bottom] = n_components
                depth = bottom + 1
                n_components += 1
            component = path[depth - 1]
            row = arcs(scores, stride, rows, width, component)
            best = highest(row, single_root, min(component, width))
            rest = highest(row, component + 1, width)
            best = rest if rest > best else best
            if best > -np.inf:
                head = single_root
                while row[head] != best or head == component:
                    head += 1
            else:
                head, best = 0, row[0]
                n_roots += 1
                if best == -np.inf or n_roots > single_root:
                    return -1
            source[component] = head
            value[component] = best
        for i in range(n_words):
            place[order[i]] = DONE
    first[n_components - width] = n_members
    for component in range(n_components - 1, n, -1):  # the arc into a cycle breaks it
        head = source[component]
        entered, best = -1, -np.inf
        for i in range(first[component - width], first[component - width + 1]):
            gain = arcs(scores, stride, rows, width, members[i])[head] - value[members[i]]
            if gain > best:
                entered, best = members[i], gain
        source[entered] = head
    for word in range(1, width):
        parts[word - 1] = word * stride + source[word]
    for i in range(n, parts.shape[0]):
        parts[i] = -1
    return n
