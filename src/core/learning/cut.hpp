// What a learner asks of a task: the most violated cut of one example.
#pragma once

#include "array.hpp"

namespace didyma {

// Cuts of the examples of a problem: affine lower bounds loss + direction·w of their risks. Several
// threads may ask at once, each about other examples.
class CutOracle {
  public:
    virtual ~CutOracle() = default;

    // Writes the direction of the most violated cut of example i at w; returns its loss. The
    // example that will be asked about next may be brought into the cache meanwhile.
    virtual double cut(Span<const double> w, int64_t i, int64_t next,
                       Span<double> direction) const = 0;
};

// The example behind place t of an order; the last one is its own.
inline int64_t successor(Span<const int64_t> order, int64_t t) {
    return order[std::min(t + 1, order.size() - 1)];
}

}  // namespace didyma
