#include "metrics/measures.hpp"

#include "bind/numpy.hpp"

namespace didyma {

void bind_measures(nb::module_ m) {
    m.def("average_precision", &average_precision, Released());
    m.def("discounted_gain", &discounted_gain, Released());
    m.def("first_relevant", &first_relevant, Released());
    m.def("roc_area", &roc_area, Released());
    m.def("share_ties", &share_ties, Released());
}

}  // namespace didyma
