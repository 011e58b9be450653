// In which texts words occur, and how often: the lists that a search adds up.
#pragma once

#include <vector>

#include "array.hpp"

namespace didyma::text {

// Adds to `counts` in how many texts each row occurs. Text i has the words begins[i] to
// begins[i + 1], and a word w the row rows[w], or none (−1).
inline void count_texts(Span<const int32_t> words, Span<const int64_t> rows,
                        Span<const int64_t> begins, Span<int64_t> counts) {
    Array<int64_t> last(counts.size(), -1);
    for (int64_t text = 0; text + 1 < begins.size(); ++text) {
        for (int64_t t = begins[text]; t < begins[text + 1]; ++t) {
            const int64_t row = rows[words[t]];
            if (row >= 0 && last[row] != text) {
                last[row] = text;
                ++counts[row];
            }
        }
    }
}

// Lists the texts of each row in order, with how often it occurs in them: row r has the entries
// starts[r] to starts[r + 1] of texts and counts.
inline void list_texts(Span<const int32_t> words, Span<const int64_t> rows,
                       Span<const int64_t> begins, Span<const int64_t> starts, Span<int32_t> texts,
                       Span<int32_t> counts) {
    Array<int64_t> at(starts.size() - 1);
    for (int64_t row = 0; row < at.size(); ++row) at[row] = starts[row] - 1;
    for (int64_t text = 0; text + 1 < begins.size(); ++text) {
        for (int64_t t = begins[text]; t < begins[text + 1]; ++t) {
            const int64_t row = rows[words[t]];
            if (row < 0) continue;
            if (at[row] < starts[row] || texts[at[row]] != text) {
                ++at[row];
                texts[at[row]] = static_cast<int32_t>(text);
                counts[at[row]] = 0;
            }
            ++counts[at[row]];
        }
    }
}

// Adds idf · count / (count + saturation) of some rows to the scores of their texts, which begin at
// zero. Returns the texts that a row has, or −1 alone if a list has a text that there is not.
template <class Count>
Array<int64_t> add_scores(Span<const int64_t> rows, Span<const double> idf,
                          Span<const int64_t> starts, Span<const int32_t> texts,
                          Span<const Count> counts, Span<const double> saturation,
                          Span<double> scores) {
    std::vector<int64_t> met;
    for (int64_t i = 0; i < rows.size(); ++i) {
        for (int64_t entry = starts[rows[i]]; entry < starts[rows[i] + 1]; ++entry) {
            const int32_t text = texts[entry];
            if (text < 0 || text >= scores.size()) return Array<int64_t>(1, -1);
            if (scores[text] == 0.0) met.push_back(text);
            const double count = static_cast<double>(counts[entry]);
            scores[text] += idf[i] * count / (count + saturation[text]);
        }
    }
    Array<int64_t> places(static_cast<int64_t>(met.size()));
    std::copy(met.begin(), met.end(), places.begin());
    return places;
}

}  // namespace didyma::text
