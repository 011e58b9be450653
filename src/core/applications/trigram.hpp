// The best tags of sentences, and the n best, under a second-order hidden Markov model.
//
// Sentences stand in one stream of entries of a lexicon, two boundaries before and after each:
//
//     B B w₁ w₂ w₃ B B w₁ B B
//
// and sentence s owns entries[starts[s]] to entries[starts[s + 1] - 2]. An entry has a few possible
// tags, the boundary a single one. The score of tags is the sum, over words and closing boundaries,
// of
//
//     log P(c | a, b) + log P(w | b, c)          for a word w and its tag c after the tags a and b.
#pragma once

#include <vector>

#include "array.hpp"

namespace didyma::trigram {

// Tags with values, a run for each row: those of row r from starts[r] to starts[r + 1].
struct Runs {
    Span<const int64_t> starts, tags;
    Span<const double> values;
};

// Log-probabilities. steps(rows(a, b), c) is log P(c | a, b): pairs (a, b) that were never seen
// share a row. The lexicon has for each entry w its tags c. Each is a row of `contexts`, which has,
// in order, the tags b that were seen before it with their log P(w | b, c); for all others, this is
// the value in the lexicon.
struct Model {
    Matrix<const int64_t> rows;
    Matrix<const double> steps;
    Runs lexicon, contexts;

    // Where the tags of an entry begin, and how many there are.
    int64_t begin(int64_t entry) const { return lexicon.starts[entry]; }
    int64_t n_tags(int64_t entry) const { return lexicon.starts[entry + 1] - begin(entry); }
    int64_t tag(int64_t entry, int64_t k) const { return lexicon.tags[begin(entry) + k]; }
    double step(int64_t a, int64_t b, int64_t c) const { return steps(rows(a, b), c); }

    // log P(w | b, c) for the w and c at a place of the lexicon.
    double emission(int64_t place, int64_t b) const {
        const auto seen = contexts.tags.slice(contexts.starts[place], contexts.starts[place + 1]);
        const int64_t at = std::lower_bound(seen.begin(), seen.end(), b) - seen.begin();
        return at < seen.size() && seen[at] == b ? contexts.values[contexts.starts[place] + at]
                                                 : lexicon.values[place];
    }
};

// A sentence's cells (b, c), tags of neighbours: the score of the best way to each, and the a
// before it. Here and below a, b and c count among the tags of their own words.
class Trellis {
  public:
    // Fills the cells of entries[first:stop].
    void fill(const Model& model, Span<const int64_t> entries, int64_t first, int64_t stop) {
        first_ = first;
        cells_.assign(stop - first + 4, 0);
        for (int64_t i = first - 1; i < stop + 2; ++i) {
            cells_[i - first + 2] =
                begin(i) + model.n_tags(entries[i - 1]) * model.n_tags(entries[i]);
        }
        value.resize(cells_.back());
        back.resize(cells_.back());
        value[0] = 0.0;
        for (int64_t i = first; i < stop + 2; ++i) {
            const int64_t x = entries[i - 2], y = entries[i - 1], z = entries[i];
            const int64_t n_a = model.n_tags(x), n_b = model.n_tags(y), n_c = model.n_tags(z);
            for (int64_t b = 0; b < n_b; ++b) {
                const int64_t b_tag = model.tag(y, b);
                for (int64_t c = 0; c < n_c; ++c) {
                    double highest = -INF;
                    int64_t best = 0;
                    for (int64_t a = 0; a < n_a; ++a) {
                        double score = value[begin(i - 1) + a * n_b + b];
                        if (!(score > highest)) continue;  // a transition only lowers it
                        score += model.step(model.tag(x, a), b_tag, model.tag(z, c));
                        if (score > highest) {
                            highest = score;
                            best = a;
                        }
                    }
                    const int64_t cell = begin(i) + b * n_c + c;
                    value[cell] = highest + model.emission(model.begin(z) + c, b_tag);
                    back[cell] = best;
                }
            }
        }
    }

    // Where the cells that end at position i begin.
    int64_t begin(int64_t i) const { return cells_[i - first_ + 1]; }

    std::vector<double> value;
    std::vector<int64_t> back;

