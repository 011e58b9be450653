// The module of one build: a submodule for each family of kernels.
#define DIDYMA_IMPORTS_NUMPY
#include "bind/numpy.hpp"

#include <chrono>
#include <exception>
#include <thread>
#if defined(__GLIBC__)
#include <pthread.h>
#include <unwind.h>
#endif

#include "bind/families.hpp"
#include "sums.hpp"

static int import_numpy() {
    import_array1(-1);
    return 0;
}

// Before Python 3.14 an interpreter that ends unwinds each daemon thread that comes back to it
// (pthread_exit). Where the unwinding meets a function that throws nothing, of ours, of nanobind's
// or of NumPy's, the process would be aborted: such a thread sleeps instead until the process is
// gone. Whatever else terminates goes on to do so.
#if defined(__GLIBC__)
static _Unwind_Reason_Code find_exit(_Unwind_Context* frame, void* found) {
    const auto called = reinterpret_cast<void*>(_Unwind_GetIP(frame) - 1);
    if (_Unwind_FindEnclosingFunction(called) != reinterpret_cast<void*>(&pthread_exit)) {
        return _URC_NO_REASON;
    }
    *static_cast<bool*>(found) = true;
    return _URC_END_OF_STACK;
}

static bool is_unwound() {
    bool found = false;
    if (!Py_IsInitialized()) _Unwind_Backtrace(find_exit, &found);
    return found;
}
#endif

static void let_threads_end_with_the_process() {
#if defined(__GLIBC__)
    if (Py_Version >= 0x030E0000) return;
    static const std::terminate_handler otherwise = std::set_terminate([] {
        while (is_unwound()) std::this_thread::sleep_for(std::chrono::hours(1));
        otherwise();
    });
#endif
}

NB_MODULE(DIDYMA_MODULE, m) {
    if (import_numpy() != 0) throw nb::python_error();
    let_threads_end_with_the_process();
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
