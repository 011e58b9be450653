#include "boosting/boosting.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"

namespace didyma {

void bind_boosting(nb::module_ m) {
    m.def("differences", &boosting::differences, Released());
    m.def("tally", &boosting::tally, Released());
    m.def("ridge_step", &boosting::ridge_step, Released());
    m.def("bounds", &boosting::bounds, Released());
    m.def("choose", &boosting::choose, Released());
    m.def("move", &boosting::move, Released());
    m.def("choose_again", &boosting::choose_again, Released());
}

}  // namespace didyma
