#include "applications/clusters.hpp"
#include "applications/motif.hpp"
#include "applications/trigram.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"
#include "rows/dense.hpp"

namespace didyma {
namespace {

using RunArrays = std::tuple<Span<const int64_t>, Span<const int64_t>, Span<const double>>;
using ModelArrays = std::tuple<Matrix<const int64_t>, Matrix<const double>, RunArrays, RunArrays>;
using WindowArrays = std::tuple<motif::Codes, motif::Kmers, int64_t, int64_t, Span<const int64_t>,
                                Span<const int64_t>>;

trigram::Runs runs_of(const RunArrays& arrays) {
    const auto& [starts, tags, values] = arrays;
    return {starts, tags, values};
}

trigram::Model model_of(const ModelArrays& arrays) {
    const auto& [rows, steps, lexicon, contexts] = arrays;
    return {rows, steps, runs_of(lexicon), runs_of(contexts)};
}

motif::Windows windows_of(const WindowArrays& arrays) {
    const auto& [codes, kmers, length, strands, starts, positions] = arrays;
    return {codes, kmers, length, strands, starts, positions};
}

// Sums over pairs of mentions, whose features X are bytes or numbers.
template <class T>
void bind_pairs(nb::module_& m) {
    m.def(
        "score_pairs",  // out[r] = X[pairs[r]] · w
        [](Matrix<const T> X, Span<const int64_t> pairs, Span<const double> w, Span<double> out) {
            DenseRows<T>(X).score(pairs, w, out, {});
        },
        Released());
    m.def(
        "add_pairs",  // out += Σ_r coef[r] X[pairs[r]]
        [](Matrix<const T> X, Span<const int64_t> pairs, Span<const double> coef,
           Span<double> out) { DenseRows<T>(X).combine(pairs, coef, out); },
        Released());
}

}  // namespace

void bind_applications(nb::module_ m) {
    using Integers = Span<const int64_t>;
    using Numbers = Span<const double>;
    m.def(
        "best_tags",
        [](const ModelArrays& model, Integers entries, Integers starts, Span<int64_t> tags) {
            trigram::best_tags(model_of(model), entries, starts, tags);
        },
        Released());
    m.def(
        "n_best_tags",
        [](const ModelArrays& model, Integers entries, Integers starts, Matrix<int64_t> tags,
           Matrix<double> totals) {
            trigram::n_best_tags(model_of(model), entries, starts, tags, totals);
        },
        Released());
    m.def("agglomerate", &agglomerate, Released());
    m.def("spanning_forest", &spanning_forest, Released());
    bind_pairs<uint8_t>(m);
    bind_pairs<float>(m);
    bind_pairs<double>(m);
    m.def("number_words", &motif::number_words, Released());
    m.def("tabulate", &motif::tabulate, Released());
    m.def("scan_runs", &motif::scan_runs, Released());
    m.def("improve", &motif::improve, Released());
    m.def(
        "add_sites",
        [](const WindowArrays& windows, Integers sites, Numbers weights, Span<double> out) {
            windows_of(windows).add_sites(sites, weights, out);
        },
        Released());
    m.def(
        "count_sites",
        [](const WindowArrays& windows, Integers sites, int64_t skip, Matrix<double> counts) {
            motif::count_sites(windows_of(windows), sites, skip, counts);
        },
        Released());
    m.def(
        "sample_sites",
        [](const WindowArrays& windows, Numbers expected, Numbers prior, Numbers uniform,
           Matrix<double> counts, Span<int64_t> sites) {
            motif::sample_sites(windows_of(windows), expected, prior, uniform, counts, sites);
        },
        Released());
    nb::class_<motif::MotifProblem, CutOracle>(m, "MotifProblem")
        .def(
            "__init__",
            [](motif::MotifProblem* problem, const WindowArrays& windows, Integers signs,
               Integers gold, Numbers options) {
                new (problem) motif::MotifProblem(windows_of(windows), signs, gold, options);
            },
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def("answer", &motif::MotifProblem::answer, Released());
}

}  // namespace didyma
