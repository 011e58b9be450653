// Chain: the best tags, and the k best (Viterbi).
#pragma once

#include <algorithm>

#include "array.hpp"

namespace didyma {
namespace chain {

constexpr int64_t FEW_TAGS = 8;  // fewer than these are not worth vector instructions

// after[b] = max over a of before[a] + transitions[a, b]: four rows at a time and no branches, so
// that the loop over b becomes vector instructions; the last row is repeated where fewer are left,
// which does not change a maximum.
inline void step(Span<const double> before, Matrix<const double> transitions, Span<double> after) {
    const int64_t n = before.size();
    check_range(0, n, after.size());
    double* out = after.data();
    after.fill(-INF);
    for (int64_t a = 0; a < n; a += 4) {
        const int64_t a1 = std::min(a + 1, n - 1), a2 = std::min(a + 2, n - 1);
        const int64_t a3 = std::min(a + 3, n - 1);
        const double v0 = before[a], v1 = before[a1], v2 = before[a2], v3 = before[a3];
        const double* row0 = transitions[a].data();
        const double* row1 = transitions[a1].data();
        const double* row2 = transitions[a2].data();
        const double* row3 = transitions[a3].data();
        for (int64_t b = 0; b < n; ++b) {
            double x = v0 + row0[b], y = v1 + row1[b], z = v2 + row2[b];
            x = x > out[b] ? x : out[b];
            y = y > z ? y : z;
            z = v3 + row3[b];
            x = x > z ? x : z;
            out[b] = x > y ? x : y;
        }
    }
}

inline void step_few(Span<const double> before, Matrix<const double> transitions,
                     Span<double> after) {
    const int64_t n = before.size();
    for (int64_t b = 0; b < n; ++b) {
        double highest = -INF;
        for (int64_t a = 0; a < n; ++a) {
            const double x = before[a] + transitions(a, b);
            highest = x > highest ? x : highest;
        }
        after[b] = highest;
    }
}

}  // namespace chain

// The first size[0] positions. dims are the number of tags, the step of the transitions from one
// position to the next (0 where they are tied), and where start and end scores begin in `extra`.
inline int64_t best_chain(Span<const double> scores, Span<const double> extra,
                          Span<const int64_t> dims, Span<const int64_t> size, Span<double> work,
                          Span<int64_t>, Span<int32_t> parts, Span<int32_t> extra_parts) {
    using namespace chain;
    const int64_t n = size[0], n_tags = dims[0], stride = dims[1], start = dims[2], end = dims[3];
    if (n == 0) return 0;
    const Matrix<const double> unary(scores.first(n * n_tags).data(), n, n_tags);
    const auto transitions = [&](int64_t i) {  // from position i to the next
        const int64_t first = i * stride;
        return Matrix<const double>(extra.slice(first, first + n_tags * n_tags).data(), n_tags,
                                    n_tags);
    };
    // value[i, b]: score of the best way to tag the positions up to i, the last of them with b
    const Matrix<double> value(work.first(n * n_tags).data(), n, n_tags);
    for (int64_t b = 0; b < n_tags; ++b) value(0, b) = unary(0, b) + extra[start + b];
    for (int64_t i = 1; i < n; ++i) {
        const Span<double> after = value[i];
        if (n_tags < FEW_TAGS) {
            step_few(value[i - 1], transitions(i - 1), after);
        } else {
            step(value[i - 1], transitions(i - 1), after);
        }
        for (int64_t b = 0; b < n_tags; ++b) after[b] += unary(i, b);
    }
    int64_t best = -1;
    double highest = -INF;
    for (int64_t b = 0; b < n_tags; ++b) {
        const double x = value(n - 1, b) + extra[end + b];
        if (x > highest) {
            best = b;
            highest = x;
        }
    }
    if (best < 0) return -1;
    parts[n - 1] = static_cast<int32_t>((n - 1) * n_tags + best);
    extra_parts[n] = static_cast<int32_t>(end + best);
    // Only the best path needs to know where it came from.
    for (int64_t i = n - 2; i >= 0; --i) {
        const Matrix<const double> matrix = transitions(i);
        int64_t previous = 0;
        highest = -INF;
        for (int64_t a = 0; a < n_tags; ++a) {
            const double x = value(i, a) + matrix(a, best);
            if (x > highest) {
                previous = a;
                highest = x;
            }
        }
        parts[i] = static_cast<int32_t>(i * n_tags + previous);
        extra_parts[i] = static_cast<int32_t>(i * stride + previous * n_tags + best);
        best = previous;
    }
    extra_parts[n - 1] = static_cast<int32_t>(start + best);
    return n;
}

namespace chain {

// Which a continues best from its first history not taken, if steps[first + a·stride] is added; −1
// if nothing possible is left.
inline int64_t next_best(Matrix<const double> value, Span<const int64_t> taken,
                         Span<const double> steps, int64_t first, int64_t stride, double& highest) {
    int64_t best = -1;
    highest = -INF;
    for (int64_t a = 0; a < value.rows(); ++a) {
        if (taken[a] >= value.columns()) continue;
        const double x = value(a, taken[a]) + steps[first + a * stride];
        if (x > highest) {
            best = a;
            highest = x;
        }
    }
    return best;
}

}  // namespace chain

// The best tags (B, k, n) and their scores (B, k), best first, padded with −1 and −inf before.
// Every tag of a position keeps its k best histories, merged from the sorted ones of its
// predecessors.
inline void k_best_chains(Matrix<const double> scores, Matrix<const double> extra,
                          Span<const int64_t> dims, Matrix<const int64_t> sizes, Cube<int64_t> tags,
                          Matrix<double> totals) {
    using namespace chain;
    const int64_t n_tags = dims[0], stride = dims[1], start = dims[2], end = dims[3];
    const int64_t k = tags.rows(), longest = tags.columns();
    Table<double> even(n_tags, k), odd(n_tags, k);
    const auto value = [&](int64_t i) -> Matrix<double> {
        return i % 2 ? Matrix<double>(odd) : Matrix<double>(even);
    };
    // came_from[i n_tags + b, r] = a k + rank: the history that the r-th best one of b continues
    Table<int64_t> came_from(longest * n_tags, k);
    Array<int64_t> taken(n_tags);
    double highest;
    for (int64_t instance = 0; instance < scores.rows(); ++instance) {
        const Span<const double> more = extra[extra.rows() > 1 ? instance : 0];
        const int64_t n = sizes(instance, 0);
        if (n == 0) {
            totals(instance, 0) = 0.0;
            continue;
        }
        even.fill(-INF);
        for (int64_t b = 0; b < n_tags; ++b) even(b, 0) = scores(instance, b) + more[start + b];
        for (int64_t i = 1; i < n; ++i) {
            for (int64_t b = 0; b < n_tags; ++b) {
                taken.fill(0);
                for (int64_t r = 0; r < k; ++r) {
                    const int64_t first = (i - 1) * stride + b;
                    const int64_t a = next_best(value(i - 1), taken, more, first, n_tags, highest);
                    value(i)(b, r) = highest + scores(instance, i * n_tags + b);
                    if (a >= 0) came_from(i * n_tags + b, r) = a * k + taken[a]++;
                }
            }
        }
        taken.fill(0);
        for (int64_t r = 0; r < k; ++r) {
            int64_t a = next_best(value(n - 1), taken, more, end, 1, highest);
            if (a < 0) break;
            totals(instance, r) = highest;
            int64_t rank = taken[a]++;
            for (int64_t i = n - 1; i > 0; --i) {
                tags(instance, r, i) = a;
                const int64_t history = came_from(i * n_tags + a, rank);
                a = history / k;
                rank = history % k;
            }
            tags(instance, r, 0) = a;
        }
    }
}

}  // namespace didyma
