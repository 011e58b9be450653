// A Cholesky factor that grows and shrinks with an active set.
#pragma once

#include <cmath>

#include "array.hpp"
#include "sums.hpp"

namespace didyma::polytope {

// The first n rows of L are lower triangular with L L' = K; appending and removing a row cost
// O(n²). Beside it stand L⁻¹ 1 and L⁻¹ θ, which grow and shrink along with it: what it takes to
// minimise ½ y'Ky − θ'y over all y of a given sum.
class Factor {
  public:
    explicit Factor(int64_t capacity) : L_(capacity, capacity), ones_(capacity), theta_(capacity) {}

    int64_t size() const { return n_; }
    int64_t capacity() const { return ones_.size(); }
    void clear() { n_ = 0; }

    // Numbers in the rows of a triangle.
    static int64_t packed_size(int64_t n) { return n * (n + 1) / 2; }

    // Row i of L, without the zeros.
    Span<const double> row(int64_t i) const { return L_[i].first(i + 1); }

    // Becomes the factor of n rows that stand one after the other, with the right-hand side θ.
    void assign(Span<const double> rows, Span<const double> theta, int64_t n) {
        n_ = n;
        for (int64_t i = 0; i < n; ++i) {
            const Span<const double> row = rows.slice(packed_size(i), packed_size(i + 1));
            std::copy(row.begin(), row.end(), L_[i].begin());
            ones_[i] = 1.0;
            theta_[i] = theta[i];
        }
        solve_lower(ones_);
        solve_lower(theta_);
    }

    // Overwrites b with L⁻¹ b.
    void solve_lower(Span<double> b) const {
        for (int64_t i = 0; i < n_; ++i) b[i] = (b[i] - dot(L_[i], b, i)) / L_(i, i);
    }

    // Overwrites b with L'⁻¹ b.
    void solve_upper(Span<double> b) const {
        for (int64_t i = n_ - 1; i >= 0; --i) {
            const Span<const double> row = L_[i];
            const double value = b[i] / row[i];
            b[i] = value;
            for (int64_t j = 0; j < i; ++j) b[j] -= row[j] * value;
        }
    }

    // Adds a row: `row` is L⁻¹ k, `schur` the squared new diagonal entry, θ its right-hand side.
    void append(Span<const double> row, double schur, double theta) {
        const double diagonal = std::sqrt(schur);
        for (int64_t j = 0; j < n_; ++j) L_(n_, j) = row[j];
        L_(n_, n_) = diagonal;
        ones_[n_] = (1.0 - dot(row, ones_, n_)) / diagonal;
        theta_[n_] = (theta - dot(row, theta_, n_)) / diagonal;
        ++n_;
    }

    // Removes row and column i; Givens rotations restore the triangle, and turn the rest along.
    void remove(int64_t i) {
        --n_;
        for (int64_t r = i; r < n_; ++r) {
            for (int64_t j = 0; j < r + 2; ++j) L_(r, j) = L_(r + 1, j);
        }
        for (int64_t j = i; j < n_; ++j) {
            const double a = L_(j, j), b = L_(j, j + 1);
            const double norm = std::sqrt(a * a + b * b);
            const double cos = a / norm, sin = b / norm;
            L_(j, j) = norm;
            for (int64_t r = j + 1; r < n_; ++r) rotate(L_(r, j), L_(r, j + 1), cos, sin);
            rotate(ones_[j], ones_[j + 1], cos, sin);
            rotate(theta_[j], theta_[j + 1], cos, sin);
        }
    }

    // y = argmin ½ y'Ky − θ'y over y with the given sum.
    void minimise(double total, Span<double> y) const {
        const double t = (dot(ones_, theta_, n_) - total) / dot(ones_, ones_, n_);
        for (int64_t i = 0; i < n_; ++i) y[i] = theta_[i] - t * ones_[i];
        solve_upper(y);
    }

    // Corrects L⁻¹ θ by what K y lacks of θ, but for a constant: a step of iterative refinement.
    void refine(Span<double> residual) {
        solve_lower(residual);
        for (int64_t i = 0; i < n_; ++i) theta_[i] += residual[i];
    }

  private:
    static void rotate(double& a, double& b, double cos, double sin) {
        const double turned = cos * a + sin * b;
        b = cos * b - sin * a;
        a = turned;
    }

    Table<double> L_;
    Array<double> ones_, theta_;
    int64_t n_ = 0;
};

}  // namespace didyma::polytope
