// What each family of kernels adds to the module; each stands in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace didyma {

void bind_applications(nanobind::module_ m);
void bind_assignment(nanobind::module_ m);
void bind_ranking(nanobind::module_ m);
void bind_ranking_problem(nanobind::module_ m);
void bind_data(nanobind::module_ m);
void bind_hypergraph(nanobind::module_ m);
void bind_prices(nanobind::module_ m);
void bind_nbest(nanobind::module_ m);
void bind_learning(nanobind::module_ m);
void bind_rows(nanobind::module_ m);
void bind_measures(nanobind::module_ m);
void bind_sorting(nanobind::module_ m);
void bind_signals(nanobind::module_ m);
void bind_polytope(nanobind::module_ m);
void bind_structures(nanobind::module_ m);
void bind_sums(nanobind::module_ m);
void bind_text(nanobind::module_ m);
void bind_text_features(nanobind::module_ m);
void bind_marginals(nanobind::module_ m);

}  // namespace didyma
