// Passes of block-coordinate Frank-Wolfe over examples.
#pragma once

#include "learning/cut.hpp"
#include "learning/planes.hpp"

namespace didyma {

// One pass with the oracle: cut, remember, optimise, while the example's rows are in cache. Writes
// the gaps of the examples, scaled; returns the increase of the dual.
inline double sweep(const CutOracle& oracle, Span<const int64_t> order, const Planes& planes,
                    Span<const double> scales, Span<double> gaps, Span<double> w) {
    Array<double> direction(w.size()), slack(planes.slots()), moves(planes.slots());
    double increase = 0.0;
    for (int64_t t = 0; t < order.size(); ++t) {
        const int64_t i = order[t];
        const double loss = oracle.cut(w, i, successor(order, t), direction);
        planes.insert(i, direction, loss);
        const auto [gap, gain] = planes.optimise(i, scales[i], w, slack, moves);
        gaps[i] = scales[i] * gap;
        increase += gain;
    }
    return increase;
}

// One pass over remembered planes only: no oracle is called and no row is read. Returns the sum of
// the examples' gaps, each when its turn came, and the increase of the dual.
inline std::tuple<double, double> sweep_planes(Span<const int64_t> order, const Planes& planes,
                                               Span<const double> scales, Span<double> w) {
    Array<double> slack(planes.slots()), moves(planes.slots());
    double total = 0.0, increase = 0.0;
    for (const int64_t i : order) {
        const auto [gap, gain] = planes.optimise(i, scales[i], w, slack, moves);
        total += scales[i] * gap;
        increase += gain;
    }
    return {total, increase};
}

}  // namespace didyma
