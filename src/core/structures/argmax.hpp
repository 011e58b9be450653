// The argmax of a structure, as solvers ask for it.
#pragma once

#include "array.hpp"

namespace didyma {

// Writes the best output's indices to `parts` and `extra_parts`, -1 where there are no more, and
// returns the number of `parts`, or -1 if every output scores -inf. `dims` are the integers that
// describe a batch, `size` those of one instance, `work` and `index` are scratch: zero at the first
// call for an instance and untouched between its calls.
using Kernel = int64_t (*)(Span<const double> scores, Span<const double> extra,
                           Span<const int64_t> dims, Span<const int64_t> size, Span<double> work,
                           Span<int64_t> index, Span<int32_t> parts, Span<int32_t> extra_parts);

class Argmax {
  public:
    virtual ~Argmax() = default;
    virtual int64_t find(Span<const double> scores, Span<const double> extra,
                         Span<const int64_t> dims, Span<const int64_t> size, Span<double> work,
                         Span<int64_t> index, Span<int32_t> parts,
                         Span<int32_t> extra_parts) const = 0;
    // Whether several threads may ask it at once.
    virtual bool concurrent() const { return true; }
};

// A structure of this library.
template <Kernel kernel>
class BuiltIn final : public Argmax {
  public:
    int64_t find(Span<const double> scores, Span<const double> extra, Span<const int64_t> dims,
                 Span<const int64_t> size, Span<double> work, Span<int64_t> index,
                 Span<int32_t> parts, Span<int32_t> extra_parts) const override {
        return kernel(scores, extra, dims, size, work, index, parts, extra_parts);
    }
};

// Instances that are laid out flat; additional scores of one row are those of all instances.
struct Batch {
    Matrix<const double> scores, extra;
    Span<const int64_t> dims;
    Matrix<const int64_t> sizes;
    int64_t n_work, n_index;   // numbers of scratch
    int64_t n_parts, n_extra;  // room for the parts of any output

    int64_t size() const { return scores.rows(); }
    Span<const double> extra_of(int64_t b) const { return extra[extra.rows() > 1 ? b : 0]; }
};

// Scratch of an oracle.
struct Scratch {
    Array<double> work;
    Array<int64_t> index;

    explicit Scratch(const Batch& batch) : work(batch.n_work), index(batch.n_index) {}
    void clear() {
        work.fill(0.0);
        index.fill(0);
    }
};

}  // namespace didyma
