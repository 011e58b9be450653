// ProjectiveTree: the best one by Eisner's algorithm, O(n³).
//
// A span of neighbouring words is complete when its head needs no more words on this side, and
// joined when all that it lacks is an arc between its two ends:
//
//     joined[s, t] = max over s ≤ q < t of right[s, q] + left[q + 1, t]
//     right[s, t]  = max over s < q ≤ t of joined[s, q] + score(s → q) + right[q, t]     head s
//     left[s, t]   = max over s ≤ q < t of left[s, q] + joined[q, t] + score(t → q)      head t
//
// Charts that are read along t are kept transposed as well, so that every maximum runs over two
// contiguous rows. Where it was attained is asked again along the best tree only.
#pragma once

#include <algorithm>

#include "array.hpp"

namespace didyma {
namespace projective_tree {

// Scratch floats for n words: six charts.
inline int64_t n_work(int64_t n) { return 6 * (n + 1) * (n + 1); }
// Scratch integers for n words: spans that wait to be split.
inline int64_t n_index(int64_t n) { return 3 * (n + 2); }

// Maximum of a + b, in four strands that need not wait for each other.
inline double highest(Span<const double> a, Span<const double> b) {
    check_range(0, a.size(), b.size());
    const double* x = a.data();
    const double* y = b.data();
    const int64_t n = a.size();
    double best[4];
    std::fill(best, best + 4, -INF);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (int64_t s = 0; s < 4; ++s) {
            const double value = x[i + s] + y[i + s];
            best[s] = value > best[s] ? value : best[s];
        }
    }
    for (; i < n; ++i) {
        const double value = x[i] + y[i];
        best[0] = value > best[0] ? value : best[0];
    }
    best[0] = best[1] > best[0] ? best[1] : best[0];
    best[2] = best[3] > best[2] ? best[3] : best[2];
    return best[2] > best[0] ? best[2] : best[0];
}

// Where a + b is highest.
inline int64_t where_highest(Span<const double> a, Span<const double> b) {
    int64_t place = 0;
    for (int64_t i = 1; i < a.size(); ++i) {
        if (a[i] + b[i] > a[place] + b[place]) place = i;
    }
    return place;
}

enum Kind : int64_t { JOINED, RIGHT, LEFT };

}  // namespace projective_tree

// dims: stride of a row and whether there is a single root, whose only word makes all of its right
// side, so that nothing joins to the right of it.
inline int64_t best_projective_tree(Span<const double> scores, Span<const double>,
                                    Span<const int64_t> dims, Span<const int64_t> size,
                                    Span<double> work, Span<int64_t> index, Span<int32_t> parts,
                                    Span<int32_t>) {
    using namespace projective_tree;
    const int64_t stride = dims[0], n = size[0], width = n + 1, area = width * width;
    const bool single_root = dims[1];
    if (n == 0) return 0;
    const Span<double> right = work.first(area), right_t = work.slice(area, 2 * area);
    const Span<double> left = work.slice(2 * area, 3 * area);
    const Span<double> left_t = work.slice(3 * area, 4 * area);
    // joined[s, t] + score(s → t)
    const Span<double> to_right = work.slice(4 * area, 5 * area);
    // joined[s, t] + score(t → s), transposed
    const Span<double> to_left_t = work.slice(5 * area, 6 * area);
    for (int64_t i = 0; i < area; i += width + 1) {
        right[i] = right_t[i] = left[i] = left_t[i] = 0.0;
    }
    for (int64_t t = 1; t < width; ++t) {
        const int64_t column = t * width;
        for (int64_t s = t - 1; s >= 0; --s) {
            const int64_t row = s * width;
            const double joined = s == 0 && single_root
                                      ? left_t[column + 1]
                                      : highest(right.slice(row + s, row + t),
                                                left_t.slice(column + s + 1, column + t + 1));
            to_right[row + t] = joined + scores[t * stride + s];
            to_left_t[column + s] = joined + scores[s * stride + t];
            right[row + t] = right_t[column + s] =
                highest(to_right.slice(row + s + 1, row + t + 1),
                        right_t.slice(column + s + 1, column + t + 1));
            left[row + t] = left_t[column + s] =
                highest(left.slice(row + s, row + t), to_left_t.slice(column + s, column + t));
        }
    }
    if (right[n] == -INF) return -1;
    int64_t top = 0;
    const auto push = [&](Kind kind, int64_t s, int64_t t) {
        if (s >= t) return;
        index[top++] = kind;
        index[top++] = s;
        index[top++] = t;
    };
    push(RIGHT, 0, n);
    while (top > 0) {
        top -= 3;
        const int64_t kind = index[top], s = index[top + 1], t = index[top + 2];
        const int64_t row = s * width, column = t * width;
        if (kind == RIGHT) {
            const int64_t q = s + 1 +
                              where_highest(to_right.slice(row + s + 1, row + t + 1),
                                            right_t.slice(column + s + 1, column + t + 1));
            parts[q - 1] = static_cast<int32_t>(q * stride + s);
            push(JOINED, s, q);
            push(RIGHT, q, t);
        } else if (kind == LEFT) {
            const int64_t q = s + where_highest(left.slice(row + s, row + t),
                                                to_left_t.slice(column + s, column + t));
            parts[q - 1] = static_cast<int32_t>(q * stride + t);
            push(LEFT, s, q);
            push(JOINED, q, t);
        } else {
            int64_t q = s;
            if (s > 0 || !single_root) {
                q += where_highest(right.slice(row + s, row + t),
                                   left_t.slice(column + s + 1, column + t + 1));
            }
            push(RIGHT, s, q);
            push(LEFT, q + 1, t);
        }
    }
    parts.slice(n, parts.size()).fill(-1);
    return n;
}

}  // namespace didyma
