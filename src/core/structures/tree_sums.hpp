// Sums over all trees: log partitions and arc marginals, over a semiring.
//
// Weights are (B, n + 1, n + 1), entry [m, h] for head h of word m, at most 1 in sum over h; row 0,
// the diagonal and all that lies beyond a length are zero. Log partitions are -inf where a sum is
// not above `least`, and then the marginals mean nothing.
#pragma once

#include <cmath>
#include <vector>

#include "structures/semiring.hpp"

namespace didyma {

// Scores less a number per word, so that the weights of its heads sum to 1. Returns the first
// instance with a word that has no head, or -1.
inline int64_t normalise(Cube<const double> scores, Span<const int64_t> lengths,
                         Cube<double> log_weights, Matrix<double> log_scale) {
    int64_t headless = -1;
    for (int64_t b = 0; b < scores.depth(); ++b) {
        for (int64_t m = 0; m < scores.rows(); ++m) {
            const auto row = scores[b][m];
            double highest = LOG_ZERO, scale = 0.0;
            for (double score : row) highest = std::max(highest, score);
            if (highest == LOG_ZERO) {
                if (m > 0 && m <= lengths[b] && headless < 0) headless = b;
                highest = 0.0;
            }
            // One after the other, so padding changes no bit.
            for (double score : row) scale += std::exp(score - highest);
            const double shift = scale > 0.0 ? std::log(scale) : 0.0;
            log_scale(b, m) = highest + shift;
            const auto out = log_weights[b][m];
            for (int64_t h = 0; h < row.size(); ++h) out[h] = row[h] - highest - shift;
        }
    }
    return headless;
}

// A chart of spans and its transpose, so that both are read along rows.
class Chart {
  public:
    explicit Chart(int64_t n) : rows_(n, n), columns_(n, n) {}
    void set(int64_t s, int64_t t, double value) {
        rows_(s, t) = value;
        columns_(t, s) = value;
    }
    double operator()(int64_t s, int64_t t) const { return rows_(s, t); }
    // Entries [s, first:last] and [first:last, t].
    Span<double> row(int64_t s, int64_t first, int64_t last) const {
        return rows_[s].slice(first, last);
    }
    Span<double> column(int64_t t, int64_t first, int64_t last) const {
        return columns_[t].slice(first, last);
    }

  private:
    Table<double> rows_, columns_;
};

// Projective trees, O(n³): Eisner's spans, summed inside and outside of each. The outside sum of a
// span adds up every way to use it in a longer one.
template <class Ring>
void sum_over_projective_trees(Cube<const double> weights, Span<const int64_t> lengths,
                               bool single_root, double least, Span<double> log_partition,
                               Cube<double> marginals) {
    const int64_t longest = weights.rows();
    Chart right(longest), left(longest), to_right(longest), to_left(longest);
    Chart o_right(longest), o_left(longest), o_joined(longest);
    for (int64_t b = 0; b < weights.depth(); ++b) {
        const auto arc = weights[b];
        const auto out = marginals[b];
        const int64_t n = lengths[b];
        for (int64_t s = 0; s <= n; ++s) {
            right.set(s, s, Ring::ONE);
            left.set(s, s, Ring::ONE);
        }
        for (int64_t t = 1; t <= n; ++t) {
            for (int64_t s = t - 1; s >= 0; --s) {
                // The root's only arc has nothing before it.
                const double joined =
                    s == 0 && single_root
                        ? left(1, t)
                        : Ring::dot(right.row(s, s, t), left.column(t, s + 1, t + 1));
                to_right.set(s, t, Ring::times(joined, arc(t, s)));
                to_left.set(s, t, Ring::times(joined, arc(s, t)));
                right.set(s, t,
                          Ring::dot(to_right.row(s, s + 1, t + 1), right.column(t, s + 1, t + 1)));
                left.set(s, t, Ring::dot(left.row(s, s, t), to_left.column(t, s, t)));
            }
        }
        const double total = right(0, n);
        if (!(total > least)) {
            log_partition[b] = LOG_ZERO;
            continue;
        }
        log_partition[b] = Ring::to_log(total);
        for (int64_t t = n; t > 0; --t) {
            for (int64_t s = 0; s < t; ++s) {
                double outside = Ring::dot(o_right.column(t, 0, s), to_right.column(s, 0, s));
                if (t < n && (s > 0 || !single_root)) {
                    outside = Ring::plus(outside, Ring::dot(o_joined.row(s, t + 1, n + 1),
                                                            left.row(t + 1, t + 1, n + 1)));
                }
                if (s == 0 && t == n) outside = Ring::ONE;
                o_right.set(s, t, outside);
                outside = Ring::dot(o_left.row(s, t + 1, n + 1), to_left.row(t, t + 1, n + 1));
                if (s > 0) {
                    const int64_t first = single_root && s > 1 ? 1 : 0;
                    outside = Ring::plus(outside, Ring::dot(o_joined.column(t, first, s),
                                                            right.column(s - 1, first, s)));
                }
                o_left.set(s, t, outside);
                const double o_to_right =
                    Ring::dot(o_right.row(s, t, n + 1), right.row(t, t, n + 1));
                const double o_to_left =
                    Ring::dot(o_left.column(t, 0, s + 1), left.column(s, 0, s + 1));
                o_joined.set(s, t,
                             Ring::plus(Ring::times(o_to_right, arc(t, s)),
                                        Ring::times(o_to_left, arc(s, t))));
                out(t, s) = Ring::to_probability(
                    Ring::over(Ring::times(to_right(s, t), o_to_right), total));
                out(s, t) =
                    Ring::to_probability(Ring::over(Ring::times(to_left(s, t), o_to_left), total));
            }
        }
    }
}

// All trees, O(n³): the matrix-tree theorem by elimination of words.
//
// Follow heads at random, in proportion to their weights, until the root is met. To eliminate a
// word is to step over it: its pivot is the sum of its weights to the words that remain and to the
// root, never a difference, and the product of all pivots is the sum over trees (Grassmann, Taksar
// & Heyman's elimination of a Laplacian). If m is the last word, with pivot p,
//
//     P(head of m is h) = weight of h / p · P(a walk from h meets the root before m).
//
// For every word to be the last one, the words are halved: one half is eliminated for the sake of
// the other, again and again.
template <class Ring>
class TreeSum {
    using Number = typename Ring::Number;

