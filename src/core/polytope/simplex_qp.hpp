// Columns that may be combined, and the few that are, with their weights: what methods for
// min ½‖M y‖² − θ'y over the simplex have in common.
#pragma once

#include "polytope/cholesky.hpp"
#include "polytope/solved.hpp"

namespace didyma::polytope {

// Columns m_s with offsets θ_s in numbered slots, named by an oracle.
class Polytope {
  public:
    virtual ~Polytope() = default;
    // Slot of a column that maximises θ_s − m_s·u; a new one goes into slot `spare`.
    virtual int64_t argmax(Span<const double> u, int64_t spare) = 0;
    // m_slot·m_slot; out[i] = m_slot·m_active[i].
    virtual double gram(int64_t slot, Span<const int64_t> active, Span<double> out) = 0;
    // ‖M y‖²; u = M y, products[i] = m_active[i]·u.
    virtual double combine(Span<const int64_t> active, Span<const double> y, Span<double> u,
                           Span<double> products) = 0;
    // θ of each slot, and what rounding may have done to θ_s − m_s·u.
    virtual Span<const double> theta() const = 0;
    virtual Span<const double> noise() const = 0;
};

// How a method ended. `level` is the mean of θ_s − m_s·u under the weights, and the gap is how far
// the best column stands above it.
struct Outcome {
    double level = INF, gap = INF;
    int64_t iterations = 0;
    Status status = LIMIT;
};

// A feasible point: slots with weights. A method starts at one and leaves the solution there.
struct Weighted {
    Span<int64_t> slots;
    Span<double> weights;
    int64_t n = 0;

    int64_t capacity() const { return slots.size(); }
    Span<const int64_t> active() const { return slots.first(n); }
    Span<const double> y() const { return weights.first(n); }

    void add(int64_t slot, double weight) {
        slots[n] = slot;
        weights[n++] = weight;
    }
    void remove(int64_t i) {
        --n;
        for (int64_t r = i; r < n; ++r) {
            slots[r] = slots[r + 1];
            weights[r] = weights[r + 1];
        }
    }
    bool any_between(double low, double high) const {
        for (int64_t i = 0; i < n; ++i) {
            if (low < weights[i] && weights[i] < high) return true;
        }
        return false;
    }
};

// Marks the slots of the active columns; the first that is free, or the last one.
inline int64_t spare_slot(const Weighted& point, Span<bool> used) {
    used.fill(false);
    for (int64_t i = 0; i < point.n; ++i) used[point.slots[i]] = true;
    int64_t spare = 0;
    while (spare < used.size() - 1 && used[spare]) ++spare;
    return spare;
}

}  // namespace didyma::polytope
