// Rankings as latent variables: relevance is given, the order within each class is not.
//
// The gold output of a query is any ranking of its positives before its negatives; the best one
// under given scores is its *completion*. A cut is Ψ(most violating ranking) − Ψ(completion), with
// the positional map Ψ = Σ_r v_r φ(item at rank r), of which all rows but the moved ones cancel.
#pragma once

#include <algorithm>

#include "ranking/lattice.hpp"
#include "ranking/prediction.hpp"
#include "threads.hpp"

namespace didyma {

// Haponchyk & Moschitti 2019, equations 6 and 7, for average precision.
//
// Ranks are filled from the bottom by the lower of the two last items, where a negative is worth
// the loss that the positives below it make certain. Ties go to the positive: otherwise zero
// weights would get a perfect ranking, and a perceptron would never start. With one positive this
// is plain sorting.
template <class Map>
class GreedyPath : public PathSearch {
  public:
    explicit GreedyPath(Map map) : map_(map) {}

    void find(Span<const double> positives, Span<const double> negatives, double unit,
              Span<int64_t> above) const override {
        const int64_t P = positives.size(), N = negatives.size();
        const auto weights = map_.weights(P, N);
        double share = 0.0;
        for (int64_t i = P - 1, j = N - 1; i >= 0;) {
            const double v = weights.at(i + j + 1);
            if (j < 0 || v * positives[i] <= v * negatives[j] + unit * share) {
                above[i] = j + 1;
                share += 1.0 / static_cast<double>(i + j + 2);
                --i;
            } else {
                --j;
            }
        }
    }

  private:
    Map map_;
};

// Plain sorting by score: the best ranking without a loss. Ties as in GreedyPath.
class SortedPath : public PathSearch {
  public:
    void find(Span<const double> positives, Span<const double> negatives, double,
              Span<int64_t> above) const override {
        for (int64_t i = positives.size() - 1, j = negatives.size() - 1; i >= 0;) {
            if (j < 0 || positives[i] <= negatives[j]) {
                above[i--] = j + 1;
            } else {
                --j;
            }
        }
    }
};

// Cuts against the completion, which is that of the scores or stands in `places`: the ranks of all
// rows, query by query. The loss counts `loss_scale` in the search for a ranking.
template <class Loss, class Map>
class LatentOracle : public RankingOracle {
  public:
    LatentOracle(const Queries& queries, const Loss& loss, const Map& map,
                 std::unique_ptr<PathSearch> path, double loss_scale, Span<const int64_t> places)
        : queries_(queries),
          loss_(loss),
          map_(map),
          path_(std::move(path)),
          loss_scale_(loss_scale),
          places_(places) {}

    double answer(int64_t i, Span<const double> scores, Span<double> coef) const override {
        const Span<const int64_t> counts = queries_.counts[i];
        const bool online = places_.size() == 0;
        const Span<const int64_t> places =
            online ? places_ : places_.slice(queries_.starts[i], queries_.starts[i + 1]);
        const auto P = static_cast<int32_t>(counts[0]), N = static_cast<int32_t>(counts[1]);
        const auto steps = loss_.steps(P, N);
        const auto weights = map_.weights(P, N);
        Array<int32_t> rows(P + N);
        for (int32_t r = 0; r < P + N; ++r) rows[r] = r;
        sort_descending(scores, rows.slice(0, P));
        sort_descending(scores, rows.slice(P, P + N));
        Array<double> ranked(P + N);
        for (int32_t r = 0; r < P + N; ++r) ranked[r] = scores[rows[r]];
        Array<int64_t> above(P);
        path_->find(ranked.slice(0, P), ranked.slice(P, P + N), loss_scale_ * steps.scale, above);
        double loss = 0.0;
        for (int32_t i = 0, j = 0; i <= P; ++i) {
            for (; j < (i < P ? above[i] : N); ++j) {
                const int32_t row = rows[P + j];
                coef[row] = weights.at(i + j) - weights.at(online ? P + j : places[row]);
                loss += steps.negative(i, j) - steps.negative(P, j);
            }
            if (i < P) {
                const int32_t row = rows[i];
                coef[row] = weights.at(i + j) - weights.at(online ? i : places[row]);
                loss += steps.positive(i, j) - steps.positive(i, 0);
            }
        }
        return steps.scale * loss;
    }

  private:
    Queries queries_;
    Loss loss_;
    Map map_;
    std::unique_ptr<PathSearch> path_;
    double loss_scale_;
    Span<const int64_t> places_;
};

// Sorts the rows of one class, whose places are consecutive; up to `closest` apart they are equal.
inline void complete_class(Span<const double> scores, double closest, Span<int64_t> places) {
    const int64_t n = scores.size();
    Array<int64_t> rows(n);
    Array<double> before(n);
    int64_t first = places[0];
    for (int64_t r = 0; r < n; ++r) {
        rows[r] = r;
        before[r] = -static_cast<double>(places[r]);
        first = std::min(first, places[r]);
    }
    sort_descending(scores, Span<int64_t>(rows));
    for (int64_t low = 0, t = 1; t <= n; ++t) {
        if (t == n || scores[rows[t - 1]] - scores[rows[t]] > closest) {
            sort_descending<int64_t>(before, rows.slice(low, t));
            low = t;
        }
    }
    for (int64_t t = 0; t < n; ++t) places[rows[t]] = first + t;
}

// Completes all queries: by descending score within each class.
//
// Equal scores keep the order that they had. Scores of positives do coincide at the optimum of the
// round before, so that rounding would decide otherwise how a run goes on.
inline void complete(const Queries& queries, Span<const int64_t> rows, Span<const double> scores,
                     Span<int64_t> places, int64_t n_jobs) {
    constexpr int64_t BLOCK = 64;  // queries a task
    parallel_for((queries.size() + BLOCK - 1) / BLOCK, n_jobs, [&](int64_t block) {
        const int64_t last = std::min(queries.size(), (block + 1) * BLOCK);
        for (int64_t i = block * BLOCK; i < last; ++i) {
            const int64_t start = queries.starts[i], stop = queries.starts[i + 1];
            const int64_t P = queries.counts(i, 0);
            Array<double> gathered(stop - start);
            for (int64_t t = start; t < stop; ++t) gathered[t - start] = scores[rows[t]];
            const Span<const double> own = gathered;
            const auto [lowest, highest] = std::minmax_element(own.begin(), own.end());
            const double closest = tie_width(*lowest, *highest);
            complete_class(own.slice(0, P), closest, places.slice(start, start + P));
            complete_class(own.slice(P, own.size()), closest, places.slice(start + P, stop));
        }
    });
}

}  // namespace didyma
