// Joint feature maps of a ranking: the coefficient of the item taken when i positives and j
// negatives are placed. `weights(P, N)` are those of a query with so many positives and negatives.
#pragma once

#include <stdexcept>

#include "array.hpp"

namespace didyma {

// Yue et al.: mean over pairs of ±(φ_positive − φ_negative).
struct PairwiseMap {
    struct Weights {
        double P, N, pairs;
        double positive(int32_t, int32_t j) const { return (N - 2.0 * j) / pairs; }
        double negative(int32_t i, int32_t) const { return (P - 2.0 * i) / pairs; }
    };
    Weights weights(int64_t P, int64_t N) const {
        return {static_cast<double>(P), static_cast<double>(N), static_cast<double>(P * N)};
    }
};

// Haponchyk & Moschitti: the item at rank r counts v_r.
struct PositionalMap {
    struct Weights {
        Span<const double> v;
        double at(int64_t rank) const { return v[rank]; }
        double positive(int32_t i, int32_t j) const { return v[i + j]; }
        double negative(int32_t i, int32_t j) const { return v[i + j]; }
    };
    Weights weights(int64_t, int64_t) const { return {v}; }
    Span<const double> v;
};

// The same over the first P ranks only.
struct TruncatedMap {
    struct Weights {
        Span<const double> v;
        int64_t P;
        double at(int64_t rank) const { return rank < P ? v[rank] : 0.0; }
        double positive(int32_t i, int32_t j) const { return at(i + j); }
        double negative(int32_t i, int32_t j) const { return at(i + j); }
    };
    Weights weights(int64_t P, int64_t) const { return {v, P}; }
    Span<const double> v;
};

// What Python says of a map.
struct MapDescription {
    enum Kind { PAIRWISE, POSITIONAL, TRUNCATED } kind;
    Span<const double> v;
};

// Calls f with the positional map that is described.
template <class F>
auto with_positional_map(const MapDescription& map, F f) {
    switch (map.kind) {
        case MapDescription::PAIRWISE:
            break;
        case MapDescription::POSITIONAL:
            return f(PositionalMap{map.v});
        case MapDescription::TRUNCATED:
            return f(TruncatedMap{map.v});
    }
    throw std::invalid_argument("expected a positional map");
}

// Calls f with the map that is described.
template <class F>
auto with_map(const MapDescription& map, F f) {
    return map.kind == MapDescription::PAIRWISE ? f(PairwiseMap()) : with_positional_map(map, f);
}

}  // namespace didyma
