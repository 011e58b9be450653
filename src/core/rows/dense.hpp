// Dense rows, several at a time so that the other vector is read less often.
#pragma once

#include "rows/rows.hpp"
#include "sums.hpp"

namespace didyma {

#if defined(__AVX2__) || defined(__aarch64__)
constexpr int64_t TOGETHER = 4;  // rows whose partial sums fit into registers
#else
constexpr int64_t TOGETHER = 2;
#endif

// out[r] = x[r] · w over the first n of `Count` rows, each with the bits of `dot`.
template <int64_t Count, class T>
void dot_together(const T* const* x, const double* w, int64_t n, double* out) {
    double partial[Count][STRANDS] = {};
    int64_t f = 0;
    for (; f + STRANDS <= n; f += STRANDS) {
        for (int64_t r = 0; r < Count; ++r) {
            for (int64_t s = 0; s < STRANDS; ++s) {
                partial[r][s] += static_cast<double>(x[r][f + s]) * w[f + s];
            }
        }
    }
    for (int64_t r = 0; r < Count; ++r) {
        for (int64_t width = STRANDS / 2; width > 0; width /= 2) {
            for (int64_t s = 0; s < width; ++s) partial[r][s] += partial[r][s + width];
        }
        double total = partial[r][0];
        for (int64_t rest = f; rest < n; ++rest) total += static_cast<double>(x[r][rest]) * w[rest];
        out[r] = total;
    }
}

template <class T>
class DenseRows : public Rows {
  public:
    explicit DenseRows(Matrix<const T> X) : X_(X) {}
    int64_t n_features() const override { return X_.columns(); }

    void score(Span<const int64_t> rows, Span<const double> w, Span<double> out) const override {
        check_range(0, X_.columns(), w.size());
        const int64_t n = rows.size();
        int64_t r = 0;
        for (; r + TOGETHER <= n; r += TOGETHER) {
            const T* x[TOGETHER];
            for (int64_t t = 0; t < TOGETHER; ++t) x[t] = X_[rows[r + t]].data();
            dot_together<TOGETHER>(x, w.data(), X_.columns(), &out[r]);
        }
        for (; r < n; ++r) out[r] = dot(X_[rows[r]], w, X_.columns());
    }

    void combine(Span<const int64_t> rows, Span<const double> coef,
                 Span<double> out) const override {
        check_range(0, X_.columns(), out.size());
        constexpr int64_t FOUR = 4;  // which are added up before they are added to `out`
        const T* x[FOUR];
        double c[FOUR];
        int64_t pending = 0;
        for (int64_t r = 0; r < rows.size(); ++r) {
            if (coef[r] == 0.0) continue;
            x[pending] = X_[rows[r]].data();
            c[pending++] = coef[r];
            if (pending == FOUR) {
                add_four(c, x, out.data());
                pending = 0;
            }
        }
        for (int64_t p = 0; p < pending; ++p) {
            axpy(c[p], Span<const T>(x[p], X_.columns()), out);
        }
    }

  private:
    void add_four(const double* c, const T* const* x, double* out) const {
        const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
        const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
        for (int64_t f = 0; f < X_.columns(); ++f) {
            out[f] += c0 * static_cast<double>(x0[f]) + c1 * static_cast<double>(x1[f]) +
                      c2 * static_cast<double>(x2[f]) + c3 * static_cast<double>(x3[f]);
        }
    }

    Matrix<const T> X_;
};

}  // namespace didyma
