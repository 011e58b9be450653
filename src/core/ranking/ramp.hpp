// The ramp: a ranking stays in the place of the perfect one for a round.
#pragma once

#include "ranking/queries.hpp"

namespace didyma {

// The answers of a hinge, against the coefficients `predicted` of all rows, query by query.
class RampOracle : public RankingOracle {
  public:
    RampOracle(const RankingOracle& hinge, Span<const int64_t> starts, Span<const double> predicted)
        : hinge_(hinge), starts_(starts), predicted_(predicted) {}

    double answer(int64_t i, Span<const double> scores, Span<double> coef) const override {
        const double loss = hinge_.answer(i, scores, coef);
        for (int64_t r = 0; r < coef.size(); ++r) coef[r] -= predicted_[starts_[i] + r];
        return loss;
    }

  private:
    const RankingOracle& hinge_;
    Span<const int64_t> starts_;
    Span<const double> predicted_;
};

}  // namespace didyma
