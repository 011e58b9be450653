// Random trees by loop-erased random walks (Wilson 1996).
#pragma once

#include "array.hpp"
#include "random.hpp"

namespace didyma {

// An index from `first` to `last`, in proportion to the differences of a running sum.
inline int64_t choose(Span<const double> cumulative, int64_t first, int64_t last, Random random) {
    const double before = first > 0 ? cumulative[first - 1] : 0.0;
    const double x = before + random.uniform() * (cumulative[last] - before);
    while (first < last) {
        const int64_t middle = (first + last) / 2;
        if (cumulative[middle] > x) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}

// Heads (samples, n + 1) of words 1 to n; a row that took too long has -1 in it.
//
// cumulative(m, h) is the sum of the weights of heads 0 to h of word m. If `roots` is not empty a
// single word hangs from the root, word m with cumulative probability roots[m], and all others walk
// to it. The cycles that walks leave behind are independent of the tree that remains, so to give up
// after `most` steps, and to draw such a tree in another way, favours no tree.
inline void sample_trees(Matrix<const double> cumulative, Span<const double> roots, int64_t n,
                         int64_t most, Random random, Matrix<int64_t> heads) {
    Array<bool> inside(n + 1);
    const bool single_root = roots.size() > 0;
    for (int64_t s = 0; s < heads.rows(); ++s) {
        const auto head = heads[s];
        head.first(n + 1).fill(-1);
        inside.fill(false);
        inside[0] = true;
        if (single_root && n > 0) {
            const int64_t only = choose(roots, 1, n, random);
            head[only] = 0;
            inside[only] = true;
        }
        int64_t steps = 0;
        for (int64_t m = 1; m <= n; ++m) {
            int64_t word = m;
            for (; !inside[word] && steps < most; ++steps) {
                head[word] = choose(cumulative[word], single_root ? 1 : 0, n, random);
                word = head[word];
            }
            if (!inside[word]) {
                for (int64_t other = 1; other <= n; ++other) {
                    if (head[other] != 0 || !single_root) head[other] = -1;
                }
                break;
            }
            for (word = m; !inside[word]; word = head[word]) inside[word] = true;
        }
    }
}

}  // namespace didyma
