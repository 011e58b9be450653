// Tree: the maximum spanning arborescence of a dense graph, O(n²).
//
// Edmonds' algorithm along a growing path. Each component (at first a word) asks for its best head;
// a head that is new extends the path, one on the path closes a cycle, which is contracted into a
// new component. What an arc into the cycle is worth is its gain over the arc that it replaces, so
// the row of a contracted component is an elementwise maximum, and nothing else ever has to be
// updated.
#pragma once

#include <algorithm>

#include "array.hpp"

namespace didyma {
namespace tree {

constexpr int64_t DONE = -1, UNSEEN = -2;  // instead of a place on the path

// Scratch floats for n words: a value per component and a row per contracted one.
inline int64_t n_work(int64_t n) { return 2 * n + 1 + n * (n + 1); }
// Scratch integers for n words.
inline int64_t n_index(int64_t n) { return 9 * n + 3; }

// Maximum of row[start] to row[stop - 1], in four strands that need not wait for each other.
inline double highest(Span<const double> row, int64_t start, int64_t stop) {
    if (start < stop) check_range(start, stop, row.size());
    const double* x = row.data();
    double a = -INF, b = -INF, c = -INF, d = -INF;
    int64_t i = start;
    for (; i + 4 <= stop; i += 4) {
        a = x[i] > a ? x[i] : a;
        b = x[i + 1] > b ? x[i + 1] : b;
        c = x[i + 2] > c ? x[i + 2] : c;
        d = x[i + 3] > d ? x[i + 3] : d;
    }
    for (; i < stop; ++i) a = x[i] > a ? x[i] : a;
    a = b > a ? b : a;
    c = d > c ? d : c;
    return c > a ? c : a;
}

}  // namespace tree

// dims are the stride of a row and whether there is a single root: trees then compare by their
// number of root arcs first and by score second. No cycle contains a root arc, so this order needs
// no second key: a component takes the root only where it has no other head.
inline int64_t best_tree(Span<const double> scores, Span<const double>, Span<const int64_t> dims,
                         Span<const int64_t> size, Span<double> work, Span<int64_t> index,
                         Span<int32_t> parts, Span<int32_t>) {
    using namespace tree;
    const int64_t stride = dims[0], single_root = dims[1], n = size[0], width = n + 1;
    const Span<double> value = work.first(2 * n + 1);  // of the arc into a component
    const Span<double> rows = work.slice(2 * n + 1, tree::n_work(n));  // of contracted components
    const Span<int64_t> source = index.first(2 * n + 1);              // head of a component, a word
    const Span<int64_t> place = index.slice(2 * n + 1, 3 * n + 2);    // of each word on the path
    const Span<int64_t> path = index.slice(3 * n + 2, 4 * n + 2);     // components
    const Span<int64_t> begin = index.slice(4 * n + 2, 5 * n + 2);    // of their words in `order`
    const Span<int64_t> order = index.slice(5 * n + 2, 6 * n + 2);    // words of the path
    const Span<int64_t> members = index.slice(6 * n + 2, 8 * n + 2);  // of contracted components
    const Span<int64_t> first = index.slice(8 * n + 2, 9 * n + 3);    // of a component's members
    // What each head is worth to a component; words come before contracted components.
    const auto arcs = [&](int64_t component) -> Span<const double> {
        if (component < width) return scores.slice(component * stride, component * stride + width);
        return rows.slice((component - width) * width, (component - width + 1) * width);
    };
    place.fill(UNSEEN);
    place[0] = DONE;
    int64_t n_components = width, n_members = 0, n_roots = 0;
    for (int64_t start = 1; start < width; ++start) {
        int64_t depth = 0, n_words = 0, head = start;
        while (place[head] != DONE) {
            if (place[head] == UNSEEN) {
                place[head] = depth;
                path[depth] = head;
                begin[depth] = n_words;
                order[n_words] = head;
                ++depth;
                ++n_words;
            } else {  // contract the cycle
                const int64_t bottom = place[head], contracted = n_components - width;
                const Span<double> merged =
                    rows.slice(contracted * width, (contracted + 1) * width);
                first[contracted] = n_members;
                merged.fill(-INF);
                for (int64_t i = bottom; i < depth; ++i) {
                    members[n_members++] = path[i];
                    const Span<const double> row = arcs(path[i]);
                    const double loss = value[path[i]];
                    for (int64_t v = 0; v < width; ++v) {
                        const double gain = row[v] - loss;
                        merged[v] = gain > merged[v] ? gain : merged[v];
                    }
                }
                for (int64_t i = begin[bottom]; i < n_words; ++i) {
                    merged[order[i]] = -INF;
                    place[order[i]] = bottom;
                }
                path[bottom] = n_components;
                depth = bottom + 1;
                ++n_components;
            }
            const int64_t component = path[depth - 1];
            const Span<const double> row = arcs(component);
            double best = highest(row, single_root, std::min(component, width));
            const double rest = highest(row, component + 1, width);
            best = rest > best ? rest : best;
            if (best > -INF) {
                head = single_root;
                while (row[head] != best || head == component) ++head;
            } else {
                head = 0;
                best = row[0];
                ++n_roots;
                if (best == -INF || n_roots > single_root) return -1;
            }
            source[component] = head;
            value[component] = best;
        }
        for (int64_t i = 0; i < n_words; ++i) place[order[i]] = DONE;
    }
    first[n_components - width] = n_members;
    for (int64_t component = n_components - 1; component > n; --component) {
        const int64_t head = source[component];  // the arc into a cycle breaks it
        int64_t entered = -1;
        double best = -INF;
        for (int64_t i = first[component - width]; i < first[component - width + 1]; ++i) {
            const double gain = arcs(members[i])[head] - value[members[i]];
            if (gain > best) {
                entered = members[i];
                best = gain;
            }
        }
        source[entered] = head;
    }
    for (int64_t word = 1; word < width; ++word) {
        parts[word - 1] = static_cast<int32_t>(word * stride + source[word]);
    }
    parts.slice(n, parts.size()).fill(-1);
    return n;
}

}  // namespace didyma
