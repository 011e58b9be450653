// Windows of DNA: scored against a position-specific matrix, and turned back into features.
//
// Bases are 0 to 3, anything else is unknown. Score of the window that starts at h, relative to
// background only:
//
//     s(h) = Σ_{j<l} matrix[j, x_{h+j}] − background[k-mer that starts at h + j]
//
// A k-mer with an unknown or missing base has the number 4^k and weighs nothing. Several positions
// at once come from a table over longer words: with blocks of `width` positions a window costs l /
// width look-ups.
#pragma once

#include <cmath>

#include "learning/cut.hpp"

namespace didyma::motif {

using Codes = Span<const uint8_t>;
using Kmers = Span<const uint16_t>;

// out[p] = the k bases from p as a number of base 4, or 4^k where one is unknown or missing.
inline void number_words(Codes codes, int64_t k, Span<uint16_t> out) {
    const int64_t none = int64_t{1} << (2 * k), n = codes.size();
    int64_t word = 0, known = 0;
    for (int64_t p = 0; p < n; ++p) {
        known = codes[p] < 4 ? known + 1 : 0;
        word = ((word << 2) + (codes[p] & 3)) & (none - 1);
        if (p >= k - 1) out[p - k + 1] = static_cast<uint16_t>(known >= k ? word : none);
    }
    out.slice(std::max<int64_t>(0, n - k + 1), n).fill(static_cast<uint16_t>(none));
}

// table[t, word] = what positions t·width, …, t·width + width − 1 of a window add up to. A word has
// width + k − 1 bases, enough for the k-mers of all these positions.
inline void tabulate(Matrix<const double> matrix, Span<const double> background, int64_t k,
                     int64_t width, Matrix<double> table) {
    const int64_t size = width + k - 1, mask = (int64_t{1} << (2 * k)) - 1;
    for (int64_t t = 0; t < table.rows(); ++t) {
        for (int64_t word = 0; word < table.columns(); ++word) {
            double total = 0.0;
            for (int64_t u = 0; u < width && t * width + u < matrix.rows(); ++u) {
                total += matrix(t * width + u, (word >> (2 * (size - 1 - u))) & 3);
                total -= background[(word >> (2 * (size - u - k))) & mask];
            }
            table(t, word) = total;
        }
    }
}

// Scores of all windows in runs of known bases, each (begin, end, where its scores go). The last
// few windows of a run, whose words reach beyond it, are summed base by base.
inline void scan_runs(Codes codes, Kmers kmers, Kmers words, int64_t k, int64_t width,
                      Matrix<const int64_t> runs, Matrix<const double> table,
                      Matrix<const double> matrix, Span<const double> background,
                      Span<double> out) {
    const int64_t length = matrix.rows(), blocks = table.rows();
    const int64_t reach = blocks * width + k - 1;
    for (int64_t r = 0; r < runs.rows(); ++r) {
        const int64_t begin = runs(r, 0), end = runs(r, 1), offset = runs(r, 2) - begin;
        const int64_t middle = std::max(begin, end - reach + 1);
        for (int64_t h = begin; h < middle; ++h) {
            double total = 0.0;
            for (int64_t t = 0; t < blocks; ++t) total += table(t, words[h + t * width]);
            out[offset + h] = total;
        }
        for (int64_t h = middle; h <= end - length; ++h) {
            double total = 0.0;
            for (int64_t j = 0; j < length; ++j) {
                total += matrix(j, codes[h + j]) - background[kmers[h + j]];
            }
            out[offset + h] = total;
        }
    }
}

// Index of the first maximum of a part, or -1 if it is empty.
inline int64_t best_of(Span<const double> scores, int64_t first, int64_t last) {
    int64_t best = -1;
    double highest = -INF;
    for (int64_t m = first; m < last; ++m) {
        if (scores[m] > highest) {
            best = m;
            highest = scores[m];
        }
    }
    return best;
}

// Best window of each positive sequence; one that is no better than the former is not taken.
inline void improve(Span<const double> scores, Span<const int64_t> starts,
                    Span<const int64_t> signs, double tie, Span<int64_t> gold) {
    for (int64_t i = 0; i + 1 < starts.size(); ++i) {
        if (signs[i] <= 0) continue;
        const int64_t best = best_of(scores, starts[i], starts[i + 1]), old = gold[i];
        if (old < 0 || scores[best] > scores[old] + tie * std::max(1.0, std::abs(scores[old]))) {
            gold[i] = best;
        }
    }
}

// All places for a motif: window m of sequence i, from starts[i] to starts[i + 1], begins at
// positions[m]; the second half of a sequence's windows is read on the other strand, if there are
// two.
struct Windows {
    Codes codes;
    Kmers kmers;
    int64_t length, strands;
    Span<const int64_t> starts, positions;

