// The module of one build: a submodule for each family of kernels.
#define DIDYMA_IMPORTS_NUMPY
#include "bind/numpy.hpp"

#include "bind/families.hpp"
#include "sums.hpp"

static int import_numpy() {
    import_array1(-1);
    return 0;
}

NB_MODULE(DIDYMA_MODULE, m) {
    if (import_numpy() != 0) throw nb::python_error();
    nb::set_leak_warnings(false);  // arrays and functions may outlive the interpreter's shutdown
    m.attr("STRANDS") = didyma::STRANDS;
    m.attr("CHECKED") = didyma::CHECKED;
    m.attr("SOURCES") = DIDYMA_SOURCES;
    didyma::bind_assignment(m.def_submodule("assignment"));
    didyma::bind_learning(m.def_submodule("learning"));
    didyma::bind_rows(m.def_submodule("rows"));
    nb::module_ ranking = m.def_submodule("ranking");
    didyma::bind_ranking(ranking);
    didyma::bind_ranking_problem(ranking);
    didyma::bind_data(m.def_submodule("data"));
    didyma::bind_hypergraph(m.def_submodule("hypergraph"));
    didyma::bind_prices(m.def_submodule("prices"));
    didyma::bind_nbest(m.def_submodule("nbest"));
    didyma::bind_measures(m.def_submodule("measures"));
    didyma::bind_sorting(m.def_submodule("sorting"));
    didyma::bind_applications(m.def_submodule("applications"));
    didyma::bind_signals(m.def_submodule("signals"));
    didyma::bind_structures(m.def_submodule("structures"));
    didyma::bind_polytope(m.def_submodule("polytope"));
    didyma::bind_sums(m.def_submodule("sums"));
    nb::module_ text = m.def_submodule("text");
    didyma::bind_text(text);
    didyma::bind_text_features(text);
    didyma::bind_marginals(m.def_submodule("marginals"));
}