  public:
    TreeSum(int64_t longest, Number least)
        : least_(least),
          pivots_(longest),
          step_(longest, longest),
          escape_(longest),
          eliminated_(longest) {
        int64_t n_levels = 1;
        while ((int64_t{1} << (n_levels - 1)) < longest) ++n_levels;
        for (int64_t level = 0; level < n_levels; ++level)
            levels_.push_back({{longest, longest}, 0, 0});
    }

    // Marginals of an instance of n words; returns its log partition.
    double run(Matrix<const Number> weights, int64_t n, Matrix<typename Ring::Result> marginals) {
        for (int64_t i = 1; i <= n; ++i) {
            const auto row = weights[i].first(n + 1);
            std::copy(row.begin(), row.end(), levels_[0].arcs[i].begin());
        }
        levels_[0].first = 1;
        levels_[0].last = n + 1;
        std::size_t level = 0;
        possible_ = true;
        for (int64_t word = 1; word <= n && possible_; ++word) {
            while (word >= levels_[level].last) --level;
            int64_t count = n - (levels_[level].last - levels_[level].first);
            while (levels_[level].last - levels_[level].first > 1) {
                descend(level, word, count);
                ++level;
            }
            pivots_[count] = levels_[level].arcs(word, 0);
            possible_ = possible_ && Ring::above(pivots_[count], least_);
            walk_back(word, count);
            for (int64_t h = 0; h <= n; ++h) {
                marginals(word, h) = Ring::to_probability(
                    Ring::over(Ring::times(weights(word, h), escape_[h]), pivots_[count]));
            }
        }
        if (!possible_) return LOG_ZERO;
        double log_partition = 0.0;
        for (int64_t i = 0; i < n; ++i) log_partition += Ring::to_log(pivots_[i]);
        return log_partition;
    }

  private:
    // Arcs among the words first to last that remain, and from them to the root.
    struct Level {
        Table<Number> arcs;
        int64_t first, last;
    };
    struct Elimination {
        int64_t word, first, last;  // the words that remained
    };

    // Eliminates the half of a level's words that `word` is not in, for the next level.
    void descend(std::size_t level, int64_t word, int64_t& count) {
        const Level& above = levels_[level];
        Level& below = levels_[level + 1];
        int64_t first = above.first, last = above.last;
        for (int64_t i = first; i < last; ++i) {
            below.arcs(i, 0) = above.arcs(i, 0);
            const auto row = above.arcs[i].slice(first, last);
            std::copy(row.begin(), row.end(), below.arcs[i].slice(first, last).begin());
        }
        const int64_t middle = (first + last) / 2;
        const bool upwards = word >= middle;
        for (int64_t left = upwards ? middle - first : last - middle; left > 0; --left) {
            const int64_t gone = upwards ? first++ : --last;
            eliminate(below.arcs, gone, first, last, count++);
        }
        below.first = first;
        below.last = last;
    }

    void eliminate(Matrix<Number> arcs, int64_t word, int64_t first, int64_t last, int64_t count) {
        const auto own = arcs[word].slice(first, last);
        const Number pivot = Ring::plus(arcs(word, 0), Ring::total(own));
        possible_ = possible_ && Ring::above(pivot, least_);
        pivots_[count] = pivot;
        eliminated_[count] = {word, first, last};
        const auto step = step_[word].slice(first, last);
        step_(word, 0) = Ring::over(arcs(word, 0), pivot);
        for (int64_t j = 0; j < own.size(); ++j) step[j] = Ring::over(own[j], pivot);
        for (int64_t i = first; i < last; ++i) {
            const Number arc = arcs(i, word);
            if (!Ring::above(arc, Ring::ZERO)) continue;
            arcs(i, 0) = Ring::plus(arcs(i, 0), Ring::times(arc, step_(word, 0)));
            Ring::accumulate(arcs[i].slice(first, last), arc, step);
        }
    }

    // Probabilities that walks from the eliminated words meet the root before the last word.
    void walk_back(int64_t word, int64_t count) {
        escape_[word] = Ring::ZERO;
        for (int64_t i = count - 1; i >= 0; --i) {
            const Elimination& e = eliminated_[i];
            const Number further =
                Ring::dot(step_[e.word].slice(e.first, e.last), escape_.slice(e.first, e.last));
            escape_[e.word] = Ring::plus(step_(e.word, 0), further);
        }
        escape_[0] = Ring::ONE;
    }

    Number least_;
    bool possible_ = true;
    std::vector<Level> levels_;
    Array<Number> pivots_;
    Table<Number> step_;    // of a walk from an eliminated word
    Array<Number> escape_;  // probability to meet the root first
    Array<Elimination> eliminated_;
};

template <class Ring>
void sum_over_trees(Cube<const typename Ring::Number> weights, Span<const int64_t> lengths,
                    typename Ring::Number least, Span<double> log_partition,
                    Cube<typename Ring::Result> marginals) {
    TreeSum<Ring> trees(weights.rows(), least);
    for (int64_t b = 0; b < weights.depth(); ++b) {
        log_partition[b] = trees.run(weights[b], lengths[b], marginals[b]);
    }
}

}  // namespace didyma
