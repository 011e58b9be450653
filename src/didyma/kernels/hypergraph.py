"""Dynamic programmes as hypergraphs: best, k best, sums and samples, written once for all of them.

Values stand in one array: the scores of the parts, the additional scores, a zero, and then one
value for each vertex. An edge into a vertex is a pair of values to be added, earlier ones; a vertex
is the best (or the sum, in log space) of its edges. So a *derivation* of the goal adds up leaves.

``dims`` is the plan (`didyma.structures.hypergraph.Hypergraph`): where the vertices stand in it;
how many lengths there are along each axis; for each combination of lengths the first vertex that is
needed and the goal; for each vertex where its edges begin; the edges.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = [
    "derivation_covariances",
    "derivation_sums",
    "derivation_third_cumulants",
    "hyperpath",
    "k_best_derivations",
    "longest",
    "reach",
    "sample_derivations",
]


@jit
def _read(scores, extra, values):
    """Leaves are the first values; returns where the vertices begin."""
    d, f = scores.shape[0], extra.shape[0]
    for i in range(d):
        values[i] = scores[i]
    for i in range(f):
        values[d + i] = extra[i]
    values[d + f] = 0.0
    return d + f + 1


@jit
def _goal(dims, size):
    """Where the first vertex and the goal of an instance of this size stand."""
    code = 0
    for axis in range(size.shape[0]):
        code = code * dims[1 + axis] + size[axis]
    return 1 + size.shape[0] + 2 * code


@jit
def _total(values, dims, at):
    """What an edge adds up; unsigned indices need no test for negative ones."""
    left = values[np.uint64(dims[np.uint64(at)])]
    return left + values[np.uint64(dims[np.uint64(at + 1)])]


@jit
def _highest(values, dims, start, stop):
    """The highest of the edges between."""
    best = -np.inf
    for at in range(start, stop, 2):
        total = _total(values, dims, at)
        best = total if total > best else best
    return best


@jit
def _maximise(values, dims, first, goal, base):
    """Values of the vertices up to the goal: the best derivation of each."""
    vertices = dims[0]
    for slot in range(first, goal + 1):
        v = vertices + slot - base
        values[slot] = _highest(values, dims, dims[v], dims[v + 1])


@jit
def _add_up(values, dims, first, goal, base):
    """Values of the vertices up to the goal: log Σ exp over the derivations of each."""
    vertices = dims[0]
    for slot in range(first, goal + 1):
        v = vertices + slot - base
        start, stop = dims[v], dims[v + 1]
        highest = _highest(values, dims, start, stop)
        if highest > -np.inf and stop - start > 2:
            total = 0.0
            for at in range(start, stop, 2):
                total += np.exp(_total(values, dims, at) - highest)
            highest += np.log(total)
        values[slot] = highest


@jit
def _share(values, dims, start, stop, shares):
    """The probabilities of a vertex's edges: they sum to 1, however large the values are."""
    highest = _highest(values, dims, start, stop)
    total = 0.0
    for i in range((stop - start) // 2):
        weight = _total(values, dims, start + 2 * i)
        shares[i] = np.exp(weight - highest) if weight > -np.inf else 0.0
        total += shares[i]
    for i in range((stop - start) // 2):
        if shares[i] > 0.0:
            shares[i] /= total


@jit
def hyperpath(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of a plan: values upwards, then the edges that attain them downwards.

    Only the best derivation needs to know where its values came from. Of equally good edges the
    first wins.
    """
    d, f = scores.shape[0], extra.shape[0]
    base = _read(scores, extra, work)
    place = _goal(dims, size)
    goal = dims[place + 1]
    _maximise(work, dims, dims[place], goal, base)
    if work[goal] == -np.inf:
        return -1
    count = n_extra = 0
    index[0], depth = goal, 1
    while depth > 0:
        slot = index[depth - 1]
        if slot >= base:
            at = dims[dims[0] + slot - base]
            while _total(work, dims, at) < work[slot]:
                at += 2
            index[depth - 1] = dims[at + 1]
            index[depth] = dims[at]
            depth += 1
            continue
        depth -= 1
        if slot < d:
            parts[count] = slot
            count += 1
        elif slot < d + f:
            extra_parts[n_extra] = slot - d
            n_extra += 1
    for i in range(count, parts.shape[0]):
        parts[i] = -1
    for i in range(n_extra, extra_parts.shape[0]):
        extra_parts[i] = -1
    return count


@jit
def derivation_sums(
    scores, extra, dims, sizes, n_values, log_partition, marginals, extra_marginals
):
    """Log partitions and probabilities of all leaves; the first impossible instance, or −1.

    Downwards, a vertex shares its probability among its edges in proportion to what they add up to.
    """
    d, f = scores.shape[1], extra.shape[1]
    values, flow = np.empty(n_values), np.empty(n_values)
    shares = np.empty(dims.shape[0] // 2)
    for b in range(scores.shape[0]):
        base = _read(scores[b], extra[b if extra.shape[0] > 1 else 0], values)
        place = _goal(dims, sizes[b])
        first, goal = dims[place], dims[place + 1]
        _add_up(values, dims, first, goal, base)
        log_partition[b] = values[goal]
        if values[goal] == -np.inf:
            return b
        for i in range(base):
            flow[i] = 0.0
        for i in range(first, goal):
            flow[i] = 0.0
        flow[goal] = 1.0
        for slot in range(goal, first - 1, -1):
            if flow[slot] > 0.0:
                v = dims[0] + slot - base
                start, stop = dims[v], dims[v + 1]
                _share(values, dims, start, stop, shares)
                for at in range(start, stop, 2):
                    share = flow[slot] * shares[(at - start) // 2]
                    flow[dims[at]] += share
                    flow[dims[at + 1]] += share
        for i in range(d):
            marginals[b, i] = flow[i]
        for i in range(f):
            extra_marginals[b, i] = flow[d + i]
    return -1


@jit
def _move(values, moves, dims, first, goal, base, shares):
    """How the values of the vertices move as those of the leaves do."""
    for slot in range(first, goal + 1):
        v = dims[0] + slot - base
        start, stop = dims[v], dims[v + 1]
        _share(values, dims, start, stop, shares)
        move = 0.0
        for at in range(start, stop, 2):
            share = shares[(at - start) // 2]
            if share > 0.0:  # what is impossible may move by anything
                move += share * _total(moves, dims, at)
        moves[slot] = move


@jit
def derivation_covariances(scores, extra, dims, sizes, n_values, p, p_extra, q, q_extra):
    """How the probabilities of all leaves move as their scores move along p.

    Every value of `derivation_sums` with its derivative beside it, up and then down.
    """
    d, f = scores.shape[1], extra.shape[1]
    values, moves = np.empty(n_values), np.empty(n_values)
    flow, change = np.empty(n_values), np.empty(n_values)
    shares = np.empty(dims.shape[0] // 2)
    for b in range(scores.shape[0]):
        base = _read(scores[b], extra[b if extra.shape[0] > 1 else 0], values)
        _read(p[b], p_extra[b], moves)
        place = _goal(dims, sizes[b])
        first, goal = dims[place], dims[place + 1]
        _add_up(values, dims, first, goal, base)
        _move(values, moves, dims, first, goal, base, shares)
        for i in range(base):
            flow[i] = change[i] = 0.0
        for i in range(first, goal):
            flow[i] = change[i] = 0.0
        flow[goal], change[goal] = 1.0, 0.0
        for slot in range(goal, first - 1, -1):
            if flow[slot] > 0.0:
                v = dims[0] + slot - base
                start, stop = dims[v], dims[v + 1]
                _share(values, dims, start, stop, shares)
                for at in range(start, stop, 2):
                    share = shares[(at - start) // 2]
                    if share > 0.0:
                        further = _total(moves, dims, at) - moves[slot]
                        moved = share * (change[slot] + flow[slot] * further)
                        for side in range(2):
                            flow[dims[at + side]] += flow[slot] * share
                            change[dims[at + side]] += moved
        for i in range(d):
            q[b, i] = change[i]
        for i in range(f):
            q_extra[b, i] = change[d + i]


@jit
def derivation_third_cumulants(
    scores, extra, dims, sizes, n_values, p, p_extra, r, r_extra, t, t_extra
):
    """How what `derivation_covariances` finds for p moves as scores move along r.

    Every value has its derivatives along p, along r, and along both beside it.
    """
    d, f = scores.shape[1], extra.shape[1]
    values, flow = np.empty(n_values), np.empty(n_values)
    along_p, along_r, along_both = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    change_p, change_r, change_both = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    shares = np.empty(dims.shape[0] // 2)
    for b in range(scores.shape[0]):
        base = _read(scores[b], extra[b if extra.shape[0] > 1 else 0], values)
        _read(p[b], p_extra[b], along_p)
        _read(r[b], r_extra[b], along_r)
        place = _goal(dims, sizes[b])
        first, goal = dims[place], dims[place + 1]
        _add_up(values, dims, first, goal, base)
        _move(values, along_p, dims, first, goal, base, shares)
        _move(values, along_r, dims, first, goal, base, shares)
        for i in range(base):
            along_both[i] = flow[i] = change_p[i] = change_r[i] = change_both[i] = 0.0
        for slot in range(first, goal + 1):
            flow[slot] = change_p[slot] = change_r[slot] = change_both[slot] = 0.0
            v = dims[0] + slot - base
            start, stop = dims[v], dims[v + 1]
            _share(values, dims, start, stop, shares)
            both = 0.0
            for at in range(start, stop, 2):
                share = shares[(at - start) // 2]
                if share > 0.0:
                    further_p = _total(along_p, dims, at) - along_p[slot]
                    further_r = _total(along_r, dims, at) - along_r[slot]
                    moved = _total(along_both, dims, at) + further_p * further_r
                    both += share * moved
            along_both[slot] = both
        flow[goal] = 1.0
        for slot in range(goal, first - 1, -1):
            if flow[slot] > 0.0:
                v = dims[0] + slot - base
                start, stop = dims[v], dims[v + 1]
                _share(values, dims, start, stop, shares)
                for at in range(start, stop, 2):
                    share = shares[(at - start) // 2]
                    if share > 0.0:
                        further_p = _total(along_p, dims, at) - along_p[slot]
                        further_r = _total(along_r, dims, at) - along_r[slot]
                        further = _total(along_both, dims, at) - along_both[slot]
                        moved_p = share * (change_p[slot] + flow[slot] * further_p)
                        moved_r = share * (change_r[slot] + flow[slot] * further_r)
                        moved = share * (change_both[slot] + change_p[slot] * further_r)
                        moved += moved_r * further_p + share * flow[slot] * further
                        for side in range(2):
                            flow[dims[at + side]] += flow[slot] * share
                            change_p[dims[at + side]] += moved_p
                            change_r[dims[at + side]] += moved_r
                            change_both[dims[at + side]] += moved
        for i in range(d):
            t[b, i] = change_both[i]
        for i in range(f):
            t_extra[b, i] = change_both[d + i]


@jit
def sample_derivations(scores, extra, dims, size, n_values, generator, parts):
    """One derivation for each row of ``parts``, in proportion to exp(score); whether there is any.

    From the goal down, a vertex chooses one of its edges as it shares its probability above.
    """
    values = np.empty(n_values)
    stack = np.empty(n_values, np.int64)
    base = _read(scores, extra, values)
    place = _goal(dims, size)
    goal = dims[place + 1]
    _add_up(values, dims, dims[place], goal, base)
    if values[goal] == -np.inf:
        return False
    for r in range(parts.shape[0]):
        count = 0
        stack[0], depth = goal, 1
        while depth > 0:
            slot = stack[depth - 1]
            if slot >= base:
                v = dims[0] + slot - base
                start, stop = dims[v], dims[v + 1]
                chosen = start
                if stop - start > 2:
                    left = generator.random()
                    for at in range(start, stop, 2):
                        share = np.exp(_total(values, dims, at) - values[slot])
                        if share > 0.0:  # rounding may leave a rest: it goes to the last
                            chosen = at
                            left -= share
                            if left < 0.0:
                                break
                stack[depth - 1] = dims[chosen + 1]
                stack[depth] = dims[chosen]
                depth += 1
                continue
            depth -= 1
            if slot < scores.shape[0]:
                parts[r, count] = slot
                count += 1
    return True


@jit
def longest(values, dims, base):
    """Values of all vertices, at the leaves' values as they are."""
    _maximise(values, dims, base, values.shape[0] - 1, base)


@jit
def reach(dims, size, base, reached):
    """Mark the values that some derivation of the goal reads."""
    place = _goal(dims, size)
    first, goal = dims[place], dims[place + 1]
    values = np.zeros(reached.shape[0])
    _maximise(values, dims, first, goal, base)  # −∞ is what has no derivation
    reached[goal] = values[goal] == 0.0
    for slot in range(goal, first - 1, -1):
        if reached[slot]:
            v = dims[0] + slot - base
            for at in range(dims[v], dims[v + 1], 2):
                if _total(values, dims, at) == 0.0:
                    reached[dims[at]] = True
                    reached[dims[at + 1]] = True


ROW, LEFT, RIGHT, NEXT = 0, 1, 2, 3


@jit
def k_best_derivations(scores, extra, dims, size, n_values, parts, totals):
    """The best derivations, one for each row of ``parts``, best first; how many there are.

    Lists of derivations grow only where one is asked for (Huang & Chiang 2005, algorithm 3). An
    *item* is a derivation of a vertex: an edge, and the items of its two ends (0 for a leaf, or for
    the best one as long as nobody has asked for it). A vertex has a list of candidates and, ranked,
    the items that were the best of these; the next best of item (l, r) are (l′, r) and, where l is
    the first, (l, r′).
    """
    values = np.empty(n_values)
    base = _read(scores, extra, values)
    place = _goal(dims, size)
    first, goal = dims[place], dims[place + 1]
    _maximise(values, dims, first, goal, base)
    if values[goal] == -np.inf:
        return 0
    if goal < base:
        totals[0] = values[goal]
        if goal < scores.shape[0]:
            parts[0, 0] = goal
        return 1
    candidates = np.zeros(n_values, np.int64)  # first of each vertex's list
    best = np.zeros(n_values, np.int64)
    last = np.zeros(n_values, np.int64)  # ranked so far
    started = np.zeros(n_values, np.bool_)
    exhausted = np.zeros(n_values, np.bool_)
    followed = np.zeros(n_values, np.bool_)  # whether the next best of the last are candidates
    stack = np.empty(n_values, np.int64)
    score, item = np.empty(64), np.zeros((64, 4), np.int64)
    n_items = 1
    for r in range(totals.shape[0]):
        stack[0], depth = goal, 1
        while depth > 0:  # one more item for the vertex on top
            slot = stack[depth - 1]
            v = dims[0] + slot - base
            start, stop = dims[v], dims[v + 1]
            while n_items + stop - start + 2 > score.shape[0]:
                score, item = _doubled(score, item)
            if not started[slot]:
                started[slot] = True
                for at in range(stop - 2, start - 1, -2):
                    total = _total(values, dims, at)
                    if total > -np.inf:
                        score[n_items] = total
                        _link(item, n_items, at, 0, 0, candidates, slot)
                        n_items += 1
            i = last[slot]
            if i > 0 and not followed[slot]:
                at, left, right = item[i, ROW], item[i, LEFT], item[i, RIGHT]
                a, b = dims[at], dims[at + 1]
                if a >= base and left == last[a] and not exhausted[a]:
                    stack[depth] = a
                    depth += 1
                    continue
                leftmost = a < base or left == best[a]
                if b >= base and leftmost and right == last[b] and not exhausted[b]:
                    stack[depth] = b
                    depth += 1
                    continue
                followed[slot] = True
                if a >= base and item[left, NEXT] > 0:
                    other = item[left, NEXT]
                    score[n_items] = score[other] + (score[right] if b >= base else values[b])
                    _link(item, n_items, at, other, right, candidates, slot)
                    n_items += 1
                if b >= base and leftmost and item[right, NEXT] > 0:
                    other = item[right, NEXT]
                    score[n_items] = (score[left] if a >= base else values[a]) + score[other]
                    _link(item, n_items, at, left, other, candidates, slot)
                    n_items += 1
            i = _first_best(score, item, candidates[slot])
            if i == 0:
                exhausted[slot] = True
                depth -= 1
                continue
            a, b = dims[item[i, ROW]], dims[item[i, ROW] + 1]
            if a >= base and item[i, LEFT] == 0:
                if best[a] == 0:
                    stack[depth] = a
                    depth += 1
                    continue
                item[i, LEFT] = best[a]
            if b >= base and item[i, RIGHT] == 0:
                if best[b] == 0:
                    stack[depth] = b
                    depth += 1
                    continue
                item[i, RIGHT] = best[b]
            _unlink(item, i, candidates, slot)
            if last[slot] == 0:
                best[slot] = i
            else:
                item[last[slot], NEXT] = i
            last[slot] = i
            followed[slot] = False
            depth -= 1
        if exhausted[goal]:
            return r
        totals[r] = score[last[goal]]
        count = 0
        stack[0], depth = last[goal], 1
        while depth > 0:
            depth -= 1
            i = stack[depth]
            for side in range(2):
                slot = dims[item[i, ROW] + side]
                if slot >= base:
                    stack[depth] = item[i, LEFT + side]
                    depth += 1
                elif slot < scores.shape[0]:
                    parts[r, count] = slot
                    count += 1
    return totals.shape[0]


@jit
def _doubled(score, item):
    """The same items with twice the room."""
    n = score.shape[0]
    scores, items = np.empty(2 * n), np.zeros((2 * n, 4), np.int64)
    for i in range(n):
        scores[i] = score[i]
        for j in range(4):
            items[i, j] = item[i, j]
    return scores, items


@jit
def _link(item, i, row, left, right, candidates, slot):
    """A new candidate, first of its vertex's list."""
    item[i, ROW] = row
    item[i, LEFT] = left
    item[i, RIGHT] = right
    item[i, NEXT] = candidates[slot]
    candidates[slot] = i


@jit
def _unlink(item, i, candidates, slot):
    """Take a candidate out of its vertex's list."""
    if candidates[slot] == i:
        candidates[slot] = item[i, NEXT]
    else:
        before = candidates[slot]
        while item[before, NEXT] != i:
            before = item[before, NEXT]
        item[before, NEXT] = item[i, NEXT]
    item[i, NEXT] = 0


@jit
def _first_best(score, item, i):
    """The best candidate of a list, the first of several; 0 if it is empty."""
    chosen, highest = 0, -np.inf
    while i > 0:
        if score[i] > highest:
            chosen, highest = i, score[i]
        i = item[i, NEXT]
    return chosen
