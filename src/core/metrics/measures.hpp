// Measures of a ranking.
//
// Arrays come query by query: query q owns the slots starts[q] to starts[q + 1], best first. Every
// measure is an expectation over all orders of tied slots, where tied[s] says that slot s has the
// score of slot s − 1; with nothing tied it is the measure itself.
#pragma once

#include "array.hpp"

namespace didyma {

// Where the slots tied with `slot` end, and how many of them are relevant.
struct TiedBlock {
    TiedBlock(Span<const bool> relevant, Span<const bool> tied, int64_t slot, int64_t stop)
        : end(slot + 1), hits(relevant[slot]) {
        for (; end < stop && tied[end]; ++end) hits += relevant[end];
    }
    int64_t end, hits;
};

// E[AP] = (1/P) Σ_blocks Σ_q (r/m) (R + 1 + (q−1)(r−1)/(m−1)) / (t+q), over ranks t+q ≤ cutoff.
//
// A block of m tied slots holds r relevant ones and follows t slots, R of them relevant.
inline Array<double> average_precision(Span<const bool> relevant, Span<const bool> tied,
                                       Span<const int64_t> starts, Span<const double> n_relevant,
                                       int64_t cutoff) {
    Array<double> values(starts.size() - 1, 0.0);
    for (int64_t query = 0; query < values.size(); ++query) {
        if (n_relevant[query] == 0) continue;
        const int64_t start = starts[query], stop = starts[query + 1];
        int64_t above = 0;
        double total = 0.0;
        for (int64_t slot = start; slot < stop && slot - start < cutoff;) {
            const auto [end, hits] = TiedBlock(relevant, tied, slot, stop);
            if (hits > 0) {
                const auto size = static_cast<double>(end - slot),
                           count = static_cast<double>(hits);
                const double step = (count - 1.0) / std::max(size - 1.0, 1.0);
                const int64_t ranks = std::min(end - start, cutoff) - (slot - start);
                for (int64_t q = 0; q < ranks; ++q) {
                    const double expected =
                        static_cast<double>(above + 1) + static_cast<double>(q) * step;
                    total += count / size * expected / static_cast<double>(slot - start + q + 1);
                }
            }
            above += hits;
            slot = end;
        }
        values[query] = total / n_relevant[query];
    }
    return values;
}

// E[worth of the rank of the first relevant slot]; worth[i] is that of rank i + 1.
//
// In a block of m with r relevant, the first one comes q-th with C(m−q, r−1) / C(m, r).
inline Array<double> first_relevant(Span<const bool> relevant, Span<const bool> tied,
                                    Span<const int64_t> starts, Span<const double> worth) {
    Array<double> values(starts.size() - 1, 0.0);
    for (int64_t query = 0; query < values.size(); ++query) {
        const int64_t start = starts[query], stop = starts[query + 1];
        for (int64_t slot = start; slot < stop;) {
            const auto [end, hits] = TiedBlock(relevant, tied, slot, stop);
            if (hits > 0) {
                const int64_t size = end - slot;
                double probability = static_cast<double>(hits) / static_cast<double>(size);
                for (int64_t q = 0; q <= size - hits; ++q) {
                    values[query] += probability * worth[slot - start + q];
                    probability *= static_cast<double>(size - q - hits) /
                                   static_cast<double>(std::max<int64_t>(size - q - 1, 1));
                }
                break;
            }
            slot = end;
        }
    }
    return values;
}

// Σ gains · discount over the first depths[q] ranks of each query.
inline Array<double> discounted_gain(Span<const double> gains, Span<const int64_t> starts,
                                     Span<const int64_t> depths, Span<const double> discount) {
    Array<double> values(starts.size() - 1, 0.0);
    for (int64_t query = 0; query < values.size(); ++query) {
        const int64_t start = starts[query];
        const int64_t stop = std::min(starts[query + 1], start + depths[query]);
        for (int64_t slot = start; slot < stop; ++slot) {
            values[query] += gains[slot] * discount[slot - start];
        }
    }
    return values;
}

// The gain expected at each rank: tied slots share theirs equally.
inline Array<double> share_ties(Span<const double> gains, Span<const bool> tied) {
    Array<double> shared(gains.size());
    for (int64_t slot = 0; slot < gains.size();) {
        int64_t end = slot + 1;
        double total = gains[slot];
        for (; end < gains.size() && tied[end]; ++end) total += gains[end];
        shared.slice(slot, end).fill(total / static_cast<double>(end - slot));
        slot = end;
    }
    return shared;
}

// Share of pairs (relevant, other) in the right order, a tied pair counting half.
//
// Relevant documents beyond those in the ranking (n_relevant counts all) stand below it.
inline Array<double> roc_area(Span<const bool> relevant, Span<const bool> tied,
                              Span<const int64_t> starts, Span<const double> n_relevant) {
    Array<double> values(starts.size() - 1, 0.0);
    for (int64_t query = 0; query < values.size(); ++query) {
        const int64_t start = starts[query], stop = starts[query + 1];
        if (start == stop || n_relevant[query] == 0) continue;
        int64_t above = 0;     // relevant slots above
        double correct = 0.0;  // pairs in the right order
        for (int64_t slot = start; slot < stop;) {
            const auto [end, hits] = TiedBlock(relevant, tied, slot, stop);
            const auto others = static_cast<double>(end - slot - hits);
            correct += others * (static_cast<double>(above) + 0.5 * static_cast<double>(hits));
            above += hits;
            slot = end;
        }
        const int64_t others = stop - start - above;
        values[query] =
            others > 0 ? correct / (n_relevant[query] * static_cast<double>(others)) : 1.0;
    }
    return values;
}

}  // namespace didyma
