// The active-set method for min ½‖M y‖² − θ'y over the simplex.
//
// It keeps few columns active and the Cholesky factor of K = M'M + c 11' over them, which exists
// exactly when they are affinely independent; a dependent newcomer is exchanged for an active
// column along the null direction. Each major cycle decreases the objective, so the method is
// finite (Wolfe's minimum-norm point, extended to linear terms).
#pragma once

#include "polytope/simplex_qp.hpp"

namespace didyma::polytope {

class ActiveSet {
  public:
    explicit ActiveSet(int64_t capacity)
        : factor_(capacity), row_(capacity), target_(capacity), products_(capacity) {}

    // Goes from a point with at least one column to the optimum; `u` ends as M y. A gap that could
    // be noise is none, so a tolerance of 0 ends on the optimal face: the affine hull of the active
    // columns holds every column that could be optimal.
    Outcome solve(Polytope& polytope, Weighted& point, Span<double> u, double c, double tol,
                  int64_t max_iter) {
        Outcome outcome;
        if (used_.size() != polytope.theta().size()) used_ = Array<bool>(polytope.theta().size());
        start(polytope, point, c);
        descend(point);
        double value = INF;
        int64_t idle = 0;
        bool near = false, dropped = false;
        const Span<const double> theta = polytope.theta(), noise = polytope.noise();
        while (true) {
            double norm = polytope.combine(point.active(), point.y(), u, products_);
            if (near) {
                residuals(theta, point, norm);
                factor_.refine(row_);
                descend(point);
                norm = polytope.combine(point.active(), point.y(), u, products_);
            }
            if (outcome.iterations == max_iter) break;
            if (point.n == point.capacity()) {
                outcome.status = FULL;
                break;
            }
            if (dropped) {
                outcome.status = STALLED;
                break;
            }
            double score = 0.0, blur = 0.0;
            for (int64_t i = 0; i < point.n; ++i) {
                score += point.weights[i] * theta[point.slots[i]];
                blur += point.weights[i] * noise[point.slots[i]];
            }
            outcome.level = score - norm;
            const int64_t slot = polytope.argmax(u, spare_slot(point, used_));
            ++outcome.iterations;
            double diagonal = polytope.gram(slot, point.active(), row_);
            // m_s·u is a combination of Gram entries: no second pass over the column.
            const double overlap = dot(row_, point.weights, point.n);
            outcome.gap = theta[slot] - overlap - outcome.level;
            blur += noise[slot];
            if (outcome.gap <= std::max(tol, blur) || used_[slot]) {
                outcome.gap = std::max(outcome.gap, 0.0);
                outcome.status = OPTIMAL;
                break;
            }
            near = outcome.gap <= NEAR * blur;
            // A gap g promises a descent of order g², which rounding hides long before it hides g.
            idle = 0.5 * norm - score >= value ? idle + 1 : 0;
            value = std::min(value, 0.5 * norm - score);
            if (idle > PATIENCE + point.n) {
                outcome.status = STALLED;
                break;
            }
            diagonal += c;
            double schur = diagonal - reduce_row(c);
            double weight = 0.0;
            if (schur <= DEPENDENT * diagonal) {
                if (outcome.gap <= TIED * blur) {
                    outcome.status = OPTIMAL;
                    break;
                }
                const int64_t blocking = exchange(point, weight);
                if (blocking < 0) {
                    outcome.status = STALLED;
                    break;
                }
                drop(point, blocking);
                polytope.gram(slot, point.active(), row_);
                schur = diagonal - reduce_row(c);
                if (schur <= 0.0) {
                    outcome.status = STALLED;
                    break;
                }
            }
            factor_.append(row_, schur, theta[slot] - shift_);
            point.add(slot, weight);
            descend(point);
            dropped = near && point.slots[point.n - 1] != slot;  // only rounding drops these
        }
        if (tol > 0.0 || outcome.status == FULL) return outcome;
        if (point.any_between(LEAST, SLIGHT)) {
            widen(polytope, point, u, c, max_iter, outcome);
        } else {
            for (int64_t i = point.n - 1; i >= 0; --i) {
                if (point.weights[i] < LEAST) drop(point, i);
            }
        }
        return outcome;
    }

    // The factor of K over the columns that were active in the end.
    const Factor& factor() const { return factor_; }

  private:
    static constexpr double DEPENDENT = 1e-10;  // a Schur complement below this share of the
                                                // diagonal means affine dependence
    static constexpr double DISTINCT = 1e-6;    // the same, where rounding has reached the factor
    static constexpr double NEAR = 1e6;  // times the noise: smaller gaps are worth weights that are
                                         // free of rounding
    static constexpr double TIED = 256.0;  // times the noise: columns of a face that differ by less
                                           // are equally good
    static constexpr double SLIGHT = 1e-8;    // a weight that few columns have less of by chance
    static constexpr double LEAST = 1e-14;    // smaller weights are rounding
    static constexpr int64_t TRIES = 8;       // to find a further dimension of the face
    static constexpr int64_t PATIENCE = 50;   // iterations without visible descent, besides one per
                                              // active column
    static constexpr double SLIGHTLY = 1e-9;  // beyond rounding, and within what tells columns of a
                                              // face from others
    static constexpr double GOLDEN = 0.6180339887498949;  // multiples of it are spread evenly

