#include "structures/hypergraph.hpp"

#include "bind/numpy.hpp"
#include "structures/derivations.hpp"

namespace didyma {
namespace {

// A kernel over a batch as Python calls it: the fields of the batch one by one.
template <class Result, class... Arguments>
auto over_batch(Result (*kernel)(const hypergraph::Batch&, Arguments...)) {
    return
        [kernel](Matrix<const double> scores, Matrix<const double> extra, Span<const int64_t> dims,
                 Matrix<const int64_t> sizes, int64_t n_values, Arguments... arguments) {
            return kernel({scores, extra, dims, sizes, n_values}, arguments...);
        };
}

}  // namespace

void bind_hypergraph(nb::module_ m) {
    using namespace hypergraph;
    m.def("longest", &longest, Released());
    m.def("reach", &reach, Released());
    m.def("sample", &sample, Released());
    m.def("k_best", &k_best, Released());
    m.def("sums", over_batch(&sums), Released());
    m.def("covariances", over_batch(&covariances), Released());
    m.def("third_cumulants", over_batch(&third_cumulants), Released());
}

}  // namespace didyma
