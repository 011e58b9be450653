// NDCG over more than two grades.
#pragma once

#include "ranking/losses.hpp"
#include "ranking/queries.hpp"
#include "structures/assignment.hpp"
#include "sums.hpp"

namespace didyma {

// The gain of each level, and what the best ranking of a query makes of it.
class GradedGain {
  public:
    GradedGain(Span<const double> gains, int64_t cutoff, int64_t longest)
        : gains(gains), discounts(cutoff, longest) {}

    double ideal(Span<const int64_t> counts) const {
        double total = 0.0;
        for (int64_t level = 0, rank = 0; level < counts.size(); ++level) {
            for (int64_t r = 0; r < counts[level]; ++r) total += gains[level] * discounts[rank++];
        }
        return total;
    }

    Span<const double> gains;
    Discounts discounts;
};

// The sum over thresholds that bounds 1 − NDCG@k, by the oracle of binary NDCG.
//
// With gains g_1 > g_2 > … of the levels and DCG*_t the ideal of the binary problem whose positives
// are the levels up to t,
//
//     1 − NDCG = Σ_t λ_t (1 − NDCG_t),    λ_t = (g_t − g_{t+1}) DCG*_t / DCG*.
//
// Each threshold has its own maximiser and its own feature map: that of the binary problem times
// DCG*_t, as a share of its mean under λ, so that features which are spread over more positives
// count as much. Rows are sorted by level, so that the positives of a threshold come first.
class ThresholdOracle : public QueryOracle {
  public:
    ThresholdOracle(GradedGain gain, std::unique_ptr<QueryOracle> binary)
        : gain_(std::move(gain)), binary_(std::move(binary)) {}

    double answer(const SortedQuery& query, Span<double> coef) const override {
        const int64_t n = query.scores.size(), n_levels = query.counts.size();
        const double ideal = gain_.ideal(query.counts);
        Array<double> dcg(n_levels, 0.0);  // DCG* of the threshold below each level that has one
        Array<double> weight(n_levels, 0.0);
        double weighted = 0.0, total = 0.0;
        for (int64_t level = 0, above = 0, P = 0; level < n_levels; ++level) {
            if (query.counts[level] == 0) continue;
            if (P > 0) {
                dcg[above] = 1.0 / (1.0 / gain_.discounts.ideal(P));  // as binary NDCG is scaled
                weight[above] = (gain_.gains[above] - gain_.gains[level]) * dcg[above] / ideal;
            }
            P += query.counts[level];
            above = level;
        }
        for (int64_t level = 0; level < n_levels; ++level) {
            weighted += weight[level] * dcg[level];
            total += weight[level];
        }
        const double mean = weighted / total;
        Array<double> stretched(n), part(n);
        coef.fill(0.0);
        double loss = 0.0;
        for (int64_t level = 0, P = 0; level < n_levels; ++level) {
            P += query.counts[level];
            if (!(dcg[level] > 0.0)) continue;
            const double factor = dcg[level] / mean;
            for (int64_t r = 0; r < n; ++r) stretched[r] = factor * query.scores[r];
            const int64_t split[] = {P, n - P};
            loss += weight[level] * binary_->answer({stretched, query.order, {split, 2}}, part);
            axpy(weight[level] * factor, Span<double>(part), coef);
        }
        return loss;
    }

  private:
    GradedGain gain_;
    std::unique_ptr<QueryOracle> binary_;
};

// The pairwise map for 1 − NDCG@k with any number of grades: exact.
//
// A state counts how many of each grade are placed: a path through ∏(counts + 1) of them. Ψ is the
// mean of ±(φ_i − φ_j) over all pairs of different grades.
class GradedLattice : public QueryOracle {
  public:
    explicit GradedLattice(GradedGain gain) : gain_(std::move(gain)) {}

