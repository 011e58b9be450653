// The best interleaving of sorted positives and sorted negatives, for every binary loss and feature
// map.
#pragma once

#include "ranking/queries.hpp"

namespace didyma {

// Finds a ranking of sorted scores; writes into `above` how many negatives stand above each
// positive. `unit` is the worth of a step of the loss.
class PathSearch {
  public:
    virtual ~PathSearch() = default;
    virtual void find(Span<const double> positives, Span<const double> negatives, double unit,
                      Span<int64_t> above) const = 0;
};

// A step of the lattice adds its coefficient times the score of the item, and its loss.
template <class Steps, class Weights>
struct Gains {
    Gains(const Steps& steps, const Weights& weights, Span<const double> positives,
          Span<const double> negatives, double unit)
        : steps(steps), weights(weights), positives(positives), negatives(negatives), unit(unit) {}

    const Steps& steps;
    const Weights& weights;
    Span<const double> positives, negatives;
    double unit;

    double positive(int32_t i, int32_t j) const {
        return weights.positive(i, j) * positives[i] + unit * steps.positive(i, j);
    }
    double negative(int32_t i, int32_t j) const {
        return weights.negative(i, j) * negatives[j] + unit * steps.negative(i, j);
    }
};

// Value of the best way to finish from each state (i, k − i), written to value[i].
//
// Behind rank k the loss is settled, so that the rest stands in the order of its scores: a state
// that is ahead in one class takes from the other until it meets the order of all items by score,
// from where on all states share one value.
template <class Gains>
void merge_behind(const Gains& gains, int32_t k, Span<double> value) {
    const Span<const double> positives = gains.positives, negatives = gains.negatives;
    const auto P = static_cast<int32_t>(positives.size());
    const auto N = static_cast<int32_t>(negatives.size());
    const int32_t n = P + N;
    Array<int32_t> placed(n + 1);  // positives among the first items by score
    for (int32_t rank = 0, i = 0; rank < n; ++rank) {
        placed[rank] = i;
        const int32_t j = rank - i;
        if (j == N || (i < P && positives[i] >= negatives[j])) ++i;
    }
    placed[n] = P;
    Array<double> rest(n + 1, 0.0);  // value of the items by score from a rank on
    for (int32_t rank = n - 1; rank >= k; --rank) {
        const int32_t i = placed[rank], j = rank - i;
        const double gain = placed[rank + 1] > i ? gains.positive(i, j) : gains.negative(i, j);
        rest[rank] = gain + rest[rank + 1];
    }
    for (int32_t first = std::max(0, k - N); first <= std::min(P, k); ++first) {
        int32_t i = first, j = k - first;
        double total = 0.0;
        for (; placed[i + j] < i; ++j) total += gains.negative(i, j);
        for (; placed[i + j] > i; ++i) total += gains.positive(i, j);
        value[first] = total + rest[i + j];
    }
}

// One dynamic programme replaces the enumeration of all rankings.
//
// State (i, j): i positives and j negatives are placed. Loss and coefficients of a step depend on
// nothing else: O(P N), or with a cut-off O(k n) at worst and O(k² + n) as a rule.
template <class Gains>
void find_best_path(const Gains& gains, int64_t cutoff, Span<int64_t> above) {
    const Span<const double> positives = gains.positives, negatives = gains.negatives;
    const auto P = static_cast<int32_t>(positives.size());
    const auto N = static_cast<int32_t>(negatives.size());
    const auto depth = static_cast<int32_t>(std::min<int64_t>(cutoff, P + N));
    const int32_t last = std::min(P, depth), most = std::min(N, depth);
    Array<double> finish(last + 1);  // value of the ranks behind the cut-off
    merge_behind(gains, depth, finish);
    Table<bool> takes_negative(last, most);
    Array<double> value(most + 1);  // of the best way to finish from (i, j), row by row
    Array<double> down(most + 1);   // the same, if the next one is a positive
    Array<double> right(most);      // gain of a step to the next negative
    value[depth - last] = finish[last];
    for (int32_t j = depth - last - 1; j >= 0; --j) {  // all positives are placed
        value[j] = gains.negative(P, j) + value[j + 1];
    }
    for (int32_t i = last - 1; i >= 0; --i) {
        const int32_t width = std::min(N, depth - i), end = std::min(N, depth - i - 1) + 1;
        for (int32_t j = 0; j < end; ++j) down[j] = gains.positive(i, j) + value[j];
        for (int32_t j = 0; j < width; ++j) right[j] = gains.negative(i, j);
        double best = i + width == depth ? finish[i] : down[N];
        value[width] = best;
        const Span<bool> takes = takes_negative[i];
        for (int32_t j = width - 1; j >= 0; --j) {  // the only loop whose steps wait for each other
            const double other = right[j] + best;
            takes[j] = other > down[j];
            best = other < down[j] ? down[j] : other;
            value[j] = best;
        }
    }
    for (int32_t i = 0, j = 0; i < P; ++i) {
        while (j < N && (i + j < depth ? takes_negative(i, j) : negatives[j] > positives[i])) ++j;
        above[i] = j;
    }
}

// The best monotone path, for every binary loss and feature map.
template <class Loss, class Map>
class BestPath : public PathSearch {
  public:
    BestPath(const Loss& loss, const Map& map, int64_t cutoff)
        : loss_(loss), map_(map), cutoff_(cutoff) {}

    void find(Span<const double> positives, Span<const double> negatives, double unit,
              Span<int64_t> above) const override {
        const auto steps = loss_.steps(positives.size(), negatives.size());
        const auto weights = map_.weights(positives.size(), negatives.size());
        find_best_path(Gains(steps, weights, positives, negatives, unit), cutoff_, above);
    }

  private:
    Loss loss_;
    Map map_;
    int64_t cutoff_;
};

// The exact oracle for every binary loss and feature map.
template <class Loss, class Map>
class LatticeOracle : public QueryOracle {
  public:
    LatticeOracle(const Loss& loss, const Map& map, int64_t cutoff)
        : loss_(loss), map_(map), cutoff_(cutoff) {}

    double answer(const SortedQuery& query, Span<double> coef) const override {
        const DividedRows rows(query);
        const auto P = static_cast<int32_t>(rows.P), N = static_cast<int32_t>(rows.N);
        const auto steps = loss_.steps(P, N);
        const auto weights = map_.weights(P, N);
        Array<int64_t> above(P);
        const Gains gains(steps, weights, rows.positives(), rows.negatives(), steps.scale);
        find_best_path(gains, cutoff_, above);
        double gold_positive = 0.0, gold_negative = 0.0, loss = 0.0;
        for (int32_t i = 0; i < P; ++i) {
            gold_positive += weights.positive(i, 0) / P;
            loss -= steps.positive(i, 0);  // losses of a user need not vanish at a perfect ranking
        }
        for (int32_t j = 0; j < N; ++j) {
            gold_negative += weights.negative(P, j) / N;
            loss -= steps.negative(P, j);
        }
        for (int32_t i = 0, j = 0; i <= P; ++i) {
            for (; j < (i < P ? above[i] : N); ++j) {
                coef[rows.negative(j)] = weights.negative(i, j) - gold_negative;
                loss += steps.negative(i, j);
            }
            if (i < P) {
                coef[rows.positive(i)] = weights.positive(i, j) - gold_positive;
                loss += steps.positive(i, j);
            }
        }
        return steps.scale * loss;
    }

  private:
    Loss loss_;
    Map map_;
    int64_t cutoff_;
};

}  // namespace didyma