    int64_t reverse(int64_t i) const { return starts[i] + (starts[i + 1] - starts[i]) / strands; }

    // Adds c times the features of window m of sequence i, less those of background in its place.
    void add(int64_t i, int64_t m, double c, Span<double> out) const {
        const int64_t h = positions[m], n_kmers = out.size() - 4 * length;
        const bool backwards = m >= reverse(i);
        for (int64_t j = 0; j < length; ++j) {
            const int64_t base = codes[h + j];
            out[backwards ? 4 * (length - 1 - j) + 3 - base : 4 * j + base] += c;
            if (kmers[h + j] < n_kmers) out[4 * length + kmers[h + j]] -= c;
        }
    }

    // out += Σ_i weights[i] · features of the window sites[i], if there is one.
    void add_sites(Span<const int64_t> sites, Span<const double> weights, Span<double> out) const {
        for (int64_t i = 0; i < sites.size(); ++i) {
            if (sites[i] >= 0) add(i, sites[i], weights[i], out);
        }
    }
};

// Labelled sequences. `options` are the margin that is added to errors, the loss of an error, and
// whether the latent window is that of the present weights.
class MotifProblem : public CutOracle {
  public:
    MotifProblem(Windows windows, Span<const int64_t> signs, Span<const int64_t> gold,
                 Span<const double> options)
        : windows_(windows),
          signs_(signs),
          gold_(gold),
          margin_(options[0]),
          scale_(options[1]),
          online_(options[2] > 0.0) {}

    // Risk of each sequence and weighted cut of all, given all scores; returns its loss.
    double answer(Span<const double> scores, Span<const double> weights, Span<double> risks,
                  Span<double> direction) const {
        double total = 0.0;
        for (int64_t i = 0; i < signs_.size(); ++i) {
            const int64_t best = best_of(scores, windows_.starts[i], windows_.starts[i + 1]);
            const bool positive = best >= 0 && decide(i, scores[best]);
            double risk = positive != (signs_[i] > 0) ? scale_ : 0.0;
            total += weights[i] * risk;
            if (positive) {
                risk += scores[best];
                windows_.add(i, best, weights[i], direction);
            }
            if (signs_[i] > 0) {
                const int64_t latent = online_ ? best : gold_[i];
                risk -= scores[latent];
                windows_.add(i, latent, -weights[i], direction);
            }
            risks[i] = risk;
        }
        return total;
    }