    // Factors the start, leaving out affinely dependent columns.
    void start(Polytope& polytope, Weighted& point, double c) {
        const Span<const double> theta = polytope.theta();
        // A constant added to all of θ changes nothing; without it, large offsets would cancel.
        shift_ = theta[point.slots[0]];
        for (int64_t i = 0; i < point.n; ++i) shift_ = std::max(shift_, theta[point.slots[i]]);
        factor_.clear();
        const int64_t n = point.n;
        point.n = 0;
        double mass = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t slot = point.slots[i];
            const double weight = point.weights[i];
            const double diagonal = polytope.gram(slot, point.active(), row_) + c;
            const double schur = diagonal - reduce_row(c);
            if (schur > DEPENDENT * diagonal) {
                factor_.append(row_, schur, theta[slot] - shift_);
                point.add(slot, weight);
                mass += weight;
            }
        }
        for (int64_t i = 0; i < point.n; ++i) {
            point.weights[i] =
                mass > 0.0 ? point.weights[i] / mass : 1.0 / static_cast<double>(point.n);
        }
    }

    // Turns Gram entries into L⁻¹ k, where k has c added; returns their square.
    double reduce_row(double c) {
        for (int64_t i = 0; i < factor_.size(); ++i) row_[i] += c;
        factor_.solve_lower(row_);
        return dot(row_, row_, factor_.size());
    }

    // Minor cycles: move to the relaxed optimum, dropping each column that blocks the way.
    void descend(Weighted& point) {
        const Span<double> y = point.weights;
        while (point.n > 1) {
            factor_.minimise(1.0, target_);
            double step = 1.0;
            int64_t blocking = -1;
            for (int64_t i = 0; i < point.n; ++i) {
                if (target_[i] <= 0.0 && y[i] <= step * (y[i] - target_[i])) {
                    step = y[i] > 0.0 ? y[i] / (y[i] - target_[i]) : 0.0;
                    blocking = i;
                }
            }
            if (blocking < 0) {
                for (int64_t i = 0; i < point.n; ++i) y[i] = target_[i];
                return;
            }
            for (int64_t i = 0; i < point.n; ++i) y[i] += step * (target_[i] - y[i]);
            drop(point, blocking);
        }
        y[0] = 1.0;
    }

    void drop(Weighted& point, int64_t i) {
        factor_.remove(i);
        point.remove(i);
    }

    // How far θ_s − m_s·u of each active column is from their mean; rounding alone makes it.
    void residuals(Span<const double> theta, const Weighted& point, double norm) {
        double level = -norm;
        for (int64_t i = 0; i < point.n; ++i) level += point.weights[i] * theta[point.slots[i]];
        for (int64_t i = 0; i < point.n; ++i) {
            row_[i] = theta[point.slots[i]] - products_[i] - level;
        }
    }

    // Steps along the null direction of a dependent column until an active one reaches weight zero:
    // which one, or -1, and the weight of the newcomer.
    int64_t exchange(Weighted& point, double& weight) {
        for (int64_t i = 0; i < point.n; ++i) target_[i] = -row_[i];
        factor_.solve_upper(target_);
        const Span<double> y = point.weights;
        weight = INF;
        int64_t blocking = -1;
        for (int64_t i = 0; i < point.n; ++i) {
            if (target_[i] < 0.0 && y[i] < weight * -target_[i]) {
                weight = y[i] / -target_[i];
                blocking = i;
            }
        }
        if (blocking >= 0) {
            for (int64_t i = 0; i < point.n; ++i) {
                y[i] = std::max(y[i] + weight * target_[i], 0.0);
            }
        }
        return blocking;
    }

    // Columns have come in with next to no weight, so more of them may have been lost in rounding:
    // u is optimal before all dimensions of the face are there. Columns that tie with the active
    // ones are looked for at other points that are as good as u.
    void widen(Polytope& polytope, Weighted& point, Span<const double> u, double c,
               int64_t max_iter, Outcome& outcome) {
        const Span<const double> theta = polytope.theta(), noise = polytope.noise();
        Array<double> tilted(u.size());
        int64_t failures = 0;
        while (failures < TRIES && outcome.iterations < max_iter) {
            if (point.n == point.capacity()) {
                outcome.status = FULL;
                return;
            }
            tilt(u, failures, tilted);
            const int64_t slot = polytope.argmax(tilted, spare_slot(point, used_));
            ++outcome.iterations;
            ++failures;
            const double diagonal = polytope.gram(slot, point.active(), row_) + c;
            const double overlap = dot(row_, point.weights, point.n);
            if (used_[slot] || theta[slot] - overlap - outcome.level < -TIED * noise[slot]) {
                continue;
            }
            const double schur = diagonal - reduce_row(c);
            if (schur <= DISTINCT * diagonal) continue;
            factor_.append(row_, schur, theta[slot] - shift_);
            point.add(slot, std::numeric_limits<double>::epsilon());
            failures = 0;
        }
    }

    // A point close to u: in each of the numbered directions, of which every second is opposite.
    static void tilt(Span<const double> u, int64_t number, Span<double> out) {
        const double sign = number % 2 ? SLIGHTLY : -SLIGHTLY;
        for (int64_t i = 0; i < u.size(); ++i) {
            const double multiple = static_cast<double>((i + 1) * (number / 2 + 1)) * GOLDEN;
            const double fraction = multiple - static_cast<double>(static_cast<int64_t>(multiple));
            out[i] = u[i] + sign * (fraction - 0.5);
        }
    }

    Factor factor_;
    Array<double> row_, target_, products_;
    Array<bool> used_;
    double shift_ = 0.0;
};

}  // namespace didyma::polytope
