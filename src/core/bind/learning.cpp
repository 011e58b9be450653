#include "learning/bcfw.hpp"
#include "learning/perceptron.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"

namespace didyma {
namespace {

// Cuts by a function cut(w, i) -> (direction, loss) in Python.
class PythonCut : public CutOracle {
  public:
    explicit PythonCut(nb::object function) : function_(std::move(function)) {}

    double cut(Span<const double> w, int64_t i, Span<double> direction) const override {
        nb::gil_scoped_acquire gil;
        npy_intp shape[] = {w.size()};
        // A copy, as the function may keep it.
        nb::object weights = nb::steal(PyArray_SimpleNew(1, shape, NPY_FLOAT64));
        if (!weights.is_valid()) throw nb::python_error();
        auto* array = reinterpret_cast<PyArrayObject*>(weights.ptr());
        std::copy(w.begin(), w.end(), static_cast<double*>(PyArray_DATA(array)));
        const nb::object answer = function_(weights, i);
        const nb::object given = nb::steal(
            PyArray_FROMANY(nb::object(answer[0]).ptr(), NPY_FLOAT64, 1, 1, NPY_ARRAY_CARRAY_RO));
        if (!given.is_valid()) throw nb::python_error();
        auto* numbers = reinterpret_cast<PyArrayObject*>(given.ptr());
        if (PyArray_DIM(numbers, 0) != direction.size()) {
            throw nb::value_error(("cut of example " + std::to_string(i) + ": expected " +
                                   std::to_string(direction.size()) + " numbers, found " +
                                   std::to_string(PyArray_DIM(numbers, 0)))
                                      .c_str());
        }
        const auto* first = static_cast<const double*>(PyArray_DATA(numbers));
        std::copy(first, first + direction.size(), direction.begin());
        return nb::cast<double>(nb::float_(nb::object(answer[1])));
    }

  private:
    nb::object function_;
};

using PlaneArrays =
    std::tuple<Cube<double>, Matrix<double>, Matrix<double>, Cube<double>, Span<int64_t>>;

Planes planes_of(const PlaneArrays& arrays) {
    const auto& [g, b, alpha, gram, size] = arrays;
    return {g, b, alpha, gram, size};
}

std::tuple<double, double> optimise(const PlaneArrays& planes, int64_t i, double s,
                                    Span<double> w) {
    Array<double> slack(planes_of(planes).slots()), moves(slack.size());
    return planes_of(planes).optimise(i, s, w, slack, moves);
}

}  // namespace

void bind_learning(nb::module_ m) {
    nb::class_<CutOracle>(m, "CutOracle").def("cut", &CutOracle::cut, Released());
    nb::class_<PythonCut, CutOracle>(m, "PythonCut").def(nb::init<nb::object>());
    m.def(
        "insert",
        [](const PlaneArrays& planes, int64_t i, Span<const double> direction, double loss) {
            planes_of(planes).insert(i, direction, loss);
        },
        Released());
    m.def("optimise", &optimise, Released());
    m.def(
        "sweep",
        [](const CutOracle& oracle, Span<const int64_t> order, const PlaneArrays& planes,
           Span<const double> scales, Span<double> gaps,
           Span<double> w) { return sweep(oracle, order, planes_of(planes), scales, gaps, w); },
        Released());
    m.def(
        "sweep_planes",
        [](Span<const int64_t> order, const PlaneArrays& planes, Span<const double> scales,
           Span<double> w) { return sweep_planes(order, planes_of(planes), scales, w); },
        Released());
    m.def("perceptron_epoch", &perceptron_epoch, Released());
}

}  // namespace didyma
