#include "polytope/batch.hpp"

#include "bind/numpy.hpp"
#include "bind/oracles.hpp"
#include "polytope/masks.hpp"
#include "polytope/pool.hpp"

namespace didyma {
namespace {

using namespace polytope;

using Numbers = Matrix<const double>;
using Integers = Span<const int64_t>;
using Indices = Matrix<const int32_t>;

auto solve(const Argmax& oracle, bool aligned, Numbers scores, Numbers extra, Integers dims,
           Matrix<const int64_t> sizes, int64_t n_work, int64_t n_index, int64_t n_parts,
           int64_t n_extra, Integers start, Indices start_parts, Indices start_extra,
           Span<const double> start_weights, Method method, double tol, double stop,
           int64_t max_iter, int64_t n_jobs) {
    const Batch batch{scores, extra, dims, sizes, n_work, n_index, n_parts, n_extra};
    return as_tuple(solve_batch(oracle, aligned, batch,
                                {start, start_parts, start_extra, start_weights}, method,
                                {tol, stop, max_iter}, n_jobs));
}

// Columns that a Python function names: at u it returns the m_s and θ_s that maximise θ_s − m_s·u.
class PythonColumns final : public Polytope {
  public:
    PythonColumns(nb::callable oracle, int64_t dimension, int64_t slots)
        : oracle_(std::move(oracle)),
          columns_(slots, dimension),
          theta_(slots, 0.0),
          noise_(slots, 0.0),
          filled_(slots, false) {}

    int64_t argmax(Span<const double> u, int64_t spare) override {
        nb::gil_scoped_acquire held;
        nb::object returned = call(oracle_, nb::make_tuple(copy_of(u)));
        const auto [column, offset] = nb::cast<std::tuple<Span<const double>, double>>(returned);
        if (column.size() != columns_.columns()) {
            raise_data_error("expected a column of " + std::to_string(columns_.columns()) +
                             " numbers, found " + std::to_string(column.size()));
        }
        for (int64_t s = 0; s < theta_.size(); ++s) {
            const bool same = filled_[s] && theta_[s] == offset &&
                              std::equal(column.begin(), column.end(), columns_[s].begin());
            if (same) return s;
        }
        std::copy(column.begin(), column.end(), columns_[spare].begin());
        theta_[spare] = offset;
        filled_[spare] = true;
        return spare;
    }
    double gram(int64_t slot, Span<const int64_t> active, Span<double> out) override {
        for (int64_t i = 0; i < active.size(); ++i) {
            out[i] = dot(columns_[active[i]], columns_[slot]);
        }
        return dot(columns_[slot], columns_[slot]);
    }
    double combine(Span<const int64_t> active, Span<const double> y, Span<double> u,
                   Span<double> products) override {
        u.fill(0.0);
        for (int64_t i = 0; i < y.size(); ++i) axpy(y[i], columns_[active[i]], u);
        for (int64_t i = 0; i < y.size(); ++i) products[i] = dot(columns_[active[i]], u);
        return dot(u, u);
    }
    Span<const double> theta() const override { return theta_; }
    Span<const double> noise() const override { return noise_; }

  private:
    nb::callable oracle_;
    Table<double> columns_;
    Array<double> theta_, noise_;
    Array<bool> filled_;
};

auto project(nb::callable oracle, int64_t dimension, double tol, int64_t max_iter) {
    const int64_t capacity = std::min(dimension + 1, max_iter) + 1;
    PythonColumns columns(std::move(oracle), dimension, capacity + 1);
    Array<double> point(dimension, 0.0), weights(capacity);
    Array<int64_t> active(capacity);
    Weighted start{active, weights};
    start.add(columns.argmax(point, 0), 1.0);
    const double norm = columns.gram(0, {}, {});
    const Outcome outcome =
        ActiveSet(capacity).solve(columns, start, point, norm > 0.0 ? norm : 1.0, tol, max_iter);
    Array<int64_t> slots(start.n);
    Array<double> probabilities(start.n);
    std::copy(start.active().begin(), start.active().end(), slots.begin());
    std::copy(start.y().begin(), start.y().end(), probabilities.begin());
    return std::make_tuple(std::move(slots), std::move(probabilities), std::move(point),
                           outcome.level, outcome.gap, outcome.status == OPTIMAL,
                           outcome.iterations);
}

// Runs the active set from the first n of `active` and `weights`, where the solution is left;
// `point` ends as G y. Returns how many are active, level, gap, whether it is optimal, iterations.
auto minimise_over_columns(Numbers gram, Span<const double> theta, Span<int64_t> active,
                           Span<double> weights, int64_t n, Span<double> point, double c,
                           double tol, int64_t max_iter) {
    Pool pool(gram, theta);
    Weighted start{active, weights, n};
    const Outcome outcome = ActiveSet(active.size()).solve(pool, start, point, c, tol, max_iter);
    return std::make_tuple(start.n, outcome.level, outcome.gap, outcome.status == OPTIMAL,
                           outcome.iterations);
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
    nb::class_<polytope::Factor>(m, "Factor")
        .def(nb::init<int64_t>())
        .def("solve_lower", &polytope::Factor::solve_lower)
        .def("append", &polytope::Factor::append)
        .def("remove", &polytope::Factor::remove)
        .def("minimise", &polytope::Factor::minimise);
    m.def("solve", &solve, Released());
    m.def(
        "apply_derivative",
        [](Integers offsets, Indices parts, Indices extra_parts, Span<const double> factors,
           bool aligned, Numbers p, Numbers p_extra, int64_t n_jobs) {
            Table<double> out(p.rows(), p.columns(), 0.0);
            Table<double> out_extra(p_extra.rows(), p_extra.columns(), 0.0);
            apply_derivative(
                {offsets, parts, extra_parts, factors, aligned, p, p_extra, out, out_extra},
                n_jobs);
            return std::make_tuple(std::move(out), std::move(out_extra));
        },
        Released());
    m.def("minimise_over_columns", &minimise_over_columns, Released());
    m.def("project", &project);
    m.def("expectation", &expectation, Released());
    m.def("extent", &extent, Released());
    m.def("forbid", &forbid, Released());
    m.def("has_masks", &has_masks, Released());
    m.def("products", &products, Released());
    m.def("value_and_expectation", &value_and_expectation, Released());
}

}  // namespace didyma
