// Vertices as rows of part indices: scores, inner products, combinations, derivatives.
//
// An output is a 0/1 vector with ones at its parts, so an inner product is a count of shared
// indices. Only parts of the scores proper enter it; additional parts carry score, not norm.
#pragma once

#include <cmath>
#include <tuple>

#include "polytope/cholesky.hpp"

namespace didyma::polytope {

using Parts = Span<const int32_t>;  // of one output; they end at the first -1

// Sum of the values at the parts.
inline double total(Span<const double> values, Parts parts) {
    double score = 0.0;
    for (int64_t j = 0; j < parts.size() && parts[j] >= 0; ++j) score += values[parts[j]];
    return score;
}

// Sum of the values at the parts, and of their magnitudes.
struct Totals {
    double score = 0.0, magnitude = 0.0;
};

inline Totals totals(Span<const double> values, Parts parts) {
    Totals sums;
    for (int64_t j = 0; j < parts.size() && parts[j] >= 0; ++j) {
        const double value = values[parts[j]];
        sums.score += value;
        sums.magnitude += std::abs(value);
    }
    return sums;
}

// Adds a weight at the parts.
inline void scatter(Parts parts, double weight, Span<double> out) {
    for (int64_t j = 0; j < parts.size() && parts[j] >= 0; ++j) out[parts[j]] += weight;
}

inline int64_t count_parts(Parts parts) {
    int64_t count = 0;
    while (count < parts.size() && parts[count] >= 0) ++count;
    return count;
}

// Parts that two vertices share, where equal parts stand in equal places.
inline int64_t shared_aligned(Parts a, Parts b, int64_t count) {
    check_range(0, count, std::min(a.size(), b.size()));
    const int32_t* x = a.data();
    const int32_t* y = b.data();
    int32_t same = 0;
    for (int64_t j = 0; j < count; ++j) same += x[j] == y[j];
    return same;
}

// Inner products of vertices, whose parts stand in the rows of a matrix.
class Gram {
  public:
    // `aligned`: equal parts of two vertices stand in equal places.
    Gram(bool aligned, int64_t dimension) : marks_(aligned ? 0 : dimension, 0) {}

    // out[i] = parts that vertex `row`, which has `count` of them, shares with rows active[i].
    template <class Active>
    void operator()(Matrix<const int32_t> parts, int64_t count, int64_t row, Active active,
                    int64_t n, Span<double> out) {
        const Parts own = parts[row];
        if (marks_.size() == 0) {
            for (int64_t i = 0; i < n; ++i) {
                out[i] = static_cast<double>(shared_aligned(own, parts[active(i)], count));
            }
            return;
        }
        for (int64_t j = 0; j < count; ++j) marks_[own[j]] = 1;
        for (int64_t i = 0; i < n; ++i) {
            const Parts other = parts[active(i)];
            int64_t same = 0;
            for (int64_t j = 0; j < other.size() && other[j] >= 0; ++j) same += marks_[other[j]];
            out[i] = static_cast<double>(same);
        }
        for (int64_t j = 0; j < count; ++j) marks_[own[j]] = 0;
    }

  private:
    Array<uint8_t> marks_;
};

// out[b] = scores[b]·u[b], entry by entry where u is not 0: padding changes no bit.
inline void products(Matrix<const double> scores, Matrix<const double> u, Span<double> out) {
    for (int64_t b = 0; b < out.size(); ++b) {
        const Span<const double> row = scores[scores.rows() > 1 ? b : 0];
        double product = 0.0;
        for (int64_t i = 0; i < u.columns(); ++i) {
            if (u(b, i) != 0.0) product += row[i] * u(b, i);
        }
        out[b] = product;
    }
}

// out[b] += Σ weight at the parts of instance b's vertices, rows offsets[b] to offsets[b + 1].
inline void expectation(Span<const int64_t> offsets, Matrix<const int32_t> parts,
                        Span<const double> weights, Matrix<double> out) {
    for (int64_t b = 0; b + 1 < offsets.size(); ++b) {
        for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) scatter(parts[i], weights[i], out[b]);
    }
}

// scores·u + extra·v − weight ‖u‖² of each instance, and its additional parts v. Entry by entry
// where u is not 0, so that padding changes no bit.
inline std::tuple<Array<double>, Table<double>> value_and_expectation(
    Span<const int64_t> offsets, Matrix<const int32_t> extra_parts, Span<const double> weights,
    Matrix<const double> scores, Matrix<const double> extra, Matrix<const double> u,
    double weight) {
    Array<double> value(u.rows());
    Table<double> v(u.rows(), extra.columns(), 0.0);
    for (int64_t b = 0; b < u.rows(); ++b) {
        double score = 0.0, norm = 0.0, additional = 0.0;
        for (int64_t i = 0; i < u.columns(); ++i) {
            if (u(b, i) == 0.0) continue;
            score += scores(b, i) * u(b, i);
            norm += u(b, i) * u(b, i);
        }
        for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
            scatter(extra_parts[i], weights[i], v[b]);
        }
        const Span<const double> more = extra[extra.rows() > 1 ? b : 0];
        for (int64_t i = 0; i < v.columns(); ++i) {
            if (v(b, i) != 0.0) additional += more[i] * v(b, i);
        }
        value[b] = score + additional - weight * norm;
    }
    return {std::move(value), std::move(v)};
}

// The Cholesky factor of K = M'M + c 11' over the vertices, with the right-hand side θ.
inline void factorise(Matrix<const int32_t> parts, Span<const double> theta, Gram& gram,
                      Factor& factor, Span<double> row) {
    factor.clear();
    const double c =
        parts.rows() > 0 ? std::max(1.0, static_cast<double>(count_parts(parts[0]))) : 1.0;
    for (int64_t i = 0; i < parts.rows(); ++i) {
        const int64_t count = count_parts(parts[i]);
        gram(parts, count, i, [](int64_t j) { return j; }, i, row);
        for (int64_t j = 0; j < i; ++j) row[j] += c;
        factor.solve_lower(row);
        const double schur = static_cast<double>(count) + c - dot(row, row, i);
        factor.append(row, schur, theta[i]);
    }
}

// A D A' [p; p_extra], added to out: the Jacobian of the marginals of one instance, which is
// symmetric. r = D A'p minimises ½ r'M'M r − (A'p)'r over r of sum zero: the solver's own step with
// another right-hand side. `solved` are the rows of the solver's own factor; without them the
// vertices are factored again.
inline void derivative(Matrix<const int32_t> parts, Matrix<const int32_t> extra_parts,
                       Span<const double> solved, Gram& gram, Factor& factor, Span<double> theta,
                       Span<double> row, Span<const double> p, Span<const double> p_extra,
                       Span<double> out, Span<double> out_extra) {
    const int64_t n = parts.rows();
    for (int64_t i = 0; i < n; ++i) {
        theta[i] = total(p, parts[i]) + total(p_extra, extra_parts[i]);
    }
    if (solved.size() > 0) {
        factor.assign(solved, theta, n);
    } else {
        factorise(parts, theta, gram, factor, row);
    }
    factor.minimise(0.0, row);
    for (int64_t i = 0; i < n; ++i) {
        scatter(parts[i], row[i], out);
        scatter(extra_parts[i], row[i], out_extra);
    }
}

}  // namespace didyma::polytope
