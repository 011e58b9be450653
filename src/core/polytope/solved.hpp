// What a projection onto the hulls of a batch of structures finds.
#pragma once

#include "array.hpp"

namespace didyma::polytope {

enum Status : int64_t { OPTIMAL, LIMIT, STALLED, FULL, IMPOSSIBLE };

// The vertices of all instances stand one after the other, those of instance b in rows offsets[b]
// to offsets[b + 1].
struct Solved {
    Table<double> marginals;
    Array<double> gaps;
    Array<int64_t> iterations, statuses, offsets;
    Table<int32_t> parts, extra_parts;
    Array<double> weights;
    // Cholesky factors of the vertices of each instance, row after row without the zeros; empty
    // where nobody will ask for derivatives.
    Array<double> factors;

    Solved(int64_t n_instances, int64_t dimension)
        : marginals(n_instances, dimension),
          gaps(n_instances),
          iterations(n_instances),
          statuses(n_instances),
          offsets(n_instances + 1),
          factors(0) {
        offsets[0] = 0;
    }
};

}  // namespace didyma::polytope
