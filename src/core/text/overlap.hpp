// What a query and a passage have in common: one pass over the passage's words for its terms, one
// for its stems.
#pragma once

#include "text/reading.hpp"

namespace didyma::text {

// Character n-grams: term n has those numbered numbers[stops[n]:stops[n + 1]], all below `count`.
struct Grams {
    Span<const int32_t> numbers;
    Span<const int64_t> stops;
    int64_t count;
};

// How BM25 weighs lengths.
struct Saturation {
    double mean_length, k1, b;
    double operator()(int64_t length) const {
        return k1 * (1 - b + b * static_cast<double>(length) / mean_length);
    }
};

constexpr int64_t N_OVERLAPS = 16;

// `didyma.text.features.small` says what the columns mean.
class Overlaps {
  public:
    Overlaps(const Reading& reading, const Grams& grams, const Saturation& saturation)
        : reading_(reading),
          grams_(grams),
          saturation_(saturation),
          term_place_(reading.n_terms(), 0),
          term_count_(reading.n_terms(), 0),
          stem_place_(reading.n_stems(), 0),
          stem_count_(reading.n_stems(), 0),
          asked_grams_(grams.count),
          met_grams_(grams.count),
          met_(reading.longest_row()),
          hit_place_(reading.longest_row()),
          hit_at_(reading.longest_row()),
          asked_terms_(reading.longest_query()),
          asked_stems_(reading.longest_query()),
          sequence_(reading.longest_query()),
          tf_(reading.longest_query()),
          weight_(reading.longest_query()),
          run_(reading.longest_query()),
          run_end_(reading.longest_query()),
          common_(reading.longest_query() + 1),
          first_(reading.longest_query()),
          within_(reading.longest_query(), 0) {}

    Table<double> compute() {
        Table<double> values(reading_.n_rows(), N_OVERLAPS, 0.0);
        for (int64_t q = 0; q < reading_.n_queries(); ++q) {
            ask(q);
            for (int64_t r = reading_.bounds[q]; r < reading_.bounds[q + 1]; ++r) {
                const Reading::Tokens row = reading_.row(r);
                of_terms(row, r, values[r]);
                of_stems(row, values[r]);
                values(r, 15) = std::log(1 + static_cast<double>(row.size()));
            }
            for (int64_t i = 0; i < n_terms_; ++i) term_place_[asked_terms_[i]] = 0;
            for (int64_t i = 0; i < n_stems_; ++i) stem_place_[asked_stems_[i]] = 0;
        }
        return values;
    }

  private:
    // The distinct terms and stems of a query, and its stems in order.
    void ask(int64_t q) {
        const Reading::Tokens query = reading_.query(q);
        query_ = q;
        every_ = reading_.is_every(query);
        n_terms_ = n_stems_ = n_sequence_ = n_asked_grams_ = n_pairs_ = 0;
        for (int64_t t = query.begin; t < query.end; ++t) {
            const int32_t term = reading_.terms[t], stem = reading_.stems[t];
            const bool counts = reading_.counts(t, every_);
            if (term_place_[term] == 0) {
                asked_terms_[n_terms_] = term;
                tf_[n_terms_] = 0;
                term_place_[term] = static_cast<int32_t>(++n_terms_);
                if (counts) {
                    for (int64_t g = grams_.stops[term]; g < grams_.stops[term + 1]; ++g) {
                        n_asked_grams_ += asked_grams_.add(grams_.numbers[g], q + 1);
                    }
                }
            }
            tf_[term_place_[term] - 1] += 1;
            if (counts) {
                if (stem_place_[stem] == 0) {
                    asked_stems_[n_stems_] = stem;
                    stem_place_[stem] = static_cast<int32_t>(++n_stems_);
                }
                sequence_[n_sequence_++] = stem_place_[stem];
            }
        }
        asked_norm_ = asked_idf_ = 0.0;
        for (int64_t i = 0; i < n_terms_; ++i) {
            weight_[i] = (1 + std::log(tf_[i])) * reading_.term_idf[asked_terms_[i]];
            asked_norm_ += weight_[i] * weight_[i];
        }
        for (int64_t i = 0; i < n_stems_; ++i) asked_idf_ += reading_.stem_idf[asked_stems_[i]];
        follow_.assign(static_cast<size_t>(n_terms_ * n_terms_), -1);
        for (int64_t t = query.begin; t + 1 < query.end; ++t) {
            int64_t& row =
                following(term_place_[reading_.terms[t]], term_place_[reading_.terms[t + 1]]);
            n_pairs_ += row < 0;
            row = 0;
        }
    }

