// Matching: pairs of rows and columns, each used at most once.
#pragma once

#include "structures/assignment.hpp"

namespace didyma {

// size[0] rows and size[1] of dims[0] columns.
inline int64_t best_matching(Span<const double> scores, Span<const double>,
                             Span<const int64_t> dims, Span<const int64_t> size, Span<double> work,
                             Span<int64_t> index, Span<int32_t> parts, Span<int32_t>) {
    return match(scores, dims[0], size[0], size[1], work, index, parts);
}

}  // namespace didyma