    double answer(const SortedQuery& query, Span<double> coef) const override {
        const Span<const int64_t> counts = query.counts;
        const int64_t n_levels = counts.size(), n = query.order.size();
        double squares = 0.0;
        Array<int64_t> starts(n_levels + 1), stride(n_levels), placed(n_levels, 0);
        starts[0] = 0;
        for (int64_t level = 0; level < n_levels; ++level) {
            squares += static_cast<double>(counts[level]) * static_cast<double>(counts[level]);
            starts[level + 1] = starts[level] + counts[level];
            stride[level] = level == 0 ? 1 : stride[level - 1] * (counts[level - 1] + 1);
        }
        const double n_pairs = 0.5 * (static_cast<double>(n) * static_cast<double>(n) - squares);
        const double ideal = gain_.ideal(counts);
        Array<int32_t> rows(n);  // by level, and by score within each
        for (const int32_t row : query.order) {
            int64_t level = 0;
            while (row >= starts[level + 1]) ++level;
            rows[starts[level] + placed[level]++] = row;
        }
        // Of the items of other grades, those below the next one of a level minus those above it.
        const auto balance = [&](int64_t level, int64_t rank) {
            return static_cast<double>(n - 2 * rank - counts[level] + 2 * placed[level]);
        };
        const int64_t n_states = stride[n_levels - 1] * (counts[n_levels - 1] + 1);
        Array<double> value(n_states, 0.0);
        Array<int8_t> takes(n_states, 0);
        int64_t rank = n;
        for (int64_t state = n_states - 2; state >= 0; --state) {
            int64_t back = 0;  // one state back, in mixed radix
            for (; placed[back] == 0; ++back) {
                placed[back] = counts[back];
                rank += counts[back];
            }
            --placed[back];
            --rank;
            const double worth = gain_.discounts[rank] / ideal;
            double best = -INF;
            for (int64_t level = 0; level < n_levels; ++level) {
                if (placed[level] == counts[level]) continue;
                const double score = query.scores[rows[starts[level] + placed[level]]];
                double gain = balance(level, rank) / n_pairs * score - gain_.gains[level] * worth;
                gain += value[state + stride[level]];
                if (gain > best) {
                    best = gain;
                    takes[state] = static_cast<int8_t>(level);
                }
            }
            value[state] = best;
        }
        double loss = 1.0;
        placed.fill(0);
        for (int64_t rank = 0, state = 0; rank < n; ++rank) {
            const int64_t level = takes[state];
            const auto perfect = static_cast<double>(n - starts[level + 1] - starts[level]);
            coef[rows[starts[level] + placed[level]]] = (balance(level, rank) - perfect) / n_pairs;
            loss -= gain_.gains[level] * gain_.discounts[rank] / ideal;
            ++placed[level];
            state += stride[level];
        }
        return loss;
    }

  private:
    GradedGain gain_;
};

// The positional map for 1 − NDCG@k with grades.
class GradedPlaces : public QueryOracle {
  public:
    GradedPlaces(GradedGain gain, Span<const double> v) : gain_(std::move(gain)), v_(v) {}

    double answer(const SortedQuery& query, Span<double> coef) const override {
        const double ideal = gain_.ideal(query.counts);
        const Array<int64_t> rank_of = ranks(query, ideal);
        double loss = 1.0;
        for (int64_t level = 0, row = 0; level < query.counts.size(); ++level) {
            const int64_t count = query.counts[level];
            double gold = 0.0;
            for (int64_t rank = row; rank < row + count; ++rank) gold += v_[rank];
            gold /= static_cast<double>(std::max<int64_t>(count, 1));
            for (const int64_t last = row + count; row < last; ++row) {
                const int64_t rank = rank_of[row];
                coef[row] = v_[rank] - gold;
                loss -= gain_.gains[level] * gain_.discounts[rank] / ideal;
            }
        }
        return loss;
    }

  protected:
    // Rank of each row in the most violating ranking.
    virtual Array<int64_t> ranks(const SortedQuery& query, double ideal) const = 0;

    GradedGain gain_;
    Span<const double> v_;
};

// Exact: an assignment of rows to ranks, O(n³).
class GradedAssignment : public GradedPlaces {
    using GradedPlaces::GradedPlaces;

    Array<int64_t> ranks(const SortedQuery& query, double ideal) const override {
        const int64_t n = query.scores.size();
        Table<double> weights(n, n);
        for (int64_t level = 0, row = 0; level < query.counts.size(); ++level) {
            for (const int64_t last = row + query.counts[level]; row < last; ++row) {
                for (int64_t rank = 0; rank < n; ++rank) {
                    const double worth = gain_.discounts[rank] / ideal;
                    weights(row, rank) = v_[rank] * query.scores[row] - gain_.gains[level] * worth;
                }
            }
        }
        return assign(weights);
    }
};

// The same where v is the discount of NDCG itself, without a cut-off: a sort.
class GradedSort : public GradedPlaces {
    using GradedPlaces::GradedPlaces;

    Array<int64_t> ranks(const SortedQuery& query, double ideal) const override {
        const int64_t n = query.scores.size();
        Array<double> keys(n);
        Array<int64_t> rows(n), rank_of(n);
        for (int64_t level = 0, row = 0; level < query.counts.size(); ++level) {
            for (const int64_t last = row + query.counts[level]; row < last; ++row) {
                keys[row] = query.scores[row] - gain_.gains[level] / ideal;
                rows[row] = row;
            }
        }
        sort_descending<int64_t>(keys, rows);
        for (int64_t rank = 0; rank < n; ++rank) rank_of[rows[rank]] = rank;
        return rank_of;
    }
};

}  // namespace didyma
