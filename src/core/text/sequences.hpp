// What the words of a query and of a passage have in common, in order.
#pragma once

#include "text/reading.hpp"

namespace didyma::text {

constexpr int64_t N_SEQUENCES = 4;

// Common substring, subsequence and tiles as shares of the query, and a kernel with gaps.
//
// Tiles are common substrings of at least `shortest` words, taken greedily. The last column is the
// mean of the cosines of one and of two words with gaps: the kernel of m words is the sum of
// decay^(span in a + span in b) over all pairs of equal subsequences of m words (Lodhi et al.
// 2002).
class Sequences {
  public:
    using Words = Span<const int32_t>;

    Sequences(const Reading& reading, int64_t shortest, double decay)
        : reading_(reading),
          shortest_(static_cast<double>(shortest)),
          decay_(decay),
          a_(longest()),
          b_(longest()),
          above_(longest() + 1),
          row_(longest() + 1),
          free_a_(longest()),
          free_b_(longest()) {}

    // Of `words`, one for each token; of those that count if only content does.
    Table<double> compute(Words words, bool only_content) {
        Table<double> values(reading_.n_rows(), N_SEQUENCES, 0.0);
        for (int64_t q = 0; q < reading_.n_queries(); ++q) {
            const bool every = !only_content || reading_.is_every(reading_.query(q));
            const Words a = take(words, reading_.query(q), every, a_);
            const auto [one_a, two_a] = gappy(a, a);
            for (int64_t r = reading_.bounds[q]; r < reading_.bounds[q + 1]; ++r) {
                const Words b = take(words, reading_.row(r), every, b_);
                const auto [one, two] = gappy(a, b);
                if (one == 0) continue;  // no word is common
                const auto [one_b, two_b] = gappy(b, b);
                const double n = static_cast<double>(a.size()), run = longest_run(a, b);
                values(r, 0) = run / n;
                values(r, 1) = subsequence(a, b) / n;
                if (run >= shortest_) values(r, 2) = tiles(a, b) / n;
                values(r, 3) = one / std::sqrt(one_a * one_b) / 2;
                if (two > 0) values(r, 3) += two / std::sqrt(two_a * two_b) / 2;
            }
        }
        return values;
    }

  private:
    int64_t longest() const { return std::max(reading_.longest_query(), reading_.longest_row()); }

    Words take(Words words, Reading::Tokens text, bool every, Span<int32_t> taken) const {
        int64_t n = 0;
        for (int64_t t = text.begin; t < text.end; ++t) {
            if (reading_.counts(t, every)) taken[n++] = words[t];
        }
        return taken.first(n);
    }

    // Kernels of one and of two words.
    std::pair<double, double> gappy(Words a, Words b) {
        double one = 0.0, two = 0.0;
        // the kernel of one word in a[:i], b[:j], spans counted to i and j
        above_.first(b.size() + 1).fill(0.0);
        for (int64_t i = 0; i < a.size(); ++i) {
            double along = 0.0;
            row_[0] = 0.0;
            for (int64_t j = 0; j < b.size(); ++j) {
                along *= decay_;
                if (a[i] == b[j]) {
                    one += decay_ * decay_;
                    two += decay_ * decay_ * above_[j];
                    along += decay_ * decay_;
                }
                row_[j + 1] = decay_ * above_[j + 1] + along;
            }
            std::swap(above_, row_);
        }
        return {one, two};
    }

    double longest_run(Words a, Words b) {
        const Span<double> run = above_;
        double longest = 0.0;
        run.first(b.size() + 1).fill(0.0);
        for (int64_t i = 0; i < a.size(); ++i) {
            for (int64_t j = b.size() - 1; j >= 0; --j) {
                run[j + 1] = a[i] == b[j] ? run[j] + 1 : 0.0;
                longest = std::max(longest, run[j + 1]);
            }
        }
        return longest;
    }

    double subsequence(Words a, Words b) {
        const Span<double> common = above_;
        common.first(b.size() + 1).fill(0.0);
        for (int64_t i = 0; i < a.size(); ++i) {
            double diagonal = 0.0;
            for (int64_t j = 0; j < b.size(); ++j) {
                const double before = common[j + 1];
                common[j + 1] = a[i] == b[j] ? diagonal + 1 : std::max(before, common[j]);
                diagonal = before;
            }
        }
        return common[b.size()];
    }

    // Words covered when the longest free common substring is taken, again and again. Of equally
    // long ones the first in a, then in b, is taken.
    double tiles(Words a, Words b) {
        free_a_.first(a.size()).fill(true);
        free_b_.first(b.size()).fill(true);
        const Span<double> run = above_;
        for (double covered = 0.0;;) {
            double length = 0.0;
            int64_t at_a = 0, at_b = 0;
            run.first(b.size() + 1).fill(0.0);
            for (int64_t i = a.size() - 1; i >= 0; --i) {
                for (int64_t j = 0; j < b.size(); ++j) {
                    // entry j is overwritten when entry j + 1 is still that of the next word of a
                    run[j] = a[i] == b[j] && free_a_[i] && free_b_[j] ? run[j + 1] + 1 : 0.0;
                }
                for (int64_t j = b.size() - 1; j >= 0; --j) {
                    if (run[j] >= length && run[j] > 0) {
                        length = run[j];
                        at_a = i;
                        at_b = j;
                    }
                }
            }
            if (length < shortest_) return covered;
            const auto n = static_cast<int64_t>(length);
            free_a_.slice(at_a, at_a + n).fill(false);
            free_b_.slice(at_b, at_b + n).fill(false);
            covered += length;
        }
    }

    const Reading& reading_;
    const double shortest_, decay_;
    Array<int32_t> a_, b_;
    Array<double> above_, row_;
    Array<bool> free_a_, free_b_;
};

// Of all terms.
inline Table<double> word_sequences(const Reading& reading, int64_t shortest, double decay) {
    return Sequences(reading, shortest, decay).compute(reading.terms, false);
}

// Of the stems of words that count.
inline Table<double> stem_sequences(const Reading& reading, int64_t shortest, double decay) {
    return Sequences(reading, shortest, decay).compute(reading.stems, true);
}

}  // namespace didyma::text
