// How far scores reach, when -inf is left out of account.
#pragma once

#include <limits>
#include <tuple>

#include "array.hpp"

namespace didyma::polytope {

// Highest (-inf if none) and lowest (inf) finite value and sum of the positive ones, per row.
inline std::tuple<Array<double>, Array<double>, Array<double>> extent(Matrix<const double> values) {
    constexpr double INF = std::numeric_limits<double>::infinity();
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

}  // namespace didyma::polytope
