// Sums over all sequences of tags (forward-backward).
#pragma once

#include <cmath>

#include "structures/log_space.hpp"
#include "sums.hpp"

namespace didyma {

// A sum of products of exponentials above this has lost nothing that counts to underflow, and
// dividing by it does not overflow.
constexpr double SMALLEST_SUM = 1e-280;

// Exponentials over their highest, whose logarithm is returned (0 if all are 0).
inline double exponentials(Span<const double> values, Span<double> weights) {
    double highest = LOG_ZERO;
    for (double value : values) highest = value > highest ? value : highest;
    if (highest == LOG_ZERO) highest = 0.0;
    for (int64_t i = 0; i < values.size(); ++i) weights[i] = std::exp(values[i] - highest);
    return highest;
}

// Log partition (B,), marginals (B, d) and (B, f) of p(tags) ∝ exp(score); all start as 0. Returns
// the first instance without a possible output, or -1. dims are tags, the stride of transitions (0
// where they are the same everywhere), and where the scores of first and last tags stand.
//
// The forward pass needs log Σ_a exp(value[a] + transitions[a, b]) for every b. From exponentials
// of both terms this is a vector times a matrix; only sums that underflow are taken term by term.
// The backward pass spreads the marginals of a position over the one before by P(a | b), which sums
// to one over a: nothing large cancels, however large the scores.
inline int64_t forward_backward(Matrix<const double> scores, Matrix<const double> extra,
                                Span<const int64_t> dims, Matrix<const int64_t> sizes,
                                Span<double> log_partition, Matrix<double> marginals,
                                Matrix<double> extra_marginals) {
    const int64_t tags = dims[0], stride = dims[1], start = dims[2], end = dims[3];
    const int64_t longest = tags > 0 ? scores.columns() / tags : 0;
    const int64_t n_matrices = stride > 0 ? std::max<int64_t>(longest - 1, 0) : 1;
    Table<double> factors(n_matrices, tags * tags);  // exp(transitions), the highest is 1
    Array<double> shift(n_matrices), share(tags);
    Table<double> value(longest, tags);   // log Σ exp(score) over the beginnings, the highest is 0
    Table<double> weight(longest, tags);  // exp(value)
    Table<double> sums(longest, tags);    // 0 where they underflow
    for (int64_t instance = 0; instance < scores.rows(); ++instance) {
        const int64_t row = extra.rows() > 1 ? instance : 0;
        const auto additional = extra[row];
        const auto transitions = [&](int64_t matrix) {
            return Matrix<const double>(
                additional.slice(matrix * tags * tags, (matrix + 1) * tags * tags).data(), tags,
                tags);
        };
        if (row == instance) {
            for (int64_t matrix = 0; matrix < n_matrices; ++matrix) {
                shift[matrix] = exponentials(transitions(matrix).flat(), factors[matrix]);
            }
        }
        const int64_t n = sizes(instance, 0);
        if (n == 0) continue;
        // log Σ_a exp(value[i - 1, a] + transition from a to b).
        const auto arrive = [&](int64_t i, Matrix<const double> transition, int64_t b) {
            return log_sum(tags, [&](int64_t a) { return value(i - 1, a) + transition(a, b); });
        };

        double total = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t matrix = stride > 0 ? i - 1 : 0;
            if (i == 0) {
                for (int64_t b = 0; b < tags; ++b) {
                    value(0, b) = scores(instance, b) + additional[start + b];
                }
            } else {
                sums[i].fill(0.0);
                for (int64_t a = 0; a < tags; ++a) {
                    axpy(weight(i - 1, a), factors[matrix].slice(a * tags, (a + 1) * tags),
                         sums[i]);
                }
                for (int64_t b = 0; b < tags; ++b) {
                    if (sums(i, b) > SMALLEST_SUM) {
                        value(i, b) = std::log(sums(i, b)) + shift[matrix];
                    } else {
                        sums(i, b) = 0.0;
                        value(i, b) = arrive(i, transitions(matrix), b);
                    }
                    value(i, b) += scores(instance, i * tags + b);
                }
            }
            if (i == n - 1) {
                for (int64_t b = 0; b < tags; ++b) value(i, b) += additional[end + b];
            }
            const double highest = exponentials(value[i], weight[i]);
            total += highest;
            for (int64_t b = 0; b < tags; ++b) value(i, b) -= highest;
        }
        double normaliser = 0.0;
        for (double mass : weight[n - 1]) normaliser += mass;
        if (normaliser == 0.0) return instance;
        log_partition[instance] = total + std::log(normaliser);

        const auto marginal = marginals[instance], extra_marginal = extra_marginals[instance];
        for (int64_t b = 0; b < tags; ++b) {
            marginal[(n - 1) * tags + b] = weight(n - 1, b) / normaliser;
        }
        for (int64_t i = n - 1; i > 0; --i) {
            const int64_t matrix = stride > 0 ? i - 1 : 0;
            const auto here = marginal.slice(i * tags, (i + 1) * tags);
            const auto before = marginal.slice((i - 1) * tags, i * tags);
            const Matrix<double> joint(
                extra_marginal.slice(matrix * tags * tags, (matrix + 1) * tags * tags).data(), tags,
                tags);
            for (int64_t b = 0; b < tags; ++b) {
                share[b] = sums(i, b) > 0.0 ? here[b] / sums(i, b) : 0.0;
            }
            for (int64_t a = 0; a < tags; ++a) {
                const double mass = weight(i - 1, a);
                const double* factor = factors[matrix].slice(a * tags, (a + 1) * tags).data();
                const double* shares = share.data();
                double* out = joint[a].data();
                before[a] = sum(tags, [=](int64_t b) {
                    const double probability = mass * factor[b] * shares[b];
                    out[b] += probability;
                    return probability;
                });
            }
            for (int64_t b = 0; b < tags; ++b) {
                if (sums(i, b) != 0.0 || !(here[b] > 0.0)) continue;
                const auto transition = transitions(matrix);
                const double all = arrive(i, transition, b);
                for (int64_t a = 0; a < tags; ++a) {
                    const double x = value(i - 1, a) + transition(a, b) - all;
                    const double probability = here[b] * std::exp(x);
                    before[a] += probability;
                    joint(a, b) += probability;
                }
            }
        }
        for (int64_t b = 0; b < tags; ++b) {
            extra_marginal[start + b] = marginal[b];
            extra_marginal[end + b] = marginal[(n - 1) * tags + b];
        }
    }
    return -1;
}

}  // namespace didyma
