#include "structures/hypergraph.hpp"

#include "bind/numpy.hpp"
#include "structures/derivations.hpp"

namespace didyma {

void bind_hypergraph(nb::module_ m) {
    using namespace hypergraph;
    using Numbers = Matrix<const double>;
    using Integers = Span<const int64_t>;
    m.def("best_derivation", &best_derivation, Released());
    m.def("longest", &longest, Released());
    m.def("reach", &reach, Released());
    m.def("sample", &sample, Released());
    m.def("k_best", &k_best, Released());
    m.def(
        "sums",
        [](Numbers scores, Numbers extra, Integers dims, Matrix<const int64_t> sizes,
           int64_t n_values, Span<double> log_partition, Matrix<double> marginals,
           Matrix<double> extra_marginals) {
            return sums({scores, extra, dims, sizes, n_values}, log_partition, marginals,
                        extra_marginals);
        },
        Released());
    m.def(
        "covariances",
        [](Numbers scores, Numbers extra, Integers dims, Matrix<const int64_t> sizes,
           int64_t n_values, Numbers p, Numbers p_extra, Matrix<double> q, Matrix<double> q_extra) {
            covariances({scores, extra, dims, sizes, n_values}, p, p_extra, q, q_extra);
        },
        Released());
    m.def(
        "third_cumulants",
        [](Numbers scores, Numbers extra, Integers dims, Matrix<const int64_t> sizes,
           int64_t n_values, Numbers p, Numbers p_extra, Numbers r, Numbers r_extra,
           Matrix<double> t, Matrix<double> t_extra) {
            third_cumulants({scores, extra, dims, sizes, n_values}, p, p_extra, r, r_extra, t,
                            t_extra);
        },
        Released());
}

}  // namespace didyma
