#include "nbest/boosting.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"

namespace didyma {

void bind_nbest(nb::module_ m) {
    m.def("differences", &nbest::differences, Released());
    m.def("tally", &nbest::tally, Released());
    m.def("ridge_step", &nbest::ridge_step, Released());
    m.def("bounds", &nbest::bounds, Released());
    m.def("choose", &nbest::choose, Released());
    m.def("move", &nbest::move, Released());
    m.def("choose_again", &nbest::choose_again, Released());
}

}  // namespace didyma