    double cut(Span<const double> w, int64_t i, int64_t, Span<double> direction) const override {
        const int64_t length = windows_.length, n_kmers = w.size() - 4 * length;
        const int64_t reverse = windows_.reverse(i);
        int64_t best = -1;
        double highest = 0.0;
        for (int64_t m = windows_.starts[i]; m < windows_.starts[i + 1]; ++m) {
            const int64_t h = windows_.positions[m];
            double total = 0.0;
            for (int64_t j = 0; j < length; ++j) {
                const int64_t base = windows_.codes[h + j], kmer = windows_.kmers[h + j];
                total += w[m < reverse ? 4 * j + base : 4 * (length - 1 - j) + 3 - base];
                if (kmer < n_kmers) total -= w[4 * length + kmer];
            }
            if (best < 0 || total > highest) {
                best = m;
                highest = total;
            }
        }
        direction.fill(0.0);
        const bool positive = best >= 0 && decide(i, highest);
        if (positive) windows_.add(i, best, 1.0, direction);
        if (signs_[i] > 0) windows_.add(i, online_ ? best : gold_[i], -1.0, direction);
        return positive != (signs_[i] > 0) ? scale_ : 0.0;
    }

  private:
    // Whether answering +1 with the best window's score wins.
    bool decide(int64_t i, double best) const {
        return signs_[i] > 0 ? best > margin_ : best + margin_ > 0.0;
    }

    Windows windows_;
    Span<const int64_t> signs_, gold_;
    double margin_, scale_;
    bool online_;
};

// Adds c for each base of a window, read along its strand.
inline void tally(Codes codes, int64_t h, bool backwards, double c, Matrix<double> counts) {
    const int64_t length = counts.rows();
    for (int64_t j = 0; j < length; ++j) {
        if (backwards) {
            counts(length - 1 - j, 3 - codes[h + j]) += c;
        } else {
            counts(j, codes[h + j]) += c;
        }
    }
}

// counts[j, base] over the sites of all sequences but `skip`.
inline void count_sites(const Windows& windows, Span<const int64_t> sites, int64_t skip,
                        Matrix<double> counts) {
    counts.fill(0.0);
    for (int64_t i = 0; i < sites.size(); ++i) {
        if (i == skip) continue;
        tally(windows.codes, windows.positions[sites[i]], sites[i] >= windows.reverse(i), 1.0,
              counts);
    }
}

// One sweep of Gibbs sampling: a new site for each sequence, given those of the others. `counts`
// are those of the present sites, expected[p] is the log probability of the base at p under the
// background, summed from the beginning; prior[base] are pseudocounts.
inline void sample_sites(const Windows& windows, Span<const double> expected,
                         Span<const double> prior, Span<const double> uniform,
                         Matrix<double> counts, Span<int64_t> sites) {
    const int64_t length = counts.rows();
    const auto n = static_cast<double>(sites.size() - 1);
    const double total = ((prior[0] + prior[1]) + prior[2]) + prior[3];
    Table<double> matrix(length, 4);
    for (int64_t i = 0; i < sites.size(); ++i) {
        const int64_t first = windows.starts[i], last = windows.starts[i + 1];
        const int64_t reverse = windows.reverse(i);
        tally(windows.codes, windows.positions[sites[i]], sites[i] >= reverse, -1.0, counts);
        for (int64_t j = 0; j < length; ++j) {
            for (int64_t base = 0; base < 4; ++base) {
                matrix(j, base) = std::log((counts(j, base) + prior[base]) / (n + total));
            }
        }
        Array<double> odds(last - first);
        double highest = -INF;
        for (int64_t m = first; m < last; ++m) {
            const int64_t h = windows.positions[m];
            double score = expected[h] - expected[h + length];
            for (int64_t j = 0; j < length; ++j) {
                const int64_t base = windows.codes[h + j];
                score += m < reverse ? matrix(j, base) : matrix(length - 1 - j, 3 - base);
            }
            odds[m - first] = score;
            highest = std::max(highest, score);
        }
        double mass = 0.0;
        for (double& share : odds) {
            mass += std::exp(share - highest);
            share = mass;
        }
        int64_t chosen = 0;
        while (chosen < last - first - 1 && odds[chosen] < uniform[i] * mass) ++chosen;
        sites[i] = first + chosen;
        tally(windows.codes, windows.positions[sites[i]], sites[i] >= reverse, 1.0, counts);
    }
}

}  // namespace didyma::motif
