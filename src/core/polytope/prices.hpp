// Prices of rows that couple variables, each of which is optimal by itself at given prices.
//
//     min over lower ≤ y ≤ upper of   Φ(y) = b'y + Σ_i φ_i(x_i),   x = θ − G'y
//     φ_i(x) = max over low_i ≤ u ≤ high_i of x u − q/2 u²
//
// is the dual of max θ'u − q/2 ‖u‖² over the box, where a row G_r u ≤ b_r may be broken at a price
// of upper_r a unit (∞: never), and is an equation where lower_r is −∞. Φ is convex and piecewise
// quadratic, with the gradient b − G u. One row at a time is minimised exactly; between such
// sweeps, Newton's step for all rows whose prices are inside their bounds ends on the optimum as
// soon as the piece is found. What is left of the gradient there is rounding.
#pragma once

#include <cmath>
#include <tuple>

#include "array.hpp"

namespace didyma::prices {

constexpr int64_t SWEEPS = 4;       // over rows, between two of Newton's steps
constexpr double ROUNDING = 1e-14;  // error of a row, relative to its terms, that counts as none
constexpr double NEARLY = 1e-12;    // error from which on rounding can be all that is left
constexpr int64_t PATIENCE = 4;     // rounds without progress, then
constexpr int64_t LIMIT = 100;      // rounds without progress at all
constexpr double FLAT = 1e-14;      // curvature that rounding can leave of none

// Rows G_r u: coefficients g of the variables `index`, those of row r from start[r] to start[r +
// 1].
struct Rows {
    Span<const int64_t> start, index;
    Span<const double> g;

    int64_t count() const { return start.size() - 1; }
    Rows row(int64_t r) const {
        return {start.slice(r, r + 2), index.slice(start[r], start[r + 1]),
                g.slice(start[r], start[r + 1])};
    }
    // G_r v.
    double product(int64_t r, Span<const double> v) const {
        double total = 0.0;
        for (int64_t k = start[r]; k < start[r + 1]; ++k) total += g[k] * v[index[k]];
        return total;
    }
    // v += c G_r'.
    void add(int64_t r, double c, Span<double> v) const {
        for (int64_t k = start[r]; k < start[r + 1]; ++k) v[index[k]] += g[k] * c;
    }
};

// Variables with their bounds and the curvature of their objective.
struct Box {
    double q;
    Span<const double> low, high;

