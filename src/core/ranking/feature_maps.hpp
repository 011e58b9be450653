// Joint feature maps of a ranking: the coefficient of the item taken when i positives and j
// negatives are placed. `weights(P, N)` are those of a query with so many positives and negatives.
#pragma once

#include <stdexcept>

#include "array.hpp"

namespace didyma {

// Yue et al.: mean over pairs of ±(φ_positive − φ_negative).
struct PairwiseMap {
    class Weights {
      public:
        Weights(int64_t P, int64_t N) : positive_(N + 1), negative_(P + 1) {
            fill(positive_, static_cast<int32_t>(N), static_cast<double>(P * N));
            fill(negative_, static_cast<int32_t>(P), static_cast<double>(P * N));
        }
        double positive(int32_t, int32_t j) const { return positive_[j]; }
        double negative(int32_t i, int32_t) const { return negative_[i]; }

      private:
        static void fill(Span<double> weights, int32_t others, double pairs) {
            for (int32_t above = 0; above <= others; ++above) {
                weights[above] = static_cast<double>(others - 2 * above) / pairs;
            }
        }

        Array<double> positive_, negative_;  // by what stands above of the other class
    };
    Weights weights(int64_t P, int64_t N) const { return {P, N}; }
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
    class Weights {
      public:
        Weights(Span<const double> v, int64_t P, int64_t N) : v_(P + N, 0.0) {
            std::copy(v.begin(), v.begin() + P, v_.begin());
        }
        double at(int64_t rank) const { return v_[rank]; }
        double positive(int32_t i, int32_t j) const { return v_[i + j]; }
        double negative(int32_t i, int32_t j) const { return v_[i + j]; }

      private:
        Array<double> v_;
    };
    Weights weights(int64_t P, int64_t N) const { return {v.first(P), P, N}; }
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
