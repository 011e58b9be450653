// Conditional gradients: the simple first-order way over the hull of what an oracle can name.
//
// Each iteration asks the oracle for the best column s at the current point and moves
//   vanilla: towards s, away from the whole point;
//   away:    towards s, or away from the worst active column, whichever promises more;
//   pairwise: from the worst active column straight to s.
// The step length is exact. All three serve comparisons; the active set needs far fewer calls.
#pragma once

#include "polytope/simplex_qp.hpp"

namespace didyma::polytope {

enum class Step { VANILLA, AWAY, PAIRWISE };

class FrankWolfe {
  public:
    explicit FrankWolfe(int64_t capacity)
        : gram_(capacity, capacity), row_(capacity), used_(capacity + 1) {}

    Outcome solve(Polytope& polytope, Weighted& point, Span<double> u, Step variant, double tol,
                  int64_t max_iter) {
        Outcome outcome;
        for (int64_t i = 0; i < point.n; ++i) {
            gram_(i, i) = polytope.gram(point.slots[i], point.slots.first(i), row_);
            for (int64_t j = 0; j < i; ++j) gram_(i, j) = gram_(j, i) = row_[j];
        }
        const Span<const double> theta = polytope.theta(), noise = polytope.noise();
        const Span<double> y = point.weights;
        while (true) {
            const double norm = polytope.combine(point.active(), point.y(), u, row_);
            if (outcome.iterations == max_iter) break;
            if (point.n == point.capacity()) {
                outcome.status = FULL;
                break;
            }
            outcome.level = -norm;
            double blur = 0.0;
            for (int64_t i = 0; i < point.n; ++i) {
                outcome.level += y[i] * theta[point.slots[i]];
                blur += y[i] * noise[point.slots[i]];
            }
            const int64_t slot = polytope.argmax(u, spare_slot(point, used_));
            ++outcome.iterations;
            const double diagonal = polytope.gram(slot, point.active(), row_);
            const double overlap = dot(row_, y, point.n);
            outcome.gap = theta[slot] - overlap - outcome.level;
            if (outcome.gap <= std::max(tol, blur + noise[slot])) {
                outcome.gap = std::max(outcome.gap, 0.0);
                outcome.status = OPTIMAL;
                break;
            }
            int64_t forward = point.n, away = 0;
            double lowest = INF, away_overlap = 0.0;
            for (int64_t i = 0; i < point.n; ++i) {
                const double own_theta = theta[point.slots[i]];
                if (row_[i] == diagonal && diagonal == gram_(i, i) && theta[slot] == own_theta) {
                    forward = i;  // the best column is active already
                }
                const double own_overlap = dot(gram_[i], y, point.n);
                if (own_theta - own_overlap < lowest) {
                    away = i;
                    lowest = own_theta - own_overlap;
                    away_overlap = own_overlap;
                }
            }
            const double away_gap = outcome.level - lowest;
            const bool toward = variant != Step::AWAY || outcome.gap >= away_gap;
            double gain, curvature, largest;
            if (variant == Step::PAIRWISE) {
                gain = outcome.gap + away_gap;
                curvature = diagonal - 2.0 * row_[away] + gram_(away, away);
                largest = y[away];
            } else if (toward) {
                gain = outcome.gap;
                curvature = diagonal - 2.0 * overlap + norm;
                largest = 1.0;
            } else {
                gain = away_gap;
                curvature = norm - 2.0 * away_overlap + gram_(away, away);
                largest = y[away] < 1.0 ? y[away] / (1.0 - y[away]) : INF;
            }
            const double step = gain < largest * curvature ? gain / curvature : largest;
            if (!(step > 0.0)) {
                outcome.status = STALLED;
                break;
            }
            if (toward && forward == point.n) {
                for (int64_t i = 0; i < point.n; ++i)
                    gram_(point.n, i) = gram_(i, point.n) = row_[i];
                gram_(point.n, point.n) = diagonal;
                point.add(slot, 0.0);
            }
            if (variant == Step::PAIRWISE) {
                y[forward] += step;
                y[away] = step < largest ? y[away] - step : 0.0;
            } else if (toward) {
                for (int64_t i = 0; i < point.n; ++i) y[i] *= 1.0 - step;
                y[forward] += step;
            } else {
                for (int64_t i = 0; i < point.n; ++i) y[i] *= 1.0 + step;
                y[away] = step < largest ? y[away] - step : 0.0;
            }
            forget_weightless(point);
        }
        return outcome;
    }

  private:
    // Leaves out columns without weight; the last one takes the place of each.
    void forget_weightless(Weighted& point) {
        int64_t i = 0;
        while (i < point.n) {
            if (point.weights[i] > 0.0) {
                ++i;
                continue;
            }
            const int64_t last = --point.n;
            point.weights[i] = point.weights[last];
            point.slots[i] = point.slots[last];
            for (int64_t j = 0; j < last; ++j) gram_(i, j) = gram_(last, j);
            for (int64_t j = 0; j < last; ++j)
                gram_(j, i) = j != i ? gram_(j, last) : gram_(last, last);
        }
    }

    Table<double> gram_;
    Array<double> row_;
    Array<bool> used_;
};

}  // namespace didyma::polytope
