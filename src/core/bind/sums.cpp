#include "sums.hpp"

#include "bind/numpy.hpp"

namespace didyma {

void bind_sums(nb::module_ m) {
    m.def("dot", [](Span<const double> a, Span<const double> b) { return dot(a, b); }, Released());
}

}  // namespace didyma
