// The pairwise map with losses that let each negative choose its place by itself.
#pragma once

#include "extrema.hpp"
#include "ranking/queries.hpp"

namespace didyma {

// Exact in O((P + N) log N).
//
// Where each negative may choose its place among the positives independently of the others, better
// negatives choose higher places (Yue et al. 2007, Lemma 1). So the choice of the middle one bounds
// those on either side of it, and a block with one place left is done. What a negative gains by one
// more place never grows with its rank, so those that score too low are told at once to stay at the
// bottom.
template <class Loss>
class IndependentOracle : public QueryOracle {
  public:
    explicit IndependentOracle(const Loss& loss) : loss_(loss) {}

    double answer(const SortedQuery& query, Span<double> coef) const override {
        const DividedRows rows(query);
        const int64_t P = rows.P, N = rows.N;
        const Span<const double> positives = rows.positives(), negatives = rows.negatives();
        const auto steps = loss_.steps(P, N);
        const double pair = 2.0 / (static_cast<double>(P) * static_cast<double>(N));
        const double unit = steps.scale;
        double hopeless = INF;
        for (int32_t i = 0; i < P; ++i) {
            const double most = unit * (steps.positive(i, 1) - steps.positive(i, 0));
            hopeless = std::min(hopeless, positives[i] - most / pair);
        }
        Array<int64_t> above(P + 1, 0);  // negatives whose place is right above positive i
        Block block{0, static_cast<int32_t>(N), 0, static_cast<int32_t>(P)};
        for (; block.low < N && negatives[block.low] >= positives[0]; ++block.low) {
            coef[rows.negative(block.low)] = pair * static_cast<double>(P);
        }
        while (block.high > block.low && negatives[block.high - 1] <= hopeless) {
            coef[rows.negative(--block.high)] = 0.0;
        }
        above[0] = block.low;
        Block waiting[64];
        int64_t n_waiting = 0;
        while (true) {
            const auto [low, high, first, last] = block;
            if (first == last || low == high) {  // only one place is left for all of them
                for (int32_t j = low; j < high; ++j) {
                    coef[rows.negative(j)] = pair * static_cast<double>(P - first);
                }
                above[first] += high - low;
                if (n_waiting == 0) break;
                block = waiting[--n_waiting];
                continue;
            }
            const int32_t j = (low + high) >> 1;
            const double score = negatives[j];
            int32_t place = last;
            double best = 0.0, value = 0.0;
            for (int32_t i = last - 1; i >= first; --i) {  // move it above positive i
                const double gain = steps.positive(i, j + 1) - steps.positive(i, j);
                value += unit * gain - pair * (positives[i] - score);
                if (value >= best) {
                    place = i;
                    best = value;
                }
            }
            coef[rows.negative(j)] = pair * static_cast<double>(P - place);
            above[place] += 1;
            waiting[n_waiting++] = {j + 1, high, place, last};  // as many as halvings
            block = {low, j, first, place};
        }
        double loss = 0.0;
        int32_t j = 0;
        for (int32_t i = 0; i < P; ++i) {
            j += static_cast<int32_t>(above[i]);
            coef[rows.positive(i)] = -pair * static_cast<double>(j);
            loss += steps.positive(i, j);
        }
        return unit * loss;
    }

  private:
    // Negatives low to high may take the places first to last.
    struct Block {
        int32_t low, high, first, last;
    };

    Loss loss_;
};

}  // namespace didyma
