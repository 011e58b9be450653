// Largest and smallest numbers, in strands that a vector unit compares side by side: the value does
// not depend on the order.
#pragma once

#include <limits>

#include "sums.hpp"

namespace didyma {

constexpr double INF = std::numeric_limits<double>::infinity();

// −∞ of none.
inline double largest(Span<const double> values) {
    double best[STRANDS];
    std::fill(best, best + STRANDS, -INF);
    const double* x = values.data();
    int64_t i = 0;
    for (; i + STRANDS <= values.size(); i += STRANDS) {
        for (int64_t s = 0; s < STRANDS; ++s) best[s] = x[i + s] > best[s] ? x[i + s] : best[s];
    }
    double most = -INF;
    for (const double value : best) most = value > most ? value : most;
    for (; i < values.size(); ++i) most = x[i] > most ? x[i] : most;
    return most;
}

// ∞ of none.
inline double smallest(Span<const double> values) {
    double best[STRANDS];
    std::fill(best, best + STRANDS, INF);
    const double* x = values.data();
    int64_t i = 0;
    for (; i + STRANDS <= values.size(); i += STRANDS) {
        for (int64_t s = 0; s < STRANDS; ++s) best[s] = x[i + s] < best[s] ? x[i + s] : best[s];
    }
    double least = INF;
    for (const double value : best) least = value < least ? value : least;
    for (; i < values.size(); ++i) least = x[i] < least ? x[i] : least;
    return least;
}

}  // namespace didyma