  private:
    int64_t first_ = 0;
    std::vector<int64_t> cells_;
};

// The best tags, each at the position of its word in the stream.
inline void best_tags(const Model& model, Span<const int64_t> entries, Span<const int64_t> starts,
                      Span<int64_t> tags) {
    Trellis trellis;
    for (int64_t s = 0; s + 1 < starts.size(); ++s) {
        const int64_t first = starts[s], stop = starts[s + 1] - 2;
        trellis.fill(model, entries, first, stop);
        int64_t b = 0, c = 0;
        for (int64_t i = stop + 1; i > first + 1; --i) {
            const int64_t a = trellis.back[trellis.begin(i) + b * model.n_tags(entries[i]) + c];
            c = b;
            b = a;
            tags[i - 2] = model.tag(entries[i - 2], b);
        }
    }
}

// The n best tags (n, length of the stream), best first, and their scores (sentences, n).
//
// `tags` comes with zeros; scores are -inf where there are fewer ways. The second best way takes
// another a before some cell (b, c) of the best way, keeps what follows the cell, and is as good as
// can be before it. So do all others: each leaves a better one, its parent, at one cell, and is
// itself left only before that cell, so that none is met twice. Of those that were met the n best
// are kept, in order, and each is followed when its turn comes.
inline void n_best_tags(const Model& model, Span<const int64_t> entries, Span<const int64_t> starts,
                        Matrix<int64_t> tags, Matrix<double> totals) {
    struct Way {
        int64_t parent, leaves, chosen;
        double rest;  // its score from the cell on where it leaves its parent
    };
    const int64_t n = tags.rows();
    std::vector<Way> ways(n);
    Trellis trellis;
    for (int64_t s = 0; s + 1 < starts.size(); ++s) {
        const int64_t first = starts[s], stop = starts[s + 1] - 2;
        trellis.fill(model, entries, first, stop);
        const auto total = totals[s];
        total.fill(-INF);
        total[0] = trellis.value.back();
        ways[0] = {0, stop + 2, 0, 0.0};
        int64_t size = 1;
        for (int64_t r = 0; r < size; ++r) {
            const auto path = tags[r];
            const int64_t leaves = ways[r].leaves;
            const auto after_leaving = tags[ways[r].parent].slice(leaves - 1, stop + 2);
            std::copy(after_leaving.begin(), after_leaving.end(),
                      path.slice(leaves - 1, stop + 2).begin());
            path[leaves - 2] = ways[r].chosen;
            double after = ways[r].rest;
            for (int64_t i = leaves - 1; i > first + 1; --i) {
                const int64_t b = path[i - 1], c = path[i];
                const int64_t x = entries[i - 2], y = entries[i - 1], z = entries[i];
                const int64_t best = trellis.back[trellis.begin(i) + b * model.n_tags(z) + c];
                path[i - 2] = best;
                const int64_t b_tag = model.tag(y, b), c_tag = model.tag(z, c);
                after += model.emission(model.begin(z) + c, b_tag);
                const int64_t before = trellis.begin(i - 1) + b, n_b = model.n_tags(y);
                for (int64_t a = 0; a < model.n_tags(x); ++a) {
                    double score = trellis.value[before + a * n_b] + after;
                    if (a == best || score <= total[n - 1]) continue;
                    const double step = model.step(model.tag(x, a), b_tag, c_tag);
                    score = std::min(score + step, total[r]);  // equal ones may round differently
                    if (!(score > total[n - 1])) continue;
                    size = std::min(size + 1, n);
                    int64_t k = size - 1;
                    for (; k > r + 1 && total[k - 1] < score; --k) {
                        total[k] = total[k - 1];
                        ways[k] = ways[k - 1];
                    }
                    total[k] = score;
                    ways[k] = {r, i, a, step + after};
                }
                after += model.step(model.tag(x, best), b_tag, c_tag);
            }
        }
        for (int64_t r = 0; r < size; ++r) {
            for (int64_t i = first; i < stop; ++i) {
                tags(r, i) = model.tag(entries[i], tags(r, i));
            }
        }
    }
}

}  // namespace didyma::trigram