    // 1 + the last row in which two of the query's terms follow each other; −1 where they do not in
    // the query. Places count from 1.
    int64_t& following(int32_t before, int32_t place) {
        const int64_t at = (before - 1) * n_terms_ + place - 1;
        check_index(at, static_cast<int64_t>(follow_.size()));
        return follow_[static_cast<size_t>(at)];
    }

    void of_terms(Reading::Tokens row, int64_t r, Span<double> out) {
        int64_t n_met = 0, common_pairs = 0;
        int32_t before = 0;  // the place of the term before
        for (int64_t t = row.begin; t < row.end; ++t) {
            const int32_t term = reading_.terms[t];
            if (term_count_[term]++ == 0) met_[n_met++] = term;
            const int32_t place = term_place_[term];
            if (place > 0 && before > 0) {
                int64_t& last = following(before, place);
                if (0 <= last && last <= r) {
                    ++common_pairs;
                    last = r + 1;
                }
            }
            before = place;
        }
        const double saturation = saturation_(row.size());
        double bm25 = 0.0, product = 0.0, norm = 0.0;
        int64_t common_terms = 0, n_met_grams = 0, common_grams = 0;
        for (int64_t k = 0; k < n_met; ++k) {
            const int32_t term = met_[k];
            const double count = term_count_[term];
            const double idf = reading_.term_idf[term];
            const double weight = (1 + std::log(count)) * idf;
            norm += weight * weight;
            const int64_t i = term_place_[term] - 1;
            if (i >= 0) {
                ++common_terms;
                product += weight * weight_[i];
                bm25 += tf_[i] * idf * count / (count + saturation);
            }
            term_count_[term] = 0;
            if (every_ || !reading_.is_stop[term]) {
                for (int64_t g = grams_.stops[term]; g < grams_.stops[term + 1]; ++g) {
                    if (met_grams_.add(grams_.numbers[g], r + 1)) {
                        ++n_met_grams;
                        common_grams += asked_grams_.has(grams_.numbers[g], query_ + 1);
                    }
                }
            }
        }
        out[0] = bm25;
        out[1] = share(product, std::sqrt(asked_norm_ * norm));
        out[2] = share(common_terms, n_terms_);
        out[3] = share(common_terms, n_terms_ + n_met - common_terms);
        out[4] = share(common_pairs, n_pairs_);
        out[13] = share(common_grams, n_asked_grams_);
        out[14] = share(common_grams, n_asked_grams_ + n_met_grams - common_grams);
    }

