#include "bind/numpy.hpp"
#include "ranking/oracle.hpp"

namespace didyma {

void bind_ranking(nb::module_ m) {
    nb::class_<RankingOracle>(m, "RankingOracle").def("answer", &RankingOracle::answer, Released());
}

}  // namespace didyma
