// Largest and smallest numbers, in strands that a vector unit compares side by side: the value does
// not depend on the order.
#pragma once

#include "sums.hpp"

namespace didyma {

// The first of all numbers in the order of `before`; `none` of an empty run.
template <class Before>
double first_of(Span<const double> values, double none, Before before) {
    double best[STRANDS];
    std::fill(best, best + STRANDS, none);
    const double* x = values.data();
    int64_t i = 0;
    for (; i + STRANDS <= values.size(); i += STRANDS) {
        for (int64_t s = 0; s < STRANDS; ++s)
            best[s] = before(x[i + s], best[s]) ? x[i + s] : best[s];
    }
    double first = none;
    for (const double value : best) first = before(value, first) ? value : first;
    for (; i < values.size(); ++i) first = before(x[i], first) ? x[i] : first;
    return first;
}

// −∞ of none.
inline double largest(Span<const double> values) {
    return first_of(values, -INF, [](double a, double b) { return a > b; });
}

// ∞ of none.
inline double smallest(Span<const double> values) {
    return first_of(values, INF, [](double a, double b) { return a < b; });
}

}  // namespace didyma
