#include "polytope/prices.hpp"

#include "bind/numpy.hpp"

namespace didyma {

void bind_prices(nb::module_ m) {
    m.def("minimise", &prices::minimise_all, Released());
    m.def("respond", &prices::respond, Released());
    m.def("rows_at", &prices::rows_at, Released());
    m.def("pair_factors", &prices::pair_factors, Released());
    m.def("reduce_states", &prices::reduce_states, Released());
    m.def("expand_states", &prices::expand_states, Released());
}

}  // namespace didyma
