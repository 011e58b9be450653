// Texts as sums of the concepts that their stems occur in.
#pragma once

#include "text/reading.hpp"

namespace didyma::text {

// A stem has the entries starts[p] to starts[p + 1] of concepts and weights, where p is its place;
// −1 has none.
struct Concepts {
    Span<const int32_t> places;
    Span<const int64_t> starts;
    Span<const int16_t> concepts;
    Span<const float> weights;

    // The sum over the content words of a text.
    void add_up(const Reading& reading, Reading::Tokens text, Span<double> total) const {
        total.fill(0.0);
        for (int64_t t = text.begin; t < text.end; ++t) {
            const int32_t place = places[reading.stems[t]];
            if (place < 0 || !reading.counts(t, false)) continue;
            for (int64_t entry = starts[place]; entry < starts[place + 1]; ++entry) {
                total[concepts[entry]] += static_cast<double>(weights[entry]);
            }
        }
    }
};

// The cosine of each row and its query.
inline Array<double> concept_cosines(const Reading& reading, Span<const int32_t> places,
                                     Span<const int64_t> starts, Span<const int16_t> numbers,
                                     Span<const float> weights, int64_t n_concepts) {
    const Concepts concepts{places, starts, numbers, weights};
    Array<double> cosines(reading.n_rows(), 0.0), asked(n_concepts), met(n_concepts);
    for (int64_t q = 0; q < reading.n_queries(); ++q) {
        concepts.add_up(reading, reading.query(q), asked);
        double asked_norm = 0.0;
        for (double value : asked) asked_norm += value * value;
        if (!(asked_norm > 0)) continue;
        for (int64_t r = reading.bounds[q]; r < reading.bounds[q + 1]; ++r) {
            concepts.add_up(reading, reading.row(r), met);
            double product = 0.0, norm = 0.0;
            for (int64_t c = 0; c < n_concepts; ++c) {
                product += asked[c] * met[c];
                norm += met[c] * met[c];
            }
            cosines[r] = norm > 0 ? product / std::sqrt(asked_norm * norm) : 0.0;
        }
    }
    return cosines;
}

}  // namespace didyma::text
