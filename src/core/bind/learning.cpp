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

    double cut(Span<const double> w, int64_t i, int64_t, Span<double> direction) const override {
        nb::gil_scoped_acquire gil;
        const nb::object answer = call(function_, nb::make_tuple(copy_of(w), i));
        if (!PySequence_Check(answer.ptr()) || nb::len(answer) != 2) {
            refuse(i, "(direction, loss)", answer);
        }
        const nb::object numbers = nb::steal(
            PyArray_FROMANY(nb::object(answer[0]).ptr(), NPY_FLOAT64, 0, 0, NPY_ARRAY_CARRAY_RO));
        if (!numbers.is_valid()) throw nb::python_error();
        auto* given = reinterpret_cast<PyArrayObject*>(numbers.ptr());
        if (PyArray_NDIM(given) != 1 || PyArray_DIM(given, 0) != direction.size()) {
            refuse(i, "a direction of shape (" + std::to_string(direction.size()) + ",)",
                   numbers.attr("shape"));
        }
        const auto* first = static_cast<const double*>(PyArray_DATA(given));
        std::copy(first, first + direction.size(), direction.begin());
        return nb::cast<double>(nb::float_(nb::object(answer[1])));
    }

  private:
    [[noreturn]] static void refuse(int64_t i, const std::string& expected, nb::handle found) {
        const std::string example = "cut of example " + std::to_string(i);
        const std::string what = ": expected " + expected + ", found " + nb::repr(found).c_str();
        throw nb::value_error((example + what).c_str());
    }

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
    nb::class_<CutOracle>(m, "CutOracle")
        .def(
            "cut",
            [](const CutOracle& self, Span<const double> w, int64_t i, Span<double> direction) {
                return self.cut(w, i, i, direction);
            },
            Released());
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
