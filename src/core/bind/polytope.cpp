#include "polytope/batch.hpp"

#include "bind/numpy.hpp"
#include "polytope/masks.hpp"
#include "polytope/pool.hpp"

namespace didyma {
namespace {

using Numbers = Matrix<const double>;
using Integers = Span<const int64_t>;
using Indices = Matrix<const int32_t>;

auto solve(const Oracle& oracle, bool aligned, Numbers scores, Numbers extra, Integers dims,
           Matrix<const int64_t> sizes, int64_t n_work, int64_t n_index, int64_t n_parts,
           int64_t n_extra, Integers start, Indices start_parts, Indices start_extra,
           Span<const double> start_weights, Method method, double tol, double stop,
           int64_t max_iter, int64_t n_jobs) {
    const Batch batch{scores, extra, dims, sizes, n_work, n_index, n_parts, n_extra};
    Solved solved =
        solve_batch(oracle, aligned, batch, {start, start_parts, start_extra, start_weights},
                    method, {tol, stop, max_iter}, n_jobs);
    return std::make_tuple(std::move(solved.marginals), std::move(solved.gaps),
                           std::move(solved.iterations), std::move(solved.statuses),
                           std::move(solved.offsets), std::move(solved.parts),
                           std::move(solved.extra_parts), std::move(solved.weights));
}

// Runs the active set from the first n of `active` and `weights`, where the solution is left;
// `point` ends as M y. Returns (n, level, gap, iterations, whether it is optimal).
auto run(Polytope& polytope, Span<int64_t> active, Span<double> weights, int64_t n,
         Span<double> point, double c, double tol, int64_t max_iter) {
    Weighted weighted{active, weights, n};
    const Outcome outcome =
        ActiveSet(active.size()).solve(polytope, weighted, point, c, tol, max_iter);
    return std::make_tuple(weighted.n, outcome.level, outcome.gap, outcome.iterations,
                           outcome.status == OPTIMAL);
}

}  // namespace

void bind_polytope(nb::module_ m) {
    nb::enum_<Method>(m, "Method")
        .value("ACTIVE_SET", Method::ACTIVE_SET)
        .value("VANILLA", Method::VANILLA)
        .value("AWAY", Method::AWAY)
        .value("PAIRWISE", Method::PAIRWISE)
        .value("ARGMAX", Method::ARGMAX);
    m.attr("OPTIMAL") = static_cast<int64_t>(OPTIMAL);
    m.attr("IMPOSSIBLE") = static_cast<int64_t>(IMPOSSIBLE);
    m.def("solve", &solve, Released());
    m.def(
        "apply_derivative",
        [](Integers offsets, Indices parts, Indices extra_parts, bool aligned, Numbers p,
           Numbers p_extra, Matrix<double> out, Matrix<double> out_extra, int64_t n_jobs) {
            apply_derivative({offsets, parts, extra_parts, aligned, p, p_extra, out, out_extra},
                             n_jobs);
        },
        Released());
    m.def(
        "solve_pool",
        [](Numbers gram, Span<const double> theta, Span<int64_t> active, Span<double> weights,
           int64_t n, Span<double> point, double c, double tol, int64_t max_iter) {
            Pool pool(gram, theta);
            return run(pool, active, weights, n, point, c, tol, max_iter);
        },
        Released());
    m.def("expectation", &expectation, Released());
    m.def("extent", &extent, Released());
    m.def("products", &products, Released());
    m.def("value_and_expectation", &value_and_expectation, Released());
}

}  // namespace didyma
