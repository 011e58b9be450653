// Choice: one of a few options; SparseMAP over it is the projection onto the simplex.
#pragma once

#include <algorithm>
#include <vector>

#include "array.hpp"
#include "polytope/solved.hpp"

namespace didyma {

// The first best of size[0] options, if there are any.
inline int64_t best_choice(Span<const double> scores, Span<const double>, Span<const int64_t>,
                           Span<const int64_t> size, Span<double>, Span<int64_t>,
                           Span<int32_t> parts, Span<int32_t>) {
    int64_t best = -1;
    double highest = -INF;
    for (int64_t i = 0; i < size[0]; ++i) {
        if (scores[i] > highest) {
            best = i;
            highest = scores[i];
        }
    }
    parts[0] = static_cast<int32_t>(best);
    if (size[0] == 0) return 0;
    return best >= 0 ? 1 : -1;
}

// Projects each row's first sizes[b, 0] scores onto the simplex by sorting:
//
//     u_i = max(s_i − τ, 0),   Σ u_i = 1
//
// (Held, Wolfe & Crowder 1974). Only scores within 1 of the highest can have weight, so that no
// others need to be sorted. Everything is relative to the highest score: large ones do not cancel.
//
// No option at all is an output without parts, -1 of weight 1.
inline polytope::Solved sparsemax(Matrix<const double> scores, Matrix<const int64_t> sizes) {
    polytope::Solved solved(scores.rows(), scores.columns());
    solved.marginals.fill(0.0);
    solved.iterations.fill(1);
    std::vector<int32_t> options;
    std::vector<double> weights;
    std::vector<int64_t> near;
    for (int64_t b = 0; b < scores.rows(); ++b) {
        const Span<const double> row = scores[b];
        const int64_t n = sizes(b, 0);
        double highest = -INF;
        for (int64_t i = 0; i < n; ++i) highest = row[i] > highest ? row[i] : highest;
        near.clear();
        if (highest > -INF) {
            for (int64_t i = 0; i < n; ++i) {
                if (row[i] - highest > -1.0) near.push_back(i);
            }
            std::sort(near.begin(), near.end(), [row](int64_t i, int64_t j) {
                return row[i] > row[j] || (row[i] == row[j] && i < j);
            });
        }
        int64_t count = 0;
        double total = 0.0, threshold = -1.0;
        for (const int64_t i : near) {
            const double z = row[i] - highest;
            const double raised = (total + z - 1.0) / static_cast<double>(count + 1);
            if (z <= raised) break;
            total += z;
            threshold = raised;
            ++count;
        }
        double level = 0.0, best = -INF;
        for (int64_t k = 0; k < static_cast<int64_t>(near.size()); ++k) {
            const double z = row[near[k]] - highest;
            const double weight = k < count ? z - threshold : 0.0;
            level += weight * (z - weight);
            best = std::max(best, z - weight);
            if (k < count) {
                solved.marginals(b, near[k]) = weight;
                options.push_back(static_cast<int32_t>(near[k]));
                weights.push_back(weight);
            }
        }
        if (n == 0) {
            options.push_back(-1);
            weights.push_back(1.0);
            count = 1;
        }
        solved.gaps[b] = near.empty() ? 0.0 : std::max(best - level, 0.0);
        solved.statuses[b] = count > 0 ? polytope::OPTIMAL : polytope::IMPOSSIBLE;
        solved.offsets[b + 1] = solved.offsets[b] + count;
    }
    const auto n = static_cast<int64_t>(options.size());
    solved.parts = Table<int32_t>(n, 1);
    solved.extra_parts = Table<int32_t>(n, 0);
    solved.weights = Array<double>(n);
    std::copy(options.begin(), options.end(), solved.parts.flat().begin());
    std::copy(weights.begin(), weights.end(), solved.weights.begin());
    return solved;
}

// J p[b] of each instance, which takes the mean over the support from the entries in the support.
inline Table<double> sparsemax_derivative(Span<const int64_t> offsets,
                                          Matrix<const int32_t> options, Matrix<const double> p) {
    Table<double> out(p.rows(), p.columns(), 0.0);
    for (int64_t b = 0; b + 1 < offsets.size(); ++b) {
        double mean = 0.0;
        for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
            if (options(i, 0) >= 0) mean += p(b, options(i, 0));
        }
        mean /= static_cast<double>(std::max<int64_t>(offsets[b + 1] - offsets[b], 1));
        for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
            if (options(i, 0) >= 0) out(b, options(i, 0)) += p(b, options(i, 0)) - mean;
        }
    }
    return out;
}

}  // namespace didyma
