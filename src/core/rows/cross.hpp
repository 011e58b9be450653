// Sums of coefficients over the crossed levels of all pairs of columns.
#pragma once

#include "array.hpp"

namespace didyma {

// sums[j, a, k, b] += Σ coef[r] over rows at level a of column j and level b of k, for j < k, with
// levels from 0 to n_levels - 1.
inline void cross(Matrix<const uint8_t> levels, Span<const int64_t> rows, Span<const double> coef,
                  int64_t n_levels, Span<double> sums) {
    constexpr int64_t BLOCK = 64;  // rows whose levels stay in cache while all columns meet them
    const int64_t n_columns = levels.columns(), width = n_levels * n_columns;
    for (int64_t start = 0; start < rows.size(); start += BLOCK) {
        const int64_t stop = std::min(start + BLOCK, rows.size());
        for (int64_t j = 0; j + 1 < n_columns; ++j) {
            for (int64_t r = start; r < stop; ++r) {
                const double c = coef[r];
                if (c == 0.0) continue;
                const Span<const uint8_t> row = levels[rows[r]];
                const int64_t first = (n_levels * j + row[j]) * width;
                const Span<double> table = sums.slice(first, first + width);
                for (int64_t k = j + 1; k < n_columns; ++k) table[n_levels * k + row[k]] += c;
            }
        }
    }
}

}  // namespace didyma
