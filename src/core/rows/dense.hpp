// Dense rows.
#pragma once

#include "rows/rows.hpp"
#include "sums.hpp"

namespace didyma {

template <class T>
class DenseRows : public Rows {
  public:
    explicit DenseRows(Matrix<const T> X) : X_(X) {}
    int64_t n_features() const override { return X_.columns(); }

    // One row after the other: memory is read fastest in one stream. In single precision it is idle
    // while numbers are converted and the oracle works, so that the next rows are fetched
    // meanwhile.
    void score(Span<const int64_t> rows, Span<const double> w, Span<double> out,
               Span<const int64_t> soon) const override {
        for (int64_t r = 0; r < rows.size(); ++r) {
            if (std::is_same_v<T, float> && r < soon.size()) prefetch(X_[soon[r]]);
            out[r] = dot(X_[rows[r]], w, X_.columns());
        }
    }

    // Four rows at a time, so that `out` is touched less often.
    void combine(Span<const int64_t> rows, Span<const double> coef,
                 Span<double> out) const override {
        check_range(0, X_.columns(), out.size());
        constexpr int64_t FOUR = 4;
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
    // Brings a row into the second cache.
    static void prefetch(Span<const T> row) {
#if defined(__GNUC__)
        constexpr int64_t LINE = 64 / sizeof(T);
        for (int64_t f = 0; f < row.size(); f += LINE) __builtin_prefetch(row.data() + f, 0, 2);
#endif
    }

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
