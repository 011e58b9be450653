#include "sorting.hpp"

#include "bind/numpy.hpp"

namespace didyma {

void bind_sorting(nb::module_ m) {
    m.def("sort_descending", &sort_descending<int64_t>, Released());
    m.def("partition_descending", &partition_descending<int64_t>, Released());
    m.def("insertion_sort", &insertion_sort, Released());
}

}  // namespace didyma
