// Oracles that know more than a batch has: a user's function, in Python or in C, or a graph.
#pragma once

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bind/numpy.hpp"
#include "polytope/solved.hpp"
#include "structures/argmax.hpp"
#include "structures/route.hpp"

namespace didyma {

// Raises didyma.errors.DataError; needs no GIL.
[[noreturn]] inline void raise_data_error(const std::string& message) {
    nb::gil_scoped_acquire held;
    nb::object error = nb::module_::import_("didyma.errors").attr("DataError")(message);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

// Indices that count through the scores and on through the additional scores, as parts and
// additional ones in ascending order; returns the number of parts. `name` is that of who found
// them.
inline int64_t split_parts(const std::string& name, Span<int64_t> indices, int64_t n_scores,
                           int64_t n_additional, Span<int32_t> parts, Span<int32_t> extra_parts) {
    std::sort(indices.begin(), indices.end());
    const int64_t limit = n_scores + n_additional;
    for (int64_t i = 0; i < indices.size(); ++i) {
        if (indices[i] < 0 || indices[i] >= limit || (i > 0 && indices[i] == indices[i - 1])) {
            raise_data_error(name + " must return different part indices from 0 to " +
                             std::to_string(limit - 1) + ", returned " +
                             std::to_string(indices[i]) +
                             (i > 0 && indices[i] == indices[i - 1] ? " twice" : ""));
        }
    }
    parts.fill(-1);
    extra_parts.fill(-1);
    int64_t count = 0;
    while (count < indices.size() && indices[count] < n_scores) {
        parts[count] = static_cast<int32_t>(indices[count]);
        ++count;
    }
    for (int64_t i = count; i < indices.size(); ++i) {
        extra_parts[i - count] = static_cast<int32_t>(indices[i] - n_scores);
    }
    return count;
}

// What a solve returns to Python, the worst status first.
inline auto as_tuple(polytope::Solved solved) {
    int64_t worst = polytope::OPTIMAL;
    for (const int64_t status : solved.statuses) worst = std::max(worst, status);
    return std::make_tuple(
        worst, std::move(solved.marginals), std::move(solved.gaps), std::move(solved.iterations),
        std::move(solved.statuses), std::move(solved.offsets), std::move(solved.parts),
        std::move(solved.extra_parts), std::move(solved.weights), std::move(solved.factors));
}

// A Python function of scores and additional scores, flat, and of the integers of an instance (its
// row of `sizes`), that returns an array of indices, or None if every output scores -inf. Several
// threads may call it at once if it says so: each holds the GIL, but a solver may release it.
class PythonArgmax final : public Argmax {
  public:
    PythonArgmax(std::string name, nb::callable function, bool concurrent)
        : name_(std::move(name)), function_(std::move(function)), concurrent_(concurrent) {}

    int64_t find(Span<const double> scores, Span<const double> extra, Span<const int64_t>,
                 Span<const int64_t> size, Span<double>, Span<int64_t>, Span<int32_t> parts,
                 Span<int32_t> extra_parts) const override {
        nb::gil_scoped_acquire held;
        nb::object returned =
            call(function_, nb::make_tuple(copy_of(scores), copy_of(extra), copy_of(size)));
        if (returned.is_none()) return -1;
        const auto* array = array_of<const int64_t>(returned, 1);
        if (array == nullptr) throw nb::type_error("expected an array of indices");
        const auto* data =
            static_cast<const int64_t*>(PyArray_DATA(const_cast<PyArrayObject*>(array)));
        const int64_t count = PyArray_DIM(array, 0);
        Array<int64_t> indices(count);
        std::copy(data, data + count, indices.begin());
        return split_parts(name_, indices, scores.size(), extra.size(), parts, extra_parts);
    }
    bool concurrent() const override { return concurrent_; }

  private:
    std::string name_;
    nb::callable function_;
    bool concurrent_;
};

// A user's C function. It gets the scores of an instance, its additional scores, and the shape of
// the scores (`dims`); it writes the indices of the best output's parts, which count as those of
// Structure.argmax do, and returns their number, or -1 if every output scores -inf.
class CFunction final : public Argmax {
  public:
    using Function = int64_t (*)(const double* scores, const double* additional,
                                 const int64_t* shape, int64_t* parts);

    CFunction(std::string name, uintptr_t address)
        : name_(std::move(name)), function_(reinterpret_cast<Function>(address)) {}

    int64_t find(Span<const double> scores, Span<const double> extra, Span<const int64_t> dims,
                 Span<const int64_t>, Span<double>, Span<int64_t> index, Span<int32_t> parts,
                 Span<int32_t> extra_parts) const override {
        const int64_t count = function_(scores.data(), extra.data(), dims.data(), index.data());
        if (count < 0) return -1;
        if (count > index.size()) {
            raise_data_error(name_ +
                             " must return as many part indices as there are scores at "
                             "most, " +
                             std::to_string(index.size()) + ", returned " + std::to_string(count));
        }
        return split_parts(name_, index.first(count), scores.size(), extra.size(), parts,
                           extra_parts);
    }

  private:
    std::string name_;
    Function function_;
};

// Shortest paths in a graph. The ends (source, target) are one row for all instances, or one for
// each of the keys that instances have as the first of their `size`.
class Route final : public Argmax {
  public:
    Route(Span<const int64_t> graph, Span<const int64_t> keys, Matrix<const int64_t> ends)
        : graph_(graph.begin(), graph.end()), ends_(ends.rows()) {
        for (int64_t i = 0; i < ends.rows(); ++i) {
            ends_[i] = {ends[i][0], ends[i][1]};
            if (i < keys.size()) rows_[keys[i]] = i;
        }
    }

    int64_t find(Span<const double> scores, Span<const double>, Span<const int64_t>,
                 Span<const int64_t> size, Span<double>, Span<int64_t>, Span<int32_t> parts,
                 Span<int32_t>) const override {
        const auto [source, target] = ends_[size.size() ? rows_.at(size[0]) : 0];
        const Span<const int64_t> graph(graph_.data(), static_cast<int64_t>(graph_.size()));
        const int64_t count = route::best_path(scores, graph, source, target, parts);
        if (count == route::NEGATIVE_CYCLE) {
            raise_data_error(
                "scores: a cycle has negative length, so that no path is the shortest: keep "
                "lengths from 0 up (scores = -softplus(...), and noise with multiplicative=True), "
                "or take didyma.solvers.Flow, whose outputs may run in circles");
        }
        return count;
    }

  private:
    std::vector<int64_t> graph_;
    std::vector<std::pair<int64_t, int64_t>> ends_;
    std::unordered_map<int64_t, int64_t> rows_;
};

}  // namespace didyma
