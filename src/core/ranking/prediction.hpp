// The ranking ŷ that scores predict: an oracle that knows no loss.
//
// It maximises Ψ·scores. All orders of equal scores do, and their mean is taken: it favours no
// order of the input, and at scores of zero no ranking.
#pragma once

#include <cmath>
#include <limits>

#include "ranking/queries.hpp"

namespace didyma {

constexpr double TIE = 1e-9;    // scores that are closer, relative to their range, are equal
constexpr double ROUNDING = 8;  // units in the last place of a score that say nothing

// The distance up to which scores of a query are equal. What all of them have in common does not
// count, but no score is finer than its digits.
inline double tie_width(double lowest, double highest) {
    const double largest = std::max(std::abs(lowest), std::abs(highest));
    return std::max(TIE * (highest - lowest),
                    ROUNDING * std::numeric_limits<double>::epsilon() * largest);
}

// Calls f(first, last) for each run of ranks of equal scores.
template <class F>
void for_each_run(const SortedQuery& query, F f) {
    const Span<const double> scores = query.scores;
    const Span<const int32_t> order = query.order;
    const int64_t n = order.size();
    const double closest = tie_width(scores[order[n - 1]], scores[order[0]]);
    for (int64_t first = 0, t = 1; t <= n; ++t) {
        if (t == n || scores[order[t - 1]] - scores[order[t]] > closest) {
            f(first, t);
            first = t;
        }
    }
}

// Pairwise map of any number of levels: (those of other levels below − above) / pairs.
class PairwisePrediction : public QueryOracle {
  public:
    double answer(const SortedQuery& query, Span<double> coef) const override {
        const Span<const int64_t> counts = query.counts;
        const int64_t n = query.scores.size(), n_levels = counts.size();
        Array<int32_t> level_of(n);
        Array<double> perfect(n_levels);
        double n_pairs = 0.0;
        for (int64_t level = 0, row = 0; level < n_levels; ++level) {
            const int64_t below = n - row - counts[level];
            n_pairs += static_cast<double>(counts[level]) * static_cast<double>(below);
            perfect[level] = static_cast<double>(below - row);
            for (const int64_t last = row + counts[level]; row < last; ++row) {
                level_of[row] = static_cast<int32_t>(level);
            }
        }
        Array<int64_t> placed(n_levels, 0);  // of each level, above this run
        Array<int64_t> tied(n_levels, 0);
        for_each_run(query, [&](int64_t first, int64_t last) {
            const Span<const int32_t> run = query.order.slice(first, last);
            for (const int32_t row : run) ++tied[level_of[row]];
            for (const int32_t row : run) {
                const int64_t level = level_of[row], others = n - counts[level];
                const int64_t above = first - placed[level], equal = last - first - tied[level];
                const auto balance = static_cast<double>(others - 2 * above - equal);
                coef[row] = (balance - perfect[level]) / n_pairs;
            }
            for (const int32_t row : run) {
                placed[level_of[row]] += tied[level_of[row]];
                tied[level_of[row]] = 0;
            }
        });
        return 0.0;
    }
};

// Positional maps: the weight of the rank, its mean over equal scores.
template <class Map>
class PositionalPrediction : public QueryOracle {
  public:
    explicit PositionalPrediction(Map map) : map_(map) {}

    double answer(const SortedQuery& query, Span<double> coef) const override {
        const int64_t n = query.scores.size(), P = query.counts[0];
        const auto weights = map_.weights(P, n - P);
        for (int64_t level = 0, row = 0; level < query.counts.size(); ++level) {
            const int64_t count = query.counts[level];
            double gold = 0.0;
            for (int64_t rank = row; rank < row + count; ++rank) gold += weights.at(rank);
            for (const int64_t last = row + count; row < last; ++row) {
                coef[row] = -gold / static_cast<double>(count);
            }
        }
        for_each_run(query, [&](int64_t first, int64_t last) {
            double mean = 0.0;
            for (int64_t rank = first; rank < last; ++rank) {
                mean += weights.at(rank) / static_cast<double>(last - first);
            }
            for (const int32_t row : query.order.slice(first, last)) coef[row] += mean;
        });
        return 0.0;
    }

  private:
    Map map_;
};

}  // namespace didyma
