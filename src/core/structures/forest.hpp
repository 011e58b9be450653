// Forest: the best spanning forest by Prim's algorithm, O(n²), faster on dense graphs than sorting
// edges.
#pragma once

#include <algorithm>

#include "array.hpp"

namespace didyma {

// Positive edges among size[0] of dims[0] nodes. The tree takes the open node with the best edge to
// it; where no edge is positive, the first open node begins a tree of its own.
inline int64_t best_forest(Span<const double> scores, Span<const double>, Span<const int64_t> dims,
                           Span<const int64_t> size, Span<double> work, Span<int64_t> index,
                           Span<int32_t> parts, Span<int32_t>) {
    constexpr double TAKEN = INF;
    const int64_t stride = dims[0], n = size[0];
    const Span<double> gain = work.first(n);
    const Span<int64_t> neighbour = index.first(n);
    gain.fill(0.0);
    int64_t count = 0;
    for (int64_t round = 0; round < n; ++round) {
        double best = -1.0;
        for (int64_t j = 0; j < n; ++j) {
            const double score = gain[j] < TAKEN ? gain[j] : -1.0;
            best = score > best ? score : best;
        }
        int64_t node = 0;
        while (gain[node] != best) ++node;
        if (best > 0.0) {
            const int64_t low = std::min(node, neighbour[node]);
            const int64_t edge = low * stride + std::max(node, neighbour[node]);
            int64_t place = count++;
            for (; place > 0 && parts[place - 1] > edge; --place) parts[place] = parts[place - 1];
            parts[place] = static_cast<int32_t>(edge);
        }
        gain[node] = TAKEN;
        const auto offer = [&](int64_t j, double score) {
            const bool better = score > gain[j];
            gain[j] = better ? score : gain[j];
            neighbour[j] = better ? node : neighbour[j];
        };
        for (int64_t j = 0; j < node; ++j) offer(j, scores[j * stride + node]);
        const Span<const double> row = scores.slice(node * stride, node * stride + n);
        for (int64_t j = node + 1; j < n; ++j) offer(j, row[j]);
    }
    parts.slice(count, parts.size()).fill(-1);
    return count;
}

}  // namespace didyma
