#include "polytope/prices.hpp"

#include "bind/numpy.hpp"

namespace didyma {

void bind_prices(nb::module_ m) {
    m.def("minimise", &prices::minimise_all, Released());
    m.def("respond", &prices::respond, Released());
}

}  // namespace didyma
