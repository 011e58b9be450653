// What turns the scores of a query into its most violating ranking.
#pragma once

#include "array.hpp"

namespace didyma {

// The ranking ŷ of a query that maximises Δ(ŷ) + Σ coefficient·score. Queries may be answered on
// several threads at once, each query by one of them.
class RankingOracle {
  public:
    virtual ~RankingOracle() = default;

    // Writes one coefficient per row of Ψ(ŷ) − Ψ* of query i, its rows by descending relevance;
    // returns the loss Δ(ŷ).
    virtual double answer(int64_t i, Span<const double> scores, Span<double> coef) const = 0;
};

// The same for rows as they are stored; by_grade[r] is where the r-th row by descending relevance
// stands among them.
inline double answer_stored(const RankingOracle& oracle, int64_t i, Span<const int32_t> by_grade,
                            Span<const double> scores, Span<double> coef) {
    const int64_t n = by_grade.size();
    Array<double> graded(n), answered(n);
    for (int64_t r = 0; r < n; ++r) graded[r] = scores[by_grade[r]];
    const double loss = oracle.answer(i, graded, answered);
    for (int64_t r = 0; r < n; ++r) coef[by_grade[r]] = answered[r];
    return loss;
}

}  // namespace didyma
