#include "bind/numpy.hpp"
#include "data/distinct.hpp"
#include "data/svmlight.hpp"

namespace didyma {
namespace data {
namespace {

Powers tables;

// 64 bits of each power of ten; the arithmetic is that of Python's integers.
void compute_powers() {
    const int64_t n = GREATEST_POWER - LEAST_POWER + 1;
    tables = {Array<uint64_t>(n), Array<int64_t>(n)};
    const nb::object ten = nb::int_(10), one = nb::int_(1);
    for (int64_t q = LEAST_POWER; q <= GREATEST_POWER; ++q) {
        const nb::object power = ten.attr("__pow__")(std::abs(q));
        const auto bits = nb::cast<int64_t>(power.attr("bit_length")());
        const int64_t place = q < 0 ? -(bits + 63) : bits - 64;
        nb::object leading = q < 0 ? one.attr("__lshift__")(-place).attr("__floordiv__")(power)
                             : place > 0 ? power.attr("__rshift__")(place)
                                         : power.attr("__lshift__")(-place);
        tables.leading[q - LEAST_POWER] = nb::cast<uint64_t>(leading);
        tables.place[q - LEAST_POWER] = place;
    }
}

}  // namespace

const Powers& powers() { return tables; }

}  // namespace data

void bind_data(nb::module_ m) {
    using namespace data;
    compute_powers();
    m.attr("FINE") = int64_t{FINE};
    m.attr("BAD_LABEL") = int64_t{BAD_LABEL};
    m.attr("BAD_INDEX") = int64_t{BAD_INDEX};
    m.attr("BAD_VALUE") = int64_t{BAD_VALUE};
    m.attr("WIDE_INDEX") = int64_t{WIDE_INDEX};
    m.attr("REPEATED_INDEX") = int64_t{REPEATED_INDEX};
    m.attr("EMPTY_QID") = int64_t{EMPTY_QID};
    m.attr("REPEATED_QID") = int64_t{REPEATED_QID};
    m.attr("CHANGED") = int64_t{CHANGED};
    m.def("scan", &scan, Released());
    m.def("parse", &parse<double>, Released());
    m.def("parse", &parse<float>, Released());
    m.def("decimal", &decimal);
    m.def("numbers", &numbers, Released());
    m.def("fields", &fields, Released());
    m.def("gather", &gather, Released());
    m.def("count_values", &count_values, Released());
    m.def("distinct", &distinct, Released());
}

}  // namespace didyma
