// Queries and their passages as numbered words.
#pragma once

#include <cmath>
#include <vector>

#include "array.hpp"

namespace didyma::text {

// Text i has the tokens begins[i] to ends[i]. Query q is text queries[q], and its rows bounds[q] to
// bounds[q + 1] are the texts of `rows`. Terms and stems are those of tokens; is_stop and
// term_idf have an entry for each term, stem_idf for each stem.
struct Reading {
    Span<const int32_t> terms, stems;
    Span<const int64_t> begins, ends, queries, bounds, rows;
    Span<const bool> is_stop;
    Span<const double> term_idf, stem_idf;

    int64_t n_queries() const { return queries.size(); }
    int64_t n_rows() const { return rows.size(); }
    int64_t n_terms() const { return term_idf.size(); }
    int64_t n_stems() const { return stem_idf.size(); }

    // Tokens of a text.
    struct Tokens {
        int64_t begin, end;
        int64_t size() const { return end - begin; }
    };
    Tokens query(int64_t q) const { return text(queries[q]); }
    Tokens row(int64_t r) const { return text(rows[r]); }
    Tokens text(int64_t i) const { return {begins[i], ends[i]}; }

    int64_t longest_query() const {
        int64_t longest = 1;
        for (int64_t q = 0; q < n_queries(); ++q) longest = std::max(longest, query(q).size());
        return longest;
    }
    int64_t longest_row() const {
        int64_t longest = 1;
        for (int64_t r = 0; r < n_rows(); ++r) longest = std::max(longest, row(r).size());
        return longest;
    }

    // A word counts if it is no stop word, or if the query has nothing else.
    bool is_every(Tokens query) const {
        for (int64_t t = query.begin; t < query.end; ++t) {
            if (!is_stop[terms[t]]) return false;
        }
        return true;
    }
    bool counts(int64_t t, bool every) const { return every || !is_stop[terms[t]]; }
};

// A part of a whole, 0 of nothing.
inline double share(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

// Which of some numbers were met since a moment: that of a query or of a row.
class Marks {
  public:
    explicit Marks(int64_t size) : moments_(size, 0) {}
    bool has(int64_t number, int64_t moment) const { return moments_[number] == moment; }
    // Whether it is new.
    bool add(int64_t number, int64_t moment) {
        const bool is_new = moments_[number] != moment;
        moments_[number] = moment;
        return is_new;
    }

  private:
    Array<int64_t> moments_;
};

}  // namespace didyma::text
