// Compressed sparse rows.
#pragma once

#include "rows/rows.hpp"

// GCC leaves short loops as they are, Clang unrolls them by itself.
#if defined(__GNUC__) && !defined(__clang__)
#define DIDYMA_UNROLL _Pragma("GCC unroll 8")
#else
#define DIDYMA_UNROLL
#endif

namespace didyma {

// Sums in order: vectors of gathered numbers take longer.
template <class T, class Index>
class SparseRows : public Rows {
  public:
    SparseRows(Span<const T> data, Span<const Index> indices, Span<const int64_t> indptr,
               int64_t n_features)
        : data_(data), indices_(indices), indptr_(indptr), n_features_(n_features) {}
    int64_t n_features() const override { return n_features_; }

    void score(Span<const int64_t> rows, Span<const double> w, Span<double> out,
               Span<const int64_t>) const override {
        for (int64_t r = 0; r < rows.size(); ++r) {
            const int64_t last = indptr_[rows[r] + 1];
            double total = 0.0;
            DIDYMA_UNROLL
            for (int64_t t = indptr_[rows[r]]; t < last; ++t) {
                total += static_cast<double>(data_[t]) * w[indices_[t]];
            }
            out[r] = total;
        }
    }

    void combine(Span<const int64_t> rows, Span<const double> coef,
                 Span<double> out) const override {
        for (int64_t r = 0; r < rows.size(); ++r) {
            const double c = coef[r];
            if (c == 0.0) continue;
            const int64_t last = indptr_[rows[r] + 1];
            DIDYMA_UNROLL
            for (int64_t t = indptr_[rows[r]]; t < last; ++t) {
                out[indices_[t]] += c * static_cast<double>(data_[t]);
            }
        }
    }

  private:
    Span<const T> data_;
    Span<const Index> indices_;
    Span<const int64_t> indptr_;
    int64_t n_features_;
};

}  // namespace didyma
