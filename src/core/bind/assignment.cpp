#include "structures/assignment.hpp"

#include "bind/numpy.hpp"

namespace didyma {

void bind_assignment(nb::module_ m) {
    m.def("assign", &assign, Released());
    m.def("match", &match, Released());
}

}  // namespace didyma
