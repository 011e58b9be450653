// Queries of rows by descending relevance, and oracles that look at one of them in the order of its
// scores.
#pragma once

#include <memory>

#include "array.hpp"
#include "ranking/oracle.hpp"
#include "sorting.hpp"

namespace didyma {

// Rows starts[i] to starts[i + 1] are those of query i, counts[i][l] of them of level l; the
// highest level comes first. Binary relevance is two levels, positives and negatives.
struct Queries {
    Span<const int64_t> starts;
    Matrix<const int64_t> counts;

    int64_t size() const { return counts.rows(); }
    int64_t n_rows() const { return starts[size()]; }
    int64_t longest() const {
        int64_t most = 0;
        for (int64_t i = 0; i < size(); ++i) most = std::max(most, starts[i + 1] - starts[i]);
        return most;
    }
};

// A query whose rows are listed by descending score in `order`.
struct SortedQuery {
    Span<const double> scores;
    Span<const int32_t> order;
    Span<const int64_t> counts;
};

// Finds a ranking ŷ of a sorted query; writes the coefficients of Ψ(ŷ) − Ψ*, returns Δ(ŷ).
//
// Ψ* is the mean over all rankings that put every level before the next lower one; for the pairwise
// map all of them share it.
class QueryOracle {
  public:
    virtual ~QueryOracle() = default;
    virtual double answer(const SortedQuery& query, Span<double> coef) const = 0;
};

// Keeps the rows of each query in the order of its last visit, which is quickly corrected. What the
// oracle answers does not depend on it.
class SortingOracle : public RankingOracle {
  public:
    SortingOracle(const Queries& queries, std::unique_ptr<QueryOracle> oracle)
        : queries_(queries), oracle_(std::move(oracle)), orders_(queries.n_rows()) {
        for (int64_t i = 0; i < queries.size(); ++i) {
            const Span<int32_t> order = orders_.slice(queries.starts[i], queries.starts[i + 1]);
            for (int64_t t = 0; t < order.size(); ++t) order[t] = static_cast<int32_t>(t);
        }
    }

    double answer(int64_t i, Span<const double> scores, Span<double> coef) const override {
        const Span<int32_t> order = orders_.slice(queries_.starts[i], queries_.starts[i + 1]);
        insertion_sort(scores, order);
        return oracle_->answer({scores, order, queries_.counts[i]}, coef);
    }

  private:
    Queries queries_;
    std::unique_ptr<QueryOracle> oracle_;
    Array<int32_t> orders_;
};

// The rows of a query of two levels: positives, then negatives, each by descending score.
class DividedRows {
  public:
    explicit DividedRows(const SortedQuery& query)
        : P(query.counts[0]), N(query.counts[1]), rows_(P + N), scores_(P + N) {
        for (int64_t t = 0, i = 0; t < P + N; ++t) {  // i positives stand before place t
            const int32_t row = query.order[t];
            const bool is_positive = row < P;
            const int64_t place = is_positive ? i : P + t - i;
            rows_[place] = row;
            scores_[place] = query.scores[row];
            i += is_positive;
        }
    }
    Span<const double> positives() const { return scores_.slice(0, P); }
    Span<const double> negatives() const { return scores_.slice(P, P + N); }
    int32_t positive(int64_t i) const { return rows_[i]; }
    int32_t negative(int64_t j) const { return rows_[P + j]; }

    const int64_t P, N;

  private:
    Array<int32_t> rows_;
    Array<double> scores_;
};

}  // namespace didyma