    // The variable i that is optimal at x.
    double best(int64_t i, double x) const {
        return x <= q * low[i] ? low[i] : x >= q * high[i] ? high[i] : x / q;
    }
    // Whether that lies inside its bounds.
    bool inside(int64_t i, double x) const { return x > q * low[i] && x < q * high[i]; }
};

// Scratch of one solve.
struct Work {
    Work(int64_t n, int64_t m)
        : x(n),
          inverse(n),
          along(n),
          every(n),
          gradient(m),
          step(m),
          residual(m),
          direction(m),
          product(m) {
        for (int64_t i = 0; i < n; ++i) every[i] = i;
    }
    Array<double> x, inverse, along;
    Array<int64_t> every;
    Array<double> gradient, step, residual, direction, product;
};

inline double clip(double value, double low, double high) {
    return std::min(std::max(value, low), high);
}

struct Step {
    double length;
    bool finite;
};

// The step in [least, most] that minimises Φ along a direction, and whether there is one. The
// derivative b − Σ g u(x − step g) never falls, and is linear from one place where a variable meets
// a bound to the next.
inline Step march(Span<const int64_t> index, Span<const double> g, double b, double least,
                  double most, Span<const double> x, const Box& box) {
    double derivative = b;
    for (int64_t k = 0; k < index.size(); ++k) {
        derivative -= g[k] * box.best(index[k], x[index[k]]);
    }
    if (derivative == 0.0) return {0.0, true};
    const double way = derivative > 0.0 ? -1.0 : 1.0;
    const double limit = way < 0.0 ? -least : most;
    double step = 0.0;
    while (true) {
        double curvature = 0.0, end = INF;
        for (int64_t k = 0; k < index.size(); ++k) {
            const int64_t i = index[k];
            const double speed = -way * g[k];
            if (speed == 0.0) continue;
            double enters = (box.q * box.low[i] - x[i]) / speed;
            double leaves = (box.q * box.high[i] - x[i]) / speed;
            if (speed < 0.0) std::swap(enters, leaves);
            if (enters > step) {
                end = std::min(end, enters);
            } else if (leaves > step) {
                end = std::min(end, leaves);
                curvature += g[k] * g[k] / box.q;
            }
        }
        const double wanted = curvature > 0.0 ? step + std::abs(derivative) / curvature : INF;
        if (wanted <= std::min(end, limit)) return {way * wanted, true};
        if (end >= limit) return {way * limit, limit < INF};
        derivative += way * curvature * (end - step);
        if (derivative * way >= 0.0) return {way * end, true};  // rounding went past the minimum
        step = end;
    }
}

// G D G' step = right over free rows, D = diag(inverse), by conjugate gradients. A direction
// without curvature is taken as it is if it is the first.
inline void solve(const Rows& rows, Span<const bool> free, Span<const double> right, Work& work) {
    const int64_t m = right.size();
    double norm = 0.0, stiffest = 0.0;
    int64_t n_free = 0;
    for (int64_t r = 0; r < m; ++r) {
        work.step[r] = work.product[r] = 0.0;
        work.residual[r] = free[r] ? right[r] : 0.0;
        work.direction[r] = work.residual[r];
        norm += work.residual[r] * work.residual[r];
        n_free += free[r];
    }
    for (double entry : work.inverse) stiffest = std::max(stiffest, entry);
    const double first = norm;
    if (norm == 0.0) return;
    for (int64_t iteration = 0; iteration < 2 * n_free + 10; ++iteration) {
        work.along.fill(0.0);
        for (int64_t r = 0; r < m; ++r) {
            if (free[r]) rows.add(r, work.direction[r], work.along);
        }
        double size = 0.0, curvature = 0.0;
        for (int64_t i = 0; i < work.along.size(); ++i) {
            size += work.along[i] * work.along[i];
            work.along[i] *= work.inverse[i];
        }
        for (int64_t r = 0; r < m; ++r) {
            if (!free[r]) continue;
            work.product[r] = rows.product(r, work.along);
            curvature += work.product[r] * work.direction[r];
        }
        if (curvature <= FLAT * size * stiffest) {
            if (iteration == 0)
                std::copy(work.direction.begin(), work.direction.end(), work.step.begin());
            return;
        }
        const double length = norm / curvature, before = norm;
        norm = 0.0;
        for (int64_t r = 0; r < m; ++r) {
            work.step[r] += length * work.direction[r];
            work.residual[r] -= length * work.product[r];
            norm += work.residual[r] * work.residual[r];
        }
        if (norm <= 1e-30 * first) return;
        for (int64_t r = 0; r < m; ++r) {
            work.direction[r] = work.residual[r] + norm / before * work.direction[r];
        }
    }
}

// x = θ − G'y.
inline void price(const Rows& rows, Span<const double> theta, Span<const double> y,
                  Span<double> x) {
    std::copy(theta.begin(), theta.end(), x.begin());
    for (int64_t r = 0; r < y.size(); ++r) {
        for (int64_t k = rows.start[r]; k < rows.start[r + 1]; ++k) {
            x[rows.index[k]] -= rows.g[k] * y[r];
        }
    }
}

// What is given of one instance, and where its solution goes.
struct Instance {
    Rows rows;
    Span<const double> b, lower, upper, theta;
    Box box;
    Span<double> y, u;
    Span<bool> free;
};

// Prices y, variables u and which rows are free; `y` is where to start. Returns the rounds, or −1
// where Φ has no minimum: no u obeys the rows.
inline int64_t minimise(const Instance& p, int64_t n_rounds, Work& work) {
    const int64_t n = p.theta.size(), m = p.b.size();
    for (int64_t r = 0; r < m; ++r) p.y[r] = clip(p.y[r], p.lower[r], p.upper[r]);
    double least = INF;
    int64_t stale = 0, rounds = 0;
    while (true) {
        price(p.rows, p.theta, p.y, work.x);
        for (int64_t i = 0; i < n; ++i) {
            p.u[i] = p.box.best(i, work.x[i]);
            work.inverse[i] = p.box.inside(i, work.x[i]) ? 1.0 / p.box.q : 0.0;
        }
        double error = 0.0;
        for (int64_t r = 0; r < m; ++r) {
            double value = p.b[r], size = std::abs(p.b[r]);
            for (int64_t k = p.rows.start[r]; k < p.rows.start[r + 1]; ++k) {
                const double term = p.rows.g[k] * p.u[p.rows.index[k]];
                value -= term;
                size += std::abs(term);
            }
            work.gradient[r] = value;
            p.free[r] = p.lower[r] < p.y[r] && p.y[r] < p.upper[r];
            const bool held =
                (p.y[r] == p.lower[r] && value > 0.0) || (p.y[r] == p.upper[r] && value < 0.0);
            if (!held) error = std::max(error, std::abs(value) / std::max(size, 1.0));
        }
        stale = error < 0.5 * least ? 0 : stale + 1;
        least = std::min(error, least);
        if (error <= ROUNDING || rounds == n_rounds) return rounds;
        if (stale > (error <= NEARLY ? PATIENCE : LIMIT)) return rounds;
        ++rounds;
        if (rounds > 1) {
            for (double& value : work.gradient) value = -value;
            solve(p.rows, p.free, work.gradient, work);
            double room = INF, slope = 0.0;
            work.along.fill(0.0);
            for (int64_t r = 0; r < m; ++r) {
                const double step = work.step[r];
                if (!p.free[r] || step == 0.0) continue;
                p.rows.add(r, step, work.along);
                slope += p.b[r] * step;
                room = std::min(room, ((step > 0.0 ? p.upper[r] : p.lower[r]) - p.y[r]) / step);
            }
            const Step newton = march(work.every, work.along, slope, 0.0, room, work.x, p.box);
            if (!newton.finite) return -1;
            for (int64_t r = 0; r < m; ++r) {
                if (p.free[r]) {
                    p.y[r] = clip(p.y[r] + newton.length * work.step[r], p.lower[r], p.upper[r]);
                }
            }
            price(p.rows, p.theta, p.y, work.x);
        }
        for (int64_t sweep = 0; sweep < SWEEPS; ++sweep) {
            for (int64_t r = 0; r < m; ++r) {
                const Rows row = p.rows.row(r);
                const Step step = march(row.index, row.g, p.b[r], p.lower[r] - p.y[r],
                                        p.upper[r] - p.y[r], work.x, p.box);
                if (!step.finite) return -1;
                const double moved = clip(p.y[r] + step.length, p.lower[r], p.upper[r]) - p.y[r];
                if (moved == 0.0) continue;
                p.y[r] += moved;
                for (int64_t k = 0; k < row.index.size(); ++k)
                    work.x[row.index[k]] -= row.g[k] * moved;
            }
        }
    }
}

struct Certificate {
    double gap, broken;
};

// Φ(y) less the objective at u, and the most by which u breaks a row that must hold. Every row's
// share of the gap is what its price would win: no sum of large terms cancels.
inline Certificate certify(const Instance& p) {
    double gap = 0.0, broken = 0.0;
    for (int64_t r = 0; r < p.b.size(); ++r) {
        double left = p.b[r];
        for (int64_t k = p.rows.start[r]; k < p.rows.start[r + 1]; ++k) {
            left -= p.rows.g[k] * p.u[p.rows.index[k]];
        }
        if (p.upper[r] < INF) {
            gap += left > 0.0 ? p.y[r] * left : (p.y[r] - p.upper[r]) * left;
        } else {
            gap += std::abs(p.y[r] * left);
            broken = std::max(broken, p.lower[r] == -INF ? std::abs(left) : -left);
        }
    }
    return {gap, broken};
}

// Prices, variables, free rows and certificates of all instances.
inline void minimise_all(Span<const int64_t> start, Span<const int64_t> index,
                         Matrix<const double> g, Matrix<const double> b, Span<const double> lower,
                         Matrix<const double> upper, Matrix<const double> theta, double q,
                         Matrix<const double> low, Matrix<const double> high, int64_t n_rounds,
                         Matrix<double> y, Matrix<double> u, Matrix<bool> free, Span<double> gap,
                         Span<double> broken, Span<int64_t> n_iter) {
    Work work(theta.columns(), b.columns());
    for (int64_t i = 0; i < theta.rows(); ++i) {
        const Instance instance{{start, index, g[i]}, b[i], lower, upper[i], theta[i],
                                {q, low[i], high[i]}, y[i], u[i],  free[i]};
        n_iter[i] = minimise(instance, n_rounds, work);
        const Certificate certificate = certify(instance);
        gap[i] = certificate.gap;
        broken[i] = certificate.broken;
    }
}

// The rows of each instance (the scores of its variables, coefficients, bounds and highest prices)
// from those that all share. The first rows are of pairs, which add c u_i u_j: u_j − u_i ≤ 0 where
// c > 0, u_i + u_j ≤ 1 otherwise, and c in θ_j where it is positive.
inline std::tuple<Table<double>, Table<double>, Table<double>, Table<double>> rows_at(
    Span<const int64_t> index, Span<const double> g, Span<const double> b, Span<const double> upper,
    Matrix<const double> theta, Matrix<const double> pairs) {
    const int64_t batch = theta.rows();
    Table<double> x(batch, theta.columns()), all_g(batch, g.size()), all_b(batch, b.size()),
        all_upper(batch, upper.size());
    for (int64_t i = 0; i < batch; ++i) {
        std::copy(theta[i].begin(), theta[i].end(), x[i].begin());
        std::copy(g.begin(), g.end(), all_g[i].begin());
        std::copy(b.begin(), b.end(), all_b[i].begin());
        std::copy(upper.begin(), upper.end(), all_upper[i].begin());
        for (int64_t e = 0; e < pairs.columns(); ++e) {
            const double c = pairs(i, e);
            x(i, index[2 * e + 1]) += c > 0.0 ? c : 0.0;
            all_g(i, 2 * e) = c > 0.0 ? -1.0 : 1.0;
            all_g(i, 2 * e + 1) = 1.0;
            all_b(i, e) = c > 0.0 ? 0.0 : 1.0;
            all_upper(i, e) = std::abs(c);
        }
    }
    return {std::move(x), std::move(all_g), std::move(all_b), std::move(all_upper)};
}

// The probability that both of a pair are true: factors of the two u_i, side by side, and what to
// take off.
inline std::tuple<Table<double>, Table<double>> pair_factors(Span<const int64_t> index,
                                                             Matrix<const double> pairs,
                                                             Matrix<const double> y,
                                                             Matrix<const double> u) {
    Table<double> both(pairs.rows(), 2 * pairs.columns()), less(pairs.rows(), pairs.columns());
    for (int64_t i = 0; i < pairs.rows(); ++i) {
        for (int64_t e = 0; e < pairs.columns(); ++e) {
            const double c = pairs(i, e);
            const double share =
                c == 0.0 ? u(i, index[2 * e]) < u(i, index[2 * e + 1]) : y(i, e) / std::abs(c);
            both(i, 2 * e) = share;
            both(i, 2 * e + 1) = c >= 0.0 ? 1.0 - share : share;
            less(i, e) = c >= 0.0 ? 0.0 : share;
        }
    }
    return {std::move(both), std::move(less)};
}

// Scores of being true from those of both states and of tables of pairs (i, j): linear.
inline Table<double> reduce_states(Matrix<const double> parts, Span<const int64_t> ends,
                                   int64_t n) {
    Table<double> theta(parts.rows(), n);
    for (int64_t b = 0; b < parts.rows(); ++b) {
        for (int64_t i = 0; i < n; ++i) theta(b, i) = parts(b, 2 * i + 1) - parts(b, 2 * i);
        for (int64_t e = 0; 2 * e < ends.size(); ++e) {
            const Span<const double> table = parts[b].slice(2 * n + 4 * e, 2 * n + 4 * e + 4);
            theta(b, ends[2 * e]) += table[2] - table[0];
            theta(b, ends[2 * e + 1]) += table[1] - table[0];
        }
    }
    return theta;
}

// Its transpose: expectations of both states and of tables from u and those of both being true;
// `one` is 0 for their changes.
inline Table<double> expand_states(Matrix<const double> u, Matrix<const double> both,
                                   Span<const int64_t> ends, double one) {
    const int64_t n = u.columns();
    Table<double> parts(u.rows(), 2 * n + 2 * ends.size());
    for (int64_t b = 0; b < u.rows(); ++b) {
        for (int64_t i = 0; i < n; ++i) {
            parts(b, 2 * i) = one - u(b, i);
            parts(b, 2 * i + 1) = u(b, i);
        }
        for (int64_t e = 0; 2 * e < ends.size(); ++e) {
            const double first = u(b, ends[2 * e]), second = u(b, ends[2 * e + 1]);
            const Span<double> table = parts[b].slice(2 * n + 4 * e, 2 * n + 4 * e + 4);
            table[0] = one - first - second + both(b, e);
            table[1] = second - both(b, e);
            table[2] = first - both(b, e);
            table[3] = both(b, e);
        }
    }
    return parts;
}

// How u moves with θ on the face where it lies, and free rows hold: a symmetric map.
inline void respond(Span<const int64_t> start, Span<const int64_t> index, Matrix<const double> g,
                    double q, Matrix<const double> low, Matrix<const double> high,
                    Matrix<const double> u, Matrix<const bool> free, Matrix<const double> d_theta,
                    Matrix<double> d_u) {
    const int64_t n = u.columns(), m = free.columns();
    Work work(n, m);
    for (int64_t b = 0; b < u.rows(); ++b) {
        const Rows rows{start, index, g[b]};
        for (int64_t i = 0; i < n; ++i) {
            work.inverse[i] = low(b, i) < u(b, i) && u(b, i) < high(b, i) ? 1.0 / q : 0.0;
        }
        for (int64_t r = 0; r < m; ++r) {
            double total = 0.0;
            for (int64_t k = start[r]; k < start[r + 1]; ++k) {
                total += rows.g[k] * work.inverse[index[k]] * d_theta(b, index[k]);
            }
            work.gradient[r] = total;
        }
        solve(rows, free[b], work.gradient, work);
        std::copy(d_theta[b].begin(), d_theta[b].end(), work.along.begin());
        for (int64_t r = 0; r < m; ++r) {
            if (free(b, r)) rows.add(r, -work.step[r], work.along);
        }
        for (int64_t i = 0; i < n; ++i) d_u(b, i) = work.inverse[i] * work.along[i];
    }
}

}  // namespace didyma::prices
