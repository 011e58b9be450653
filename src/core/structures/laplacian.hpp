// How marginals of trees answer to scores, by the inverse of the Laplacian of arcs.
//
// The Laplacian L, whose determinant is the sum over trees, is linear in the weights of arcs,
//
//     L = Σ over arcs   weight × E(arc),
//
// so log det L has the gradient ⟨E(arc), L⁻¹⟩, and weight × gradient is an arc's marginal. Without
// a single root, E of arc (m, h) is 1 at [m, m] and -1 at [m, h], which the root does not have.
// With one, the first column has the weights of root arcs in its place (Koo et al. 2007).
#pragma once

#include <cmath>

#include "structures/log_space.hpp"
#include "sums.hpp"

namespace didyma {

// matrix += weight × E(arc), for head h of word m, where 0 is the root.
inline void add_arc(Matrix<double> matrix, int64_t m, int64_t h, bool single_root, double weight) {
    if (h == 0) {
        matrix(m - 1, single_root ? 0 : m - 1) += weight;
        return;
    }
    if (m > 1 || !single_root) matrix(m - 1, m - 1) += weight;
    if (h > 1 || !single_root) matrix(m - 1, h - 1) -= weight;
}

// ⟨E(arc), matrix⟩, where the matrix is transposed as an inverse is.
inline double arc_product(Matrix<const double> matrix, int64_t m, int64_t h, bool single_root) {
    if (h == 0) return matrix(single_root ? 0 : m - 1, m - 1);
    double value = 0.0;
    if (m > 1 || !single_root) value += matrix(m - 1, m - 1);
    if (h > 1 || !single_root) value -= matrix(h - 1, m - 1);
    return value;
}

// Inverts in place by pivots that are largest in their columns; whether there is an inverse.
inline bool invert(Matrix<double> matrix, Span<int64_t> order) {
    const int64_t n = matrix.rows();
    for (int64_t k = 0; k < n; ++k) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; ++i) {
            if (std::abs(matrix(i, k)) > std::abs(matrix(best, k))) best = i;
        }
        order[k] = best;
        const double pivot = matrix(best, k);
        if (!(std::abs(pivot) > 0.0)) return false;
        if (best != k) std::swap_ranges(matrix[k].begin(), matrix[k].end(), matrix[best].begin());
        matrix(k, k) = 1.0;
        for (double& entry : matrix[k]) entry /= pivot;
        for (int64_t i = 0; i < n; ++i) {
            if (i == k) continue;
            const double factor = matrix(i, k);
            matrix(i, k) = 0.0;
            axpy(-factor, matrix[k], matrix[i]);
        }
    }
    for (int64_t k = n - 1; k >= 0; --k) {
        for (int64_t i = 0; i < n; ++i) std::swap(matrix(i, k), matrix(i, order[k]));
    }
    return true;
}

// out = a b, four rows of b at a time.
inline void multiply(Matrix<const double> a, Matrix<const double> b, Matrix<double> out) {
    const int64_t n = a.rows();
    out.fill(0.0);
    for (int64_t i = 0; i < n; ++i) {
        double* target = out[i].data();
        int64_t k = 0;
        for (; k + 4 <= n; k += 4) {
            const double w = a(i, k), x = a(i, k + 1), y = a(i, k + 2), z = a(i, k + 3);
            const double *p = b[k].data(), *q = b[k + 1].data(), *r = b[k + 2].data(),
                         *s = b[k + 3].data();
            for (int64_t j = 0; j < n; ++j) {
                target[j] += (w * p[j] + x * q[j]) + (y * r[j] + z * s[j]);
            }
        }
        for (; k < n; ++k) axpy(a(i, k), b[k], out[i]);
    }
}

// Covariance of each arc with Σ p over a tree's arcs, added to zeros.
//
// Scores, p and q are (B, n + 1, n + 1), entry [m, h] for head h of word m. With weights marginals
// move by marginals × p, with L⁻¹ by weights × its product with the change of L. `largest` is the
// largest entry of L⁻¹: what cancels in that product is as large as its square.
inline void tree_covariances(Cube<const double> scores, Span<const int64_t> lengths,
                             bool single_root, Cube<const double> p, Cube<double> q,
                             Span<double> largest) {
    Table<double> weights(scores.rows(), scores.rows());
    Array<int64_t> order(scores.rows());
    for (int64_t b = 0; b < scores.depth(); ++b) {
        const int64_t n = lengths[b];
        Table<double> L(n, n, 0.0), change(n, n, 0.0), product(n, n);
        for (int64_t m = 1; m <= n; ++m) {
            const auto row = scores[b][m].first(n + 1);
            double highest = LOG_ZERO, total = 0.0;
            for (double score : row) highest = std::max(highest, score);
            for (int64_t h = 0; h <= n; ++h) {
                weights(m, h) = std::exp(row[h] - highest);
                total += weights(m, h);
            }
            for (int64_t h = 0; h <= n;
                 ++h) {  // a factor of a word's weights is one of its row of L
                const double weight = weights(m, h) / total;
                weights(m, h) = weight;
                if (weight > 0.0) {
                    add_arc(L, m, h, single_root, weight);
                    add_arc(change, m, h, single_root, weight * p(b, m, h));
                }
            }
        }
        if (!invert(L, order)) {
            largest[b] = -LOG_ZERO;
            continue;
        }
        largest[b] = 0.0;
        for (double entry : L.flat()) {
            if (!(std::abs(entry) <= largest[b])) largest[b] = std::abs(entry);
        }
        multiply(L, change, product);
        multiply(product, L, change);
        for (int64_t m = 1; m <= n; ++m) {
            for (int64_t h = 0; h <= n; ++h) {
                if (!(weights(m, h) > 0.0)) continue;
                const double along = arc_product(L, m, h, single_root) * p(b, m, h);
                q(b, m, h) = weights(m, h) * (along - arc_product(change, m, h, single_root));
            }
        }
    }
}

}  // namespace didyma
