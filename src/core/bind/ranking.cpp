#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind/numpy.hpp"
#include "ranking/feature_maps.hpp"
#include "ranking/graded.hpp"
#include "ranking/independent.hpp"
#include "ranking/latent.hpp"
#include "ranking/lattice.hpp"
#include "ranking/losses.hpp"
#include "ranking/prediction.hpp"
#include "ranking/ramp.hpp"

namespace didyma {
namespace {

using Sizes = Matrix<const int64_t>;
using Vector = Span<const double>;
using Numbers = Span<const int64_t>;

[[noreturn]] void refuse(const char* what, const std::string& name) {
    throw std::invalid_argument(std::string("no ") + what + " '" + name + "'");
}

LossDescription loss_of(const std::string& name, int64_t cutoff) {
    using L = LossDescription;
    const std::pair<const char*, L::Kind> kinds[] = {{"ap", L::AP},
                                                     {"rr", L::RR},
                                                     {"roc", L::ROC},
                                                     {"precision", L::PRECISION},
                                                     {"ndcg", L::NDCG}};
    for (const auto& [known, kind] : kinds) {
        if (name == known) return {kind, cutoff, {}, {}};
    }
    refuse("loss", name);
}

LossDescription tabulated(Sizes sizes, Numbers positive_starts, Vector positive,
                          Numbers negative_starts, Vector negative, int64_t cutoff) {
    return {LossDescription::STEPS,
            cutoff,
            {sizes, positive_starts, positive},
            {sizes, negative_starts, negative}};
}

MapDescription map_of(const std::string& name, Vector v) {
    if (name == "pairwise") return {MapDescription::PAIRWISE, v};
    if (name == "positional") return {MapDescription::POSITIONAL, v};
    if (name == "truncated") return {MapDescription::TRUNCATED, v};
    refuse("feature map", name);
}

using OwnedOracle = std::unique_ptr<RankingOracle>;
using OwnedQueryOracle = std::unique_ptr<QueryOracle>;
using OwnedSearch = std::unique_ptr<PathSearch>;

OwnedQueryOracle binary_oracle(const std::string& kind, const LossDescription& loss,
                               const MapDescription& map, int64_t longest) {
    if (kind == "independent") {
        return with_loss(loss, longest, [](const auto& steps) -> OwnedQueryOracle {
            using Loss = std::decay_t<decltype(steps)>;
            return std::make_unique<IndependentOracle<Loss>>(steps);
        });
    }
    if (kind == "lattice") {
        return with_loss(loss, longest, [&](const auto& steps) {
            return with_map(map, [&](const auto& weights) -> OwnedQueryOracle {
                using Loss = std::decay_t<decltype(steps)>;
                using Map = std::decay_t<decltype(weights)>;
                return std::make_unique<LatticeOracle<Loss, Map>>(steps, weights, loss.cutoff);
            });
        });
    }
    if (kind != "predicted") refuse("oracle", kind);
    if (map.kind == MapDescription::PAIRWISE) return std::make_unique<PairwisePrediction>();
    return with_positional_map(map, [](const auto& weights) -> OwnedQueryOracle {
        return std::make_unique<PositionalPrediction<std::decay_t<decltype(weights)>>>(weights);
    });
}

OwnedOracle oracle(const Queries& queries, const std::string& kind, const LossDescription& loss,
                   const MapDescription& map) {
    auto binary = binary_oracle(kind, loss, map, queries.longest());
    return std::make_unique<SortingOracle>(queries, std::move(binary));
}

OwnedOracle threshold_oracle(const Queries& queries, const std::string& kind,
                             const LossDescription& loss, const MapDescription& map, Vector gains) {
    const int64_t longest = queries.longest();
    auto binary = binary_oracle(kind, loss, map, longest);
    GradedGain gain(gains, loss.cutoff, longest);
    auto graded = std::make_unique<ThresholdOracle>(std::move(gain), std::move(binary));
    return std::make_unique<SortingOracle>(queries, std::move(graded));
}

OwnedOracle graded_oracle(const Queries& queries, const std::string& kind,
                          const LossDescription& loss, const MapDescription& map, Vector gains) {
    GradedGain gain(gains, loss.cutoff, queries.longest());
    OwnedQueryOracle graded;
    if (kind == "graded_lattice") {
        graded = std::make_unique<GradedLattice>(std::move(gain));
    } else if (kind == "graded_assignment") {
        graded = std::make_unique<GradedAssignment>(std::move(gain), map.v);
    } else if (kind == "graded_sort") {
        graded = std::make_unique<GradedSort>(std::move(gain), map.v);
    } else {
        refuse("oracle", kind);
    }
    return std::make_unique<SortingOracle>(queries, std::move(graded));
}

// `seen` is the map as inference sees it; without places, completions are those of the scores.
OwnedOracle latent_oracle(const Queries& queries, const std::string& inference,
                          const LossDescription& loss, const MapDescription& map,
                          const MapDescription& seen, double loss_scale, Numbers places) {
    return with_loss(loss, queries.longest(), [&](const auto& steps) {
        using Loss = std::decay_t<decltype(steps)>;
        auto path = with_positional_map(seen, [&](const auto& weights) -> OwnedSearch {
            using Map = std::decay_t<decltype(weights)>;
            if (inference == "sort") return std::make_unique<SortedPath>();
            if (inference == "greedy") return std::make_unique<GreedyPath<Map>>(weights);
            if (inference != "exact") refuse("inference", inference);
            return std::make_unique<BestPath<Loss, Map>>(steps, weights, loss.cutoff);
        });
        return with_positional_map(map, [&](const auto& weights) -> OwnedOracle {
            using Map = std::decay_t<decltype(weights)>;
            return std::make_unique<LatentOracle<Loss, Map>>(queries, steps, weights,
                                                             std::move(path), loss_scale, places);
        });
    });
}

OwnedOracle ramp_oracle(const RankingOracle& hinge, Numbers starts, Vector predicted) {
    return std::make_unique<RampOracle>(hinge, starts, predicted);
}

}  // namespace

void bind_ranking(nb::module_ m) {
    nb::class_<RankingOracle>(m, "RankingOracle").def("answer", &RankingOracle::answer, Released());
    using nb::keep_alive;
    nb::class_<Queries>(m, "Queries")
        .def(
            "__init__",
            [](Queries* self, Numbers starts, Sizes counts) { new (self) Queries{starts, counts}; },
            keep_alive<1, 2>(), keep_alive<1, 3>());
    nb::class_<LossDescription>(m, "Loss");
    nb::class_<MapDescription>(m, "FeatureMap");
    m.def("loss", &loss_of);
    m.def("tabulated_loss", &tabulated, keep_alive<0, 1>(), keep_alive<0, 2>(), keep_alive<0, 3>(),
          keep_alive<0, 4>(), keep_alive<0, 5>());
    m.def("feature_map", &map_of, keep_alive<0, 2>());
    m.def("oracle", &oracle, keep_alive<0, 1>(), keep_alive<0, 3>(), keep_alive<0, 4>());
    m.def("threshold_oracle", &threshold_oracle, keep_alive<0, 1>(), keep_alive<0, 3>(),
          keep_alive<0, 4>(), keep_alive<0, 5>());
    m.def("graded_oracle", &graded_oracle, keep_alive<0, 1>(), keep_alive<0, 3>(),
          keep_alive<0, 4>(), keep_alive<0, 5>());
    m.def("latent_oracle", &latent_oracle, keep_alive<0, 1>(), keep_alive<0, 3>(),
          keep_alive<0, 4>(), keep_alive<0, 5>(), keep_alive<0, 7>());
    m.def("ramp_oracle", &ramp_oracle, keep_alive<0, 1>(), keep_alive<0, 2>(), keep_alive<0, 3>());
    m.def("complete", &complete, Released());
}

}  // namespace didyma
