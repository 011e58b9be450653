// Boosting over pairs of candidates that differ in a few binary features.
//
// Pair p has the differences `signs` (±1) at `features`, entries starts[p] to starts[p + 1] - 1,
// and the weight S_p e^{-margin}. A feature's `plus` and `minus` are the weights of the pairs in
// which it speaks for and against the better candidate.
#pragma once

#include <cmath>
#include <tuple>

#include "array.hpp"

namespace didyma::nbest {

// Differences of pairs by feature, or of features by pair: where each begins, the others, signs.
using Differences = std::tuple<Span<const int64_t>, Span<const int32_t>, Span<const int8_t>>;

// Calls found(feature, sign) for each feature that one of two sorted runs of features has and the
// other has not; the sign is 1 where it is the first.
template <class Found>
void compare(Span<const int32_t> first, Span<const int32_t> second, Found found) {
    int64_t i = 0, j = 0;
    while (i < first.size() || j < second.size()) {
        if (j == second.size() || (i < first.size() && first[i] < second[j])) {
            found(first[i++], int8_t{1});
        } else if (i == first.size() || second[j] < first[i]) {
            found(second[j++], int8_t{-1});
        } else {
            ++i;
            ++j;
        }
    }
}

// Features that one row of each pair has and the other has not: starts, features and signs, which
// are 1 where `better` has it. Indices are sorted within each row.
inline std::tuple<Array<int64_t>, Array<int32_t>, Array<int8_t>> differences(
    Span<const int64_t> indptr, Span<const int32_t> indices, Span<const int64_t> better,
    Span<const int64_t> worse) {
    auto row = [&](int64_t r) { return indices.slice(indptr[r], indptr[r + 1]); };
    const int64_t n = better.size();
    Array<int64_t> starts(n + 1, 0);
    for (int64_t p = 0; p < n; ++p) {
        int64_t count = 0;
        compare(row(better[p]), row(worse[p]), [&](int32_t, int8_t) { ++count; });
        starts[p + 1] = starts[p] + count;
    }
    Array<int32_t> features(starts[n]);
    Array<int8_t> signs(starts[n]);
    int64_t t = 0;
    for (int64_t p = 0; p < n; ++p) {
        compare(row(better[p]), row(worse[p]), [&](int32_t feature, int8_t sign) {
            features[t] = feature;
            signs[t++] = sign;
        });
    }
    return {std::move(starts), std::move(features), std::move(signs)};
}

// Sums the weights of all pairs into `plus` and `minus`.
inline void tally(const Differences& pairs, Span<const double> weight, Span<double> plus,
                  Span<double> minus) {
    const auto& [starts, features, signs] = pairs;
    plus.fill(0.0);
    minus.fill(0.0);
    for (int64_t p = 0; p < weight.size(); ++p) {
        for (int64_t t = starts[p]; t < starts[p + 1]; ++t) {
            (signs[t] > 0 ? plus : minus)[features[t]] += weight[p];
        }
    }
}

// Minimises plus e^{-x} + minus e^x + ridge (a + x)², with ridge > 0. The third derivative is at
// most the second, so Newton's steps of log(1 + |step|) never increase the objective and still
// converge quadratically.
inline double ridge_step(double plus, double minus, double a, double ridge) {
    constexpr double TOLERANCE = 1e-12;
    double x = 0.0;
    for (int n = 0; n < 200; ++n) {
        const double up = std::exp(x);
        const double slope = minus * up - plus / up + 2.0 * ridge * (a + x);
        const double step = slope / (minus * up + plus / up + 2.0 * ridge);
        x -= std::copysign(std::log1p(std::abs(step)), step);
        if (std::abs(step) <= TOLERANCE * (1.0 + std::abs(x))) break;
    }
    return x;
}

inline double square(double x) { return x * x; }

// How much the best step of one weight lowers the exponential loss alone.
inline double gain_without_ridge(double plus, double minus) {
    return square(std::sqrt(plus) - std::sqrt(minus));
}

// How much the best step of one weight lowers the objective.
inline double exact_gain(double plus, double minus, double a, double ridge) {
    if (ridge == 0.0) return gain_without_ridge(plus, minus);
    const double x = ridge_step(plus, minus, a, ridge);
    return -(plus * std::expm1(-x) + minus * std::expm1(x) + ridge * x * (2.0 * a + x));
}

// At least exact_gain, and equal to it without a ridge, but in closed form: the gain is at most
// that of the loss alone and all of the ridge; and it is at most slope² / (2 × the least curvature
// on the way down).
inline double bound_gain(double plus, double minus, double a, double ridge) {
    const double alone = gain_without_ridge(plus, minus);
    if (ridge == 0.0) return alone;
    const double slope = minus - plus + 2.0 * ridge * a;
    const double curvature = (slope < 0.0 ? minus : plus) + 2.0 * ridge;
    return std::min(alone + ridge * a * a, 0.5 * slope * slope / curvature);
}

// Bounds of the gains of all features; ridge 0 is the exponential loss alone.
inline void bounds(Span<const double> plus, Span<const double> minus, Span<const double> coef,
                   double ridge, Span<double> gain, Span<bool> exact) {
    for (int64_t k = 0; k < gain.size(); ++k) {
        gain[k] = bound_gain(plus[k], minus[k], coef[k], ridge);
        exact[k] = ridge == 0.0;
    }
}

// The first feature of largest gain; `gain` is made `exact` where its bound competes.
inline int64_t choose(Span<const double> plus, Span<const double> minus, Span<const double> coef,
                      double ridge, Span<double> gain, Span<bool> exact) {
    int64_t best = 0;
    double highest = -1.0;
    for (int64_t k = 0; k < gain.size(); ++k) {
        if (gain[k] > highest && !exact[k]) {
            gain[k] = exact_gain(plus[k], minus[k], coef[k], ridge);
            exact[k] = true;
        }
        if (gain[k] > highest) {
            best = k;
            highest = gain[k];
        }
    }
    return best;
}

// Adds `step` to the weight of feature k: only the pairs that contain it, and their features,
// change. `pairs` are differences by pair, `columns` by feature; `seen` is all false before and
// after.
inline void move(int64_t k, double step, const Differences& columns, const Differences& pairs,
                 Span<double> weight, Span<double> plus, Span<double> minus, Span<double> coef,
                 double ridge, Span<double> gain, Span<bool> exact, Span<bool> seen) {
    const auto& [starts, features, signs] = pairs;
    const auto& [column_starts, column_pairs, column_signs] = columns;
    auto renew = [&](int64_t f) {
        seen[f] = false;
        gain[f] = bound_gain(plus[f], minus[f], coef[f], ridge);
        exact[f] = ridge == 0.0;
    };
    coef[k] += step;
    const int64_t first = column_starts[k], last = column_starts[k + 1];
    const double up = std::exp(step), down = std::exp(-step);
    for (int64_t t = first; t < last; ++t) {
        const int64_t p = column_pairs[t];
        const double before = weight[p];
        weight[p] *= column_signs[t] > 0 ? down : up;
        const double change = weight[p] - before;
        for (int64_t u = starts[p]; u < starts[p + 1]; ++u) {
            const int64_t f = features[u];
            double& sum = (signs[u] > 0 ? plus : minus)[f];
            sum = std::max(0.0, sum + change);  // what should be zero may miss it by rounding
            seen[f] = true;
        }
    }
    renew(k);
    for (int64_t t = first; t < last; ++t) {
        const int64_t p = column_pairs[t];
        for (int64_t u = starts[p]; u < starts[p + 1]; ++u) {
            if (seen[features[u]]) renew(features[u]);
        }
    }
}

// Puts the loss of the first candidate of highest value of each of some lists into `chosen`.
inline void choose_again(Span<const int64_t> lists, Span<const int64_t> starts,
                         Span<const double> values, Span<const double> losses,
                         Span<double> chosen) {
    int64_t last = -1;
    for (const int64_t i : lists) {
        if (i == last) continue;
        last = i;
        int64_t best = starts[i];
        for (int64_t row = starts[i] + 1; row < starts[i + 1]; ++row) {
            if (values[row] > values[best]) best = row;
        }
        chosen[i] = losses[best];
    }
}

}  // namespace didyma::nbest
