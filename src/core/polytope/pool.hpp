// A polytope whose columns are all at hand, as a Gram matrix.
#pragma once

#include "polytope/simplex_qp.hpp"

namespace didyma::polytope {

// Columns with G = M'M; a point u stands for the inner products of all columns with it, G y.
class Pool final : public Polytope {
  public:
    Pool(Matrix<const double> gram, Span<const double> theta)
        : gram_(gram), theta_(theta), noise_(theta.size(), 0.0) {}

    int64_t argmax(Span<const double> u, int64_t) override {
        int64_t best = 0;
        for (int64_t i = 0; i < theta_.size(); ++i) {
            if (theta_[i] - u[i] > theta_[best] - u[best]) best = i;
        }
        return best;
    }
    double gram(int64_t slot, Span<const int64_t> active, Span<double> out) override {
        for (int64_t i = 0; i < active.size(); ++i) out[i] = gram_(slot, active[i]);
        return gram_(slot, slot);
    }
    double combine(Span<const int64_t> active, Span<const double> y, Span<double> u,
                   Span<double> products) override {
        u.fill(0.0);
        for (int64_t i = 0; i < y.size(); ++i) axpy(y[i], gram_[active[i]], u);
        double norm = 0.0;
        for (int64_t i = 0; i < y.size(); ++i) {
            products[i] = u[active[i]];
            norm += y[i] * products[i];
        }
        return norm;
    }
    Span<const double> theta() const override { return theta_; }
    Span<const double> noise() const override { return noise_; }

  private:
    Matrix<const double> gram_;
    Span<const double> theta_;
    Array<double> noise_;
};

}  // namespace didyma::polytope
