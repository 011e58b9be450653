// The dual of one example over the few planes (cuts) that are remembered of it.
//
// An example's risk is max_k b_k + g_k·w; its dual variables are weights α on the simplex over its
// planes, and it contributes -s Σ α_k g_k to w, where s = C c_i.
#pragma once

#include <cmath>
#include <tuple>

#include "sums.hpp"

namespace didyma {

// Slots of example i: g[i, k], b[i, k], alpha[i, k] and the Gram matrix gram[i] of its planes;
// size[i] are in use.
struct Planes {
    Cube<double> g;
    Matrix<double> b, alpha;
    Cube<double> gram;
    Span<int64_t> size;

    int64_t slots() const { return g.rows(); }

    // Remembers a new plane of example i, in place of an unused one or after merging the two
    // lightest.
    void insert(int64_t i, Span<const double> direction, double loss) const {
        const Span<double> weight = alpha[i];
        int64_t slot = size[i];
        if (slot < slots()) {
            size[i] = slot + 1;
        } else {
            int64_t next_lightest = weight[1] < weight[0] ? 0 : 1;
            slot = 1 - next_lightest;
            for (int64_t k = 2; k < slots(); ++k) {
                if (weight[k] < weight[slot]) {
                    next_lightest = slot;
                    slot = k;
                } else if (weight[k] < weight[next_lightest]) {
                    next_lightest = k;
                }
            }
            if (weight[slot] > 0.0) merge(i, slot, next_lightest);
        }
        std::copy(direction.begin(), direction.end(), g[i][slot].begin());
        b(i, slot) = loss;
        weight[slot] = 0.0;
        fill_gram(i, size[i], slot);
    }

    // Pairwise Frank-Wolfe steps on example i, with its Gram matrix. Returns its gap before (the
    // largest slack less the mean under α) and the increase of the dual. `slack` and `moves` are
    // scratch, one number for each slot.
    std::tuple<double, double> optimise(int64_t i, double s, Span<double> w, Span<double> slack,
                                        Span<double> moves) const {
        constexpr int STEPS = 10;  // enough for the handful of planes that matter
        const Matrix<double> planes = g[i], products = gram[i];
        const Span<double> weight = alpha[i];
        const int64_t n = size[i];
        double before = 0.0, increase = 0.0;
        int64_t best = 0;
        for (int64_t k = 0; k < n; ++k) {
            slack[k] = b(i, k) + dot(planes[k], w);
            before -= weight[k] * slack[k];
            moves[k] = 0.0;
            if (slack[k] > slack[best]) best = k;
        }
        before += slack[best];
        for (int step = 0; step < STEPS; ++step) {
            int64_t worst = -1;
            best = 0;
            for (int64_t k = 0; k < n; ++k) {
                if (slack[k] > slack[best]) best = k;
                if (weight[k] > 0.0 && (worst < 0 || slack[k] < slack[worst])) worst = k;
            }
            const double gap = slack[best] - slack[worst];
            if (gap <= 1e-14 * (1.0 + std::abs(slack[best]))) break;
            const double curvature =
                s * (products(best, best) + products(worst, worst) - 2.0 * products(best, worst));
            double moved = weight[worst];
            if (gap < moved * curvature) moved = gap / curvature;
            increase += s * moved * (gap - 0.5 * moved * curvature);
            weight[worst] = moved == weight[worst] ? 0.0 : weight[worst] - moved;
            weight[best] += moved;
            moves[best] += moved;
            moves[worst] -= moved;
            for (int64_t k = 0; k < n; ++k) {
                slack[k] -= moved * s * (products(k, best) - products(k, worst));
            }
        }
        for (int64_t k = 0; k < n; ++k) {
            if (moves[k] != 0.0) axpy(-s * moves[k], planes[k], w);
        }
        return {before, increase};
    }

  private:
    void fill_gram(int64_t i, int64_t n, int64_t slot) const {
        for (int64_t k = 0; k < n; ++k) {
            const double product = dot(g[i][k], g[i][slot]);
            gram(i, slot, k) = product;
            gram(i, k, slot) = product;
        }
    }

    // Replaces two planes by their weighted mean, itself a plane; slot `first` becomes free.
    void merge(int64_t i, int64_t first, int64_t second) const {
        const double weight = alpha(i, first) + alpha(i, second);
        const double share = alpha(i, first) / weight;
        const Span<double> a = g[i][first], mean = g[i][second];
        for (int64_t f = 0; f < a.size(); ++f) mean[f] = share * a[f] + (1.0 - share) * mean[f];
        b(i, second) = share * b(i, first) + (1.0 - share) * b(i, second);
        alpha(i, first) = 0.0;
        alpha(i, second) = weight;
        fill_gram(i, slots(), second);
    }
};

}  // namespace didyma
