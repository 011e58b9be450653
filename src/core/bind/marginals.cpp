#include "bind/numpy.hpp"
#include "structures/forward_backward.hpp"
#include "structures/laplacian.hpp"
#include "structures/tree_sums.hpp"
#include "structures/wilson.hpp"

namespace didyma {
namespace {

using Numbers = Cube<const double>;
using Lengths = Span<const int64_t>;

// What is lost below 1e-300 grows by at most a division by a pivot.
constexpr double LEAST_PIVOT = 1e-120, LEAST_TOTAL = 1e-200;

// The same numbers, four of them a jet: (B, n, 4 n) as (B, n, n).
template <class To, class From>
Cube<To> as_jets(Cube<From> numbers) {
    return {reinterpret_cast<To*>(numbers.data()), numbers.depth(), numbers.rows(),
            numbers.columns() / 4};
}

}  // namespace

void bind_marginals(nb::module_ m) {
    m.def("normalise", &normalise, Released());
    m.def("tree_marginals", &tree_marginals, Released());
    m.def("tree_covariances", &tree_covariances, Released());
    m.def("sample_trees", &sample_trees, Released());
    m.def("forward_backward", &forward_backward, Released());
    m.def(
        "sum_over_projective_trees",
        [](bool logarithms, Numbers weights, Lengths lengths, bool single_root,
           Span<double> log_partition, Cube<double> marginals) {
            if (logarithms) {
                sum_over_projective_trees<Logarithms>(weights, lengths, single_root, LOG_ZERO,
                                                      log_partition, marginals);
            } else {
                sum_over_projective_trees<Probabilities>(weights, lengths, single_root, LEAST_TOTAL,
                                                         log_partition, marginals);
            }
        },
        Released());
    m.def(
        "sum_over_trees",
        [](bool logarithms, Numbers weights, Lengths lengths, Span<double> log_partition,
           Cube<double> marginals) {
            if (logarithms) {
                sum_over_trees<Logarithms>(weights, lengths, LOG_ZERO, log_partition, marginals);
            } else {
                sum_over_trees<Probabilities>(weights, lengths, LEAST_PIVOT, log_partition,
                                              marginals);
            }
        },
        Released());
    m.def(
        "derivatives_over_trees",
        [](Numbers weights, Lengths lengths, Span<double> log_partition, Cube<double> marginals) {
            sum_over_trees<Derivatives>(as_jets<const Jet>(weights), lengths, Derivatives::ZERO,
                                        log_partition, as_jets<Jet>(marginals));
        },
        Released());
}

}  // namespace didyma
