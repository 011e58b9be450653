// Marginals of trees and how they answer to scores, by the inverse of the Laplacian of arcs.
//
// The Laplacian L, whose determinant is the sum over trees, is linear in the weights of arcs: row m
// has the sum of word m's weights on the diagonal, less the weight of each word h at [m, h]. So
// log det L has the gradient L⁻¹[m, m] - L⁻¹[h, m] for arc (m, h), where row 0, of the root, is
// zero; and weight × gradient is an arc's marginal.
//
// L⁻¹[i, m] is how often a walk from i, which follows heads at random until it meets the root,
// comes to m. A Gauss-Jordan sweep in this sense adds and multiplies but never subtracts (a pivot
// is the sum of what leaves a word, after Grassmann, Taksar & Heyman), so that every entry has a
// relative error of some n roundings, however badly L is conditioned. What is lost is lost in the
// differences of the gradient, where it can be seen.
#pragma once

#include <cmath>

#include "structures/log_space.hpp"
#include "sums.hpp"

namespace didyma {

constexpr int64_t BLOCK = 4;  // rows on the right side of a product that are read at once

// n, rounded up to whole blocks.
constexpr int64_t in_blocks(int64_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

// Two rows of n numbers += their factors × the rows of a block.
inline void add_block(const double* f, const double* g, const double* const* block, int64_t n,
                      double* __restrict y, double* __restrict z) {
    const double* __restrict p = block[0];
    const double* __restrict q = block[1];
    const double* __restrict r = block[2];
    const double* __restrict s = block[3];
    const double f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
    const double g0 = g[0], g1 = g[1], g2 = g[2], g3 = g[3];
    for (int64_t j = 0; j < n; ++j) {
        y[j] += (f0 * p[j] + f1 * q[j]) + (f2 * r[j] + f3 * s[j]);
        z[j] += (g0 * p[j] + g1 * q[j]) + (g2 * r[j] + g3 * s[j]);
    }
}

// The logarithm of a product of numbers between 1e-120 and 1e120.
class LogProduct {
  public:
    void multiply(double factor) {
        product_ *= factor;
        if (product_ > 1e-180 && product_ < 1e180) return;
        log_ += std::log(product_);
        product_ = 1.0;
    }
    double value() const { return log_ + std::log(product_); }

  private:
    double log_ = 0.0, product_ = 1.0;
};

// The gradient of log det L for trees of at most `longest - 1` words.
//
// With a single root, root arcs weigh ε → 0, and L⁻¹ = 1 roots' / ε + C + O(ε): the gradient is
// C[m, m] - C[h, m] for a word h, and roots[m] for the root. A sweep over all words but one,
// `exit`, has walks that end there instead of at the root, and one more pivot at [exit, 0] gives C
// and roots. Here that is one matrix C, which has the roots in row 0.
class TreeGradient {
  public:
    TreeGradient(int64_t longest, bool single_root)
        : single_root_(single_root),
          weights_(longest, longest),
          inverse_(in_blocks(longest), in_blocks(longest), 0.0),
          transposed_(longest, longest),
          magnitude_(longest),
          order_(longest),
          others_(longest + 1) {}

    // Whether there is an inverse of numbers far from the smallest and the largest float.
    bool run(Matrix<const double> scores, int64_t n) {
        n_ = n;
        log_scale_ = 0.0;
        logarithm_ = {};
        for (int64_t m = 1; m <= n; ++m) {
            if (!normalise(m, scores[m].first(n + 1))) return false;
        }
        inverse_[0].fill(0.0);
        exit_ = single_root_ ? most_visited() : 0;
        int64_t count = 0;
        for (int64_t m = 1; m <= n; ++m) {
            if (m != exit_) order_[count++] = m;
        }
        for (int64_t first = 0; first < count; first += BLOCK) {
            if (!sweep(order_.slice(first, std::min(first + BLOCK, count)))) return false;
        }
        for (int64_t m = 1; m <= n; ++m) magnitude_[m] = inverse_(m, m);
        if (single_root_ && n > 0 && !leave_by_the_root()) return false;
        for (int64_t m = 0; m <= n; ++m) inverse_(m, 0) = 0.0;
        transpose(inverse_, transposed_);
        return true;
    }

    double log_partition() const { return log_scale_ + logarithm_.value(); }

    // Marginals of word m; false if a gradient is less than `least_share` of its terms, whose
    // relative error it has 1 / least_share times.
    bool marginals(int64_t m, double least_share, Span<double> out) const {
        const double* __restrict weight = weights_[m].first(n_ + 1).data();
        const double* __restrict column = transposed_[m].first(n_ + 1).data();
        double* __restrict target = out.first(n_ + 1).data();
        const double own = column[m], least = least_share * magnitude_[m];
        int64_t n_lost = 0;
        for (int64_t h = 1; h <= n_; ++h) {
            const double gradient = own - column[h];
            target[h] = weight[h] * gradient;
            n_lost += (weight[h] > 0.0) & !(gradient >= least);
        }
        target[0] = weight[0] * (single_root_ ? column[0] : own);
        return n_lost == 0 && std::isfinite(target[0]);
    }

    // By how much a rounding may grow in covariances: C × (change of L × C) is a sum of terms as
    // large as a row of C times the largest entry of the second factor, whatever is left of it. So
    // its error is not that of the marginals but goes with the square of the inverse.
    double amplification() const {
        double width = 0.0, height = 0.0, root_arc = 0.0, root = 0.0;
        for (int64_t i = 1; i <= n_; ++i) {
            width = std::max(width, width_of(i));
            height = std::max(height, magnitude_[i]);
            root_arc = std::max(root_arc, weights_(i, 0));
            root = std::max(root, inverse_(0, i));
        }
        if (single_root_) {  // the weights of other arcs are 1 at most
            width = std::max(width, root_arc * width_of(0));
            height = std::max(height, root_arc * root);
        }
        return width * height;
    }

    // Covariances with Σ p: weights move by weights × p, and C by -C × the change of L × C.
    void covariances(Matrix<const double> p, Matrix<double> change, Matrix<double> product,
                     Matrix<double> out) {
        const int64_t n = n_;
        change[0].fill(0.0);
        for (int64_t m = 1; m <= n; ++m) {
            change[m].fill(0.0);
            const auto row = change[m].first(n + 1);
            for (int64_t h = 0; h <= n; ++h) {
                row[h] = weights_(m, h) > 0.0 ? -weights_(m, h) * p(m, h) : 0.0;
            }
            const int64_t first = single_root_ ? 1 : 0;
            row[m] = -sum(n + 1 - first, [=](int64_t h) { return row[first + h]; });
            row[0] = -row[0];
        }
        multiply(change, inverse_, product);
        multiply(inverse_, product, change);
        transpose(change, product);
        for (int64_t m = 1; m <= n; ++m) {
            const auto column = transposed_[m], moved = product[m];
            for (int64_t h = 0; h <= n; ++h) {
                const double weight = weights_(m, h);
                if (!(weight > 0.0)) continue;
                const bool root = h == 0 && single_root_;
                const double gradient = root ? column[0] : column[m] - column[h];
                const double answer = root ? moved[0] : moved[m] - moved[h];
                out(m, h) = weight * (gradient * p(m, h) - answer);
            }
        }
    }

  private:
    // Σ |C[i, m]| over m; infinite where that is not a number.
    double width_of(int64_t i) const {
        const double* row = inverse_[i].first(n_ + 1).data();
        const double width = sum(n_ + 1, [=](int64_t m) { return std::abs(row[m]); });
        return width >= 0.0 ? width : -LOG_ZERO;
    }

    // Weights of a word's heads such that those sum to 1 by which a walk goes on.
    bool normalise(int64_t m, Span<const double> scores) {
        const int64_t first = single_root_ ? 1 : 0;
        double highest = LOG_ZERO;
        for (int64_t h = first; h <= n_; ++h) highest = std::max(highest, scores[h]);
        if (highest == LOG_ZERO) highest = scores[0];
        if (highest == LOG_ZERO) return false;
        const auto row = weights_[m].first(n_ + 1);
        for (int64_t h = 0; h <= n_; ++h) row[h] = std::exp(scores[h] - highest);
        const double total = sum(n_ + 1 - first, [=](int64_t h) { return row[first + h]; });
        const double scale = total > 0.0 ? total : 1.0;
        for (double& weight : row) weight /= scale;
        log_scale_ += highest;
        logarithm_.multiply(scale);
        std::fill(std::copy(row.begin(), row.end(), inverse_[m].begin()), inverse_[m].end(), 0.0);
        return true;
    }

    // The word that most weights lead to: walks that end there are short.
    int64_t most_visited() {
        const auto total = magnitude_.first(n_ + 1);
        total.fill(0.0);
        for (int64_t m = 1; m <= n_; ++m) axpy(1.0, weights_[m].first(n_ + 1), total);
        int64_t best = std::min<int64_t>(1, n_);
        for (int64_t m = 2; m <= n_; ++m) {
            if (total[m] > total[best]) best = m;
        }
        return best;
    }

    // Steps over up to BLOCK words: in the columns of words that were stepped over a row has how
    // often a walk comes there, in the others where it goes next.
    bool sweep(Span<const int64_t> words) {
        const int64_t n = n_;
        for (int64_t k : words) {
            const auto row = inverse_[k].first(n + 1);
            const double* rest = row.slice(k + 1, n + 1).data();
            double pivot = sum(n - k, [=](int64_t j) { return rest[j]; });
            if (exit_ < k) pivot += row[exit_];
            if (!(pivot > LEAST && pivot < 1.0 / LEAST)) return false;
            logarithm_.multiply(pivot);
            row[k] = 1.0;
            for (double& entry : row) entry /= pivot;
            for (int64_t i : words) {
                if (i == k) continue;
                const double factor = inverse_(i, k);
                inverse_(i, k) = 0.0;
                axpy(factor, row, inverse_[i].first(n + 1));
            }
        }
        const double* block[BLOCK];
        for (int64_t a = 0; a < BLOCK; ++a) {
            block[a] = inverse_[words[std::min(a, words.size() - 1)]].data();
        }
        int64_t count = 0;
        for (int64_t i = 1; i <= n; ++i) {
            if (std::find(words.begin(), words.end(), i) == words.end()) others_[count++] = i;
        }
        others_[count] = 0;  // a row of zeros, for the last one if it is alone
        for (int64_t at = 0; at < count; at += 2) {
            double factors[2][BLOCK] = {};
            for (int64_t side = 0; side < 2; ++side) {
                const auto row = inverse_[others_[at + side]];
                for (int64_t a = 0; a < words.size(); ++a) {
                    std::swap(factors[side][a], row[words[a]]);
                }
            }
            add_block(factors[0], factors[1], block, n + 1, inverse_[others_[at]].data(),
                      inverse_[others_[at + 1]].data());
        }
        return true;
    }

    // The last pivot of a single root, the only one that subtracts. `magnitude_` is the largest
    // number of a column that a difference is taken of.
    bool leave_by_the_root() {
        const auto roots = inverse_[exit_].first(n_ + 1);
        const double pivot = roots[0];
        if (!(pivot > LEAST && pivot < 1.0 / LEAST)) return false;
        logarithm_.multiply(pivot);
        roots[exit_] = 1.0;
        roots[0] = 0.0;
        double longest = 0.0;
        for (int64_t i = 1; i <= n_; ++i) {
            weights_(i, 0) /= pivot;  // a factor of all root arcs is one of the partition
            if (i == exit_) continue;
            const auto row = inverse_[i].first(n_ + 1);
            const double factor = row[0] / pivot;
            longest = std::max(longest, factor);
            row[exit_] = 0.0;
            axpy(-factor, roots, row);
        }
        magnitude_[exit_] = 0.0;
        for (int64_t m = 1; m <= n_; ++m) {
            magnitude_[m] = std::max(magnitude_[m], longest * roots[m]);
        }
        std::copy(roots.begin(), roots.end(), inverse_[0].begin());
        roots.fill(0.0);
        return true;
    }

    // out = a b, where the factors of rows that do not exist are zero.
    void multiply(Matrix<const double> a, Matrix<const double> b, Matrix<double> out) const {
        out.fill(0.0);
        for (int64_t k = 0; k <= n_; k += BLOCK) {
            const double* block[BLOCK];
            for (int64_t c = 0; c < BLOCK; ++c) block[c] = b[std::min(k + c, n_)].data();
            for (int64_t i = 0; i <= n_; i += 2) {
                add_block(a[i].data() + k, a[i + 1].data() + k, block, n_ + 1, out[i].data(),
                          out[i + 1].data());
            }
        }
    }

    // Rows of eight at a time, so that what is read stays near.
    void transpose(Matrix<const double> a, Matrix<double> out) const {
        const int64_t n = n_ + 1;
        for (int64_t first = 0; first < n; first += 8) {
            const int64_t last = std::min(first + 8, n);
            for (int64_t j = 0; j < n; ++j) {
                for (int64_t i = first; i < last; ++i) out(j, i) = a(i, j);
            }
        }
    }

    // What is lost below 1e-300 grows by at most a division by a pivot.
    static constexpr double LEAST = 1e-120;

    bool single_root_;
    int64_t n_ = 0, exit_ = 0;
    double log_scale_ = 0.0;
    LogProduct logarithm_;
    Table<double> weights_, inverse_, transposed_;
    Array<double> magnitude_;
    Array<int64_t> order_, others_;
};

// Log partitions and marginals, written over zeros. A log partition of -inf says that digits of
// marginals would be lost (see `least_share` above).
//
// Scores are (B, n + 1, n + 1), entry [m, h] for head h of word m.
inline void tree_marginals(Cube<const double> scores, Span<const int64_t> lengths, bool single_root,
                           double least_share, Span<double> log_partition, Cube<double> marginals) {
    TreeGradient gradient(scores.rows(), single_root);
    for (int64_t b = 0; b < scores.depth(); ++b) {
        const int64_t n = lengths[b];
        bool accurate = gradient.run(scores[b], n);
        for (int64_t m = 1; m <= n && accurate; ++m) {
            accurate = gradient.marginals(m, least_share, marginals[b][m]);
        }
        log_partition[b] = accurate ? gradient.log_partition() : LOG_ZERO;
    }
}

// Covariance of each arc with Σ p over a tree's arcs, written over zeros, and by how much a
// rounding may have grown in them, infinitely where there is no inverse.
inline void tree_covariances(Cube<const double> scores, Span<const int64_t> lengths,
                             bool single_root, Cube<const double> p, Cube<double> q,
                             Span<double> amplification) {
    TreeGradient gradient(scores.rows(), single_root);
    const int64_t room = in_blocks(scores.rows());
    Table<double> change(room, room, 0.0), product(room, room, 0.0);
    for (int64_t b = 0; b < scores.depth(); ++b) {
        if (!gradient.run(scores[b], lengths[b])) {
            amplification[b] = -LOG_ZERO;
            continue;
        }
        gradient.covariances(p[b], change, product, q[b]);
        amplification[b] = gradient.amplification();
    }
}

}  // namespace didyma
