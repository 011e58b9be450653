#include "bind/numpy.hpp"
#include "bind/oracles.hpp"

#include "structures/assignment.hpp"
#include "structures/choice.hpp"
#include "structures/elimination.hpp"
#include "structures/forest.hpp"
#include "structures/hypergraph.hpp"
#include "structures/projective_tree.hpp"
#include "structures/chain.hpp"
#include "structures/top_k.hpp"
#include "structures/tree.hpp"

namespace didyma {
namespace {

template <Kernel kernel>
void bind_kernel(nb::module_& m, const char* name) {
    m.attr(name) =
        nb::cast(static_cast<Argmax*>(new BuiltIn<kernel>), nb::rv_policy::take_ownership);
}

// The best output of each instance: parts, additional parts, and whether there is one.
std::tuple<Table<int32_t>, Table<int32_t>, Array<bool>> best_outputs(
    const Argmax& oracle, Matrix<const double> scores, Matrix<const double> extra,
    Span<const int64_t> dims, Matrix<const int64_t> sizes, int64_t n_work, int64_t n_index,
    int64_t n_parts, int64_t n_extra) {
    const Batch batch{scores, extra, dims, sizes, n_work, n_index, n_parts, n_extra};
    Table<int32_t> parts(batch.size(), n_parts, -1), extra_parts(batch.size(), n_extra, -1);
    Array<bool> possible(batch.size());
    Scratch scratch(batch);
    for (int64_t b = 0; b < batch.size(); ++b) {
        scratch.clear();
        possible[b] = oracle.find(scores[b], batch.extra_of(b), dims, sizes[b], scratch.work,
                                  scratch.index, parts[b], extra_parts[b]) >= 0;
    }
    return {std::move(parts), std::move(extra_parts), std::move(possible)};
}

}  // namespace

void bind_structures(nb::module_ m) {
    nb::class_<Argmax>(m, "Argmax").def("__call__", &Argmax::find, Released());
    nb::class_<CFunction, Argmax>(m, "CFunction").def(nb::init<std::string, uintptr_t>());
    nb::class_<PythonArgmax, Argmax>(m, "PythonArgmax")
        .def(nb::init<std::string, nb::callable, bool>());
    nb::class_<Route, Argmax>(m, "Route")
        .def(nb::init<Span<const int64_t>, Span<const int64_t>, Matrix<const int64_t>>());
    bind_kernel<best_choice>(m, "choice");
    bind_kernel<eliminate>(m, "factor_graph");
    bind_kernel<best_forest>(m, "forest");
    bind_kernel<hypergraph::best_derivation>(m, "hypergraph");
    bind_kernel<best_matching>(m, "matching");
    bind_kernel<best_projective_tree>(m, "projective_tree");
    bind_kernel<best_chain>(m, "chain");
    bind_kernel<best_top_k>(m, "top_k");
    bind_kernel<best_tree>(m, "tree");
    m.def("best_outputs", &best_outputs, Released());
    m.def("k_best_chains", &k_best_chains, Released());
    m.def("projective_tree_scratch", [](int64_t n) {
        return std::make_tuple(projective_tree::n_work(n), projective_tree::n_index(n));
    });
    m.def(
        "sparsemax",
        [](Matrix<const double> scores, Matrix<const int64_t> sizes) {
            return as_tuple(sparsemax(scores, sizes));
        },
        Released());
    m.def("sparsemax_derivative", &sparsemax_derivative, Released());
    m.def("tree_scratch",
          [](int64_t n) { return std::make_tuple(tree::n_work(n), tree::n_index(n)); });
}

}  // namespace didyma
