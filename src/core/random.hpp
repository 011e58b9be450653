// Numbers of a NumPy generator: the same ones that its own methods would give.
#pragma once

#include <numpy/random/bitgen.h>

namespace didyma {

class Random {
  public:
    Random() = default;
    explicit Random(bitgen_t* bits) : bits_(bits) {}
    // Uniform in [0, 1), as Generator.random.
    double uniform() const { return bits_->next_double(bits_->state); }

  private:
    bitgen_t* bits_ = nullptr;
};

}  // namespace didyma
