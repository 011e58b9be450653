// TopK: the k best of n options.
#pragma once

#include "array.hpp"

namespace didyma {

// dims[0] of size[0] options, exactly (dims[1]) or at most. A heap of the best scores ends with the
// lowest that is chosen on top; of options that tie there the first are.
inline int64_t best_top_k(Span<const double> scores, Span<const double>, Span<const int64_t> dims,
                          Span<const int64_t> size, Span<double> work, Span<int64_t>,
                          Span<int32_t> parts, Span<int32_t>) {
    const int64_t k = dims[0], n = size[0];
    if (n == 0) return 0;
    const Span<double> heap = work.first(k);
    // not worth choosing
    const double worst = dims[1] ? -INF : 0.0;
    heap.fill(worst);
    for (int64_t i = 0; i < n; ++i) {
        const double score = scores[i];
        if (!(score > heap[0])) continue;
        int64_t parent = 0, child = 1;
        while (child < k) {
            child += child + 1 < k && heap[child + 1] < heap[child];
            if (heap[child] >= score) break;
            heap[parent] = heap[child];
            parent = child;
            child = 2 * child + 1;
        }
        heap[parent] = score;
    }
    const double threshold = heap[0];
    if (threshold == -INF) return -1;
    int64_t above = 0, ties = 0;
    for (const double score : heap) {
        above += score > threshold;
        ties += score == threshold && threshold > worst;
    }
    const int64_t chosen = above + ties;
    for (int64_t i = 0, count = 0; count < chosen; ++i) {
        const bool tied = scores[i] == threshold && ties > 0;
        ties -= tied;
        parts[count] = static_cast<int32_t>(i);
        count += tied || scores[i] > threshold;
    }
    parts.slice(chosen, parts.size()).fill(-1);
    return chosen;
}

}  // namespace didyma
