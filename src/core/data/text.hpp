// Text as bytes: characters, words, and columns of words. Every text ends with a newline.
#pragma once

#include <tuple>

#include "array.hpp"

namespace didyma::data {

using Text = Span<const uint8_t>;

inline bool is_digit(uint8_t code) { return code >= '0' && code <= '9'; }
// White space, the newline included.
inline bool is_space(uint8_t code) { return code == ' ' || (code >= '\t' && code <= '\r'); }
// What ends a word: white space, or the start of a comment.
inline bool is_end(uint8_t code) { return code == '#' || is_space(code); }

// The next byte that is not white space within the line.
inline int64_t skip_space(Text text, int64_t at) {
    while (is_space(text[at]) && text[at] != '\n') ++at;
    return at;
}

inline bool starts_with(Text text, int64_t at, Text word) {
    for (int64_t k = 0; k < word.size(); ++k) {
        if (text[at + k] != word[k]) return false;
    }
    return true;
}

// The bytes of a literal.
template <std::size_t N>
Text literal(const char (&word)[N]) {
    return {reinterpret_cast<const uint8_t*>(word), static_cast<int64_t>(N) - 1};
}

// Finds the words of each line that is not blank: spans[row, word] = (start, stop). Returns (rows,
// 0), or (row, words) of the first that has another number of them than `spans` has room for.
inline std::tuple<int64_t, int64_t> fields(Text text, Cube<int64_t> spans) {
    int64_t row = 0, at = 0;
    while (at < text.size()) {
        int64_t words = 0;
        at = skip_space(text, at);
        while (text[at] != '\n') {
            const int64_t start = at;
            while (!is_space(text[at])) ++at;
            if (words < spans.rows()) {
                spans(row, words, 0) = start;
                spans(row, words, 1) = at;
            }
            ++words;
            at = skip_space(text, at);
        }
        if (words > 0 && words != spans.rows()) return {row, words};
        row += words > 0;
        ++at;
    }
    return {row, 0};
}

// Copies each span of ASCII text into a row of `letters`; false where a byte is not ASCII.
inline bool gather(Text text, Matrix<const int64_t> spans, Matrix<uint32_t> letters) {
    bool ascii = true;
    for (int64_t row = 0; row < spans.rows(); ++row) {
        const auto word = text.slice(spans(row, 0), spans(row, 1));
        for (int64_t k = 0; k < word.size(); ++k) {
            letters(row, k) = word[k];
            ascii &= word[k] < 128;
        }
    }
    return ascii;
}

// Members of all arrays and objects of a JSON text; counting ends beyond `most`. An empty array or
// object counts as one member, and what is no JSON as anything.
inline int64_t count_values(Text text, int64_t most) {
    int64_t count = 0;
    bool is_string = false;
    for (int64_t at = 0; at < text.size() && count <= most; ++at) {
        const uint8_t code = text[at];
        if (code == '"') {
            is_string = !is_string;
        } else if (is_string) {
            at += code == '\\';
        } else {
            count += code == ',' || code == '[' || code == '{';
        }
    }
    return count;
}

}  // namespace didyma::data
