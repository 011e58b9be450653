// What a learner asks of a task: the most violated cut of one example.
#pragma once

#include "array.hpp"

namespace didyma {

// Cuts of the examples of a problem: affine lower bounds loss + direction·w of their risks. Several
// threads may ask at once, each about other examples.
class CutOracle {
  public:
    virtual ~CutOracle() = default;

    // Writes the direction of the most violated cut of example i at w; returns its loss.
    virtual double cut(Span<const double> w, int64_t i, Span<double> direction) const = 0;
};

}  // namespace didyma
