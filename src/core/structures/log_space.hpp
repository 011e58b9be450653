// Sums of numbers that are given as logarithms.
#pragma once

#include <cmath>

#include "array.hpp"

namespace didyma {

constexpr double LOG_ZERO = -INF;

// log Σ exp(term(i)) over i below n.
template <class Term>
double log_sum(int64_t n, Term term) {
    double highest = LOG_ZERO;
    for (int64_t i = 0; i < n; ++i) {
        const double value = term(i);
        highest = value > highest ? value : highest;
    }
    if (highest == LOG_ZERO) return highest;
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) total += std::exp(term(i) - highest);
    return highest + std::log(total);
}

// log(exp(a) + exp(b)).
inline double log_plus(double a, double b) {
    const double high = a > b ? a : b, low = a > b ? b : a;
    if (low == LOG_ZERO || low - high < -40.0) return high;  // too small to be seen
    return high + std::log1p(std::exp(low - high));
}

}  // namespace didyma
