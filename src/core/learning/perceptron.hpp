// An epoch of the averaged structured perceptron.
#pragma once

#include "learning/cut.hpp"
#include "sums.hpp"

namespace didyma {

// Visits in this order, each with its step; returns the weighted sum of losses. `time` is the sum
// of all steps before, and `drift` collects time · change of w, so that w - drift / time is the
// mean of all iterates.
inline double perceptron_epoch(const CutOracle& oracle, Span<const int64_t> order,
                               Span<const double> steps, Span<double> w, Span<double> drift,
                               double time) {
    Array<double> direction(w.size());
    double total = 0.0;
    for (int64_t t = 0; t < order.size(); ++t) {
        const double loss = oracle.cut(w, order[t], successor(order, t), direction);
        if (loss > 0.0) {
            total += steps[t] * loss;
            axpy(-steps[t], Span<const double>(direction), w);
            axpy(-(time * steps[t]), Span<const double>(direction), drift);
        }
        time += steps[t];
    }
    return total;
}

}  // namespace didyma
