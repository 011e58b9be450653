#include "ranking/problem.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"
#include "ranking/row_bcfw.hpp"

namespace didyma {
namespace {

void sweep_rows(const RankingProblem& problem, const BinnedRows& storage, Span<const int64_t> order,
                Matrix<double> planes, Matrix<double> losses, Matrix<double> alpha,
                Span<const double> scales, Span<double> gaps, Span<double> v, Span<double> table,
                bool thorough) {
    RowSweep sweep(problem, storage, {planes, losses, alpha, scales, gaps, v, table});
    for (const int64_t i : order) thorough ? sweep.visit_thoroughly(i) : sweep.visit(i);
}

}  // namespace

void bind_ranking_problem(nb::module_ m) {
    nb::class_<RankingProblem, CutOracle>(m, "RankingProblem")
        .def(nb::init<const Rows&, const RankingOracle&, Span<const int64_t>, Span<const int64_t>,
                      Span<const int32_t>, Span<const int64_t>>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>())
        .def("cut_all", &RankingProblem::cut_all, Released())
        .def("score", &RankingProblem::score, Released())
        .def("risks", &RankingProblem::risks, Released())
        .def("respond", &RankingProblem::respond, Released())
        .def("gather", &RankingProblem::gather, Released())
        .def("gather_each", &RankingProblem::gather_each, Released());
    m.def("sweep_rows", &sweep_rows, Released());
}

}  // namespace didyma