    // Of words that count, in order.
    void of_stems(Reading::Tokens row, Span<double> out) {
        int64_t n_met = 0, n_hits = 0, place = 0, longest_run = 0;
        double met_idf = 0.0;
        for (int64_t i = 0; i < n_sequence_; ++i) run_end_[i] = -2;  // before the place before 0
        for (int64_t i = 0; i <= n_sequence_; ++i) common_[i] = 0;
        for (int64_t t = row.begin; t < row.end; ++t) {
            if (!reading_.counts(t, every_)) continue;
            const int32_t stem = reading_.stems[t], asked = stem_place_[stem];
            if (stem_count_[stem]++ == 0) {
                met_[n_met++] = stem;
                met_idf += reading_.stem_idf[stem];
                if (asked > 0) first_[asked - 1] = t - row.begin;
            }
            if (asked > 0) {
                hit_place_[n_hits] = asked - 1;
                hit_at_[n_hits++] = t;
                longest_run = std::max(longest_run, extend_runs(asked, place));
                extend_subsequence(asked);
            }
            ++place;
        }
        const double saturation = saturation_(row.size()), length = static_cast<double>(row.size());
        double bm25 = 0.0, common_idf = 0.0, early = 0.0;
        int64_t common_stems = 0;
        for (int64_t k = 0; k < n_met; ++k) {
            const int32_t stem = met_[k];
            const int64_t i = stem_place_[stem] - 1;
            if (i >= 0) {
                const double count = stem_count_[stem], idf = reading_.stem_idf[stem];
                ++common_stems;
                common_idf += idf;
                bm25 += idf * count / (count + saturation);
                early += idf * (1 - static_cast<double>(first_[i]) / length);
            }
            stem_count_[stem] = 0;
        }
        out[5] = bm25;
        out[6] = share(common_stems, n_stems_);
        out[7] = share(common_idf, asked_idf_);
        out[8] = share(common_idf, asked_idf_ + met_idf - common_idf);
        out[9] = share(longest_run, n_sequence_);
        out[10] = share(common_[n_sequence_], n_sequence_);
        const int64_t shortest = shortest_part(n_hits, common_stems, row.size());
        out[11] = common_stems > 1 ? share(common_stems - 1, shortest - 1) : 0.0;
        out[12] = share(early, asked_idf_);
    }

    // Runs of the query's stems that end with the word at a place; the longest of them.
    int64_t extend_runs(int32_t asked, int64_t place) {
        int64_t longest = 0;
        // Backwards, so that entry i - 1 is still that of the previous word.
        for (int64_t i = n_sequence_ - 1; i >= 0; --i) {
            if (sequence_[i] != asked) continue;
            run_[i] = 1 + (i > 0 && run_end_[i - 1] == place - 1 ? run_[i - 1] : 0);
            run_end_[i] = place;
            longest = std::max(longest, run_[i]);
        }
        return longest;
    }

    // The longest common subsequence with each beginning of the query's stems, one word on.
    void extend_subsequence(int32_t asked) {
        int64_t diagonal = 0;
        for (int64_t i = 0; i < n_sequence_; ++i) {
            const int64_t above = common_[i + 1];
            common_[i + 1] = sequence_[i] == asked ? diagonal + 1 : std::max(above, common_[i]);
            diagonal = above;
        }
    }

    // Words of the shortest part that has all stems that were met.
    int64_t shortest_part(int64_t n_hits, int64_t n_common, int64_t length) {
        int64_t shortest = length, left = 0, held = 0;
        for (int64_t right = 0; right < n_hits; ++right) {
            held += ++within_[hit_place_[right]] == 1;
            while (held == n_common) {
                shortest = std::min(shortest, hit_at_[right] - hit_at_[left] + 1);
                held -= --within_[hit_place_[left++]] == 0;
            }
        }
        for (int64_t k = left; k < n_hits; ++k) within_[hit_place_[k]] = 0;
        return shortest;
    }

    const Reading& reading_;
    const Grams grams_;
    const Saturation saturation_;
    // 1 + the place of a term or stem among the query's distinct ones; 0 for all others
    Array<int32_t> term_place_, term_count_, stem_place_, stem_count_;
    Marks asked_grams_, met_grams_;
    Array<int32_t> met_, hit_place_;
    Array<int64_t> hit_at_;
    Array<int32_t> asked_terms_, asked_stems_, sequence_;
    Array<double> tf_, weight_;
    Array<int64_t> run_, run_end_, common_, first_, within_;
    std::vector<int64_t> follow_;
    int64_t query_ = 0, n_terms_ = 0, n_stems_ = 0, n_sequence_ = 0;
    int64_t n_asked_grams_ = 0, n_pairs_ = 0;
    double asked_norm_ = 0.0, asked_idf_ = 0.0;
    bool every_ = false;
};

inline Table<double> overlaps(const Reading& reading, Span<const int32_t> grams,
                              Span<const int64_t> gram_stops, int64_t n_grams, double mean_length,
                              double k1, double b) {
    return Overlaps(reading, {grams, gram_stops, n_grams}, {mean_length, k1, b}).compute();
}

}  // namespace didyma::text
