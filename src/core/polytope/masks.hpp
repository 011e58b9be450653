// Scores that forbid a part: -inf, and numbers so low that they must be meant as masks.
#pragma once

#include <tuple>

#include "array.hpp"

namespace didyma::polytope {

// Highest (-inf if none) and lowest (inf) finite value and sum of the positive ones, per row.
inline std::tuple<Array<double>, Array<double>, Array<double>> extent(Matrix<const double> values) {
    Array<double> highest(values.rows()), lowest(values.rows()), positive(values.rows());
    for (int64_t b = 0; b < values.rows(); ++b) {
        double high = -INF, low = INF, total = 0.0;
        for (const double value : values[b]) {
            high = value > high ? value : high;
            low = -INF < value && value < low ? value : low;
            total += value > 0.0 ? value : 0.0;
        }
        highest[b] = high;
        lowest[b] = low;
        positive[b] = total;
    }
    return {std::move(highest), std::move(lowest), std::move(positive)};
}

// Whether some row has a finite value below −factor · max(1, the highest one), among its scores and
// additional ones together.
inline bool has_masks(Matrix<const double> scores, Matrix<const double> extra, double factor) {
    for (int64_t b = 0; b < scores.rows(); ++b) {
        double high = 1.0, low = INF;
        for (const Span<const double> row : {scores[b], extra[extra.rows() > 1 ? b : 0]}) {
            for (const double value : row) {
                high = value > high ? value : high;
                low = -INF < value && value < low ? value : low;
            }
        }
        if (low < -factor * high) return true;
    }
    return false;
}

// The scores with -inf for those that are not used or below -largest, or nothing if they have that
// already; and the first place of a used score that is no number up to `largest`, or -1. Flags
// repeat: those of one instance serve a batch, and no flags mean that all are used.
inline std::tuple<Array<double>, int64_t> forbid(Span<const double> scores, Span<const bool> used,
                                                 double largest) {
    const int64_t period = used.size() > 0 ? used.size() : scores.size();
    bool change = false;
    for (int64_t first = 0; first < scores.size(); first += period) {
        for (int64_t j = 0; j < period; ++j) {
            const double score = scores[first + j];
            const bool counts = used.size() == 0 || used[j];
            if (counts && !(score <= largest)) return {Array<double>(0), first + j};
            change = change || (score != -INF && !(counts && score >= -largest));
        }
    }
    if (!change) return {Array<double>(0), -1};
    Array<double> out(scores.size());
    for (int64_t first = 0; first < scores.size(); first += period) {
        for (int64_t j = 0; j < period; ++j) {
            const double score = scores[first + j];
            out[first + j] = (used.size() == 0 || used[j]) && score >= -largest ? score : -INF;
        }
    }
    return {std::move(out), -1};
}

}  // namespace didyma::polytope
