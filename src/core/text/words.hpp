// Words of a text as spans of code points.
#pragma once

#include "array.hpp"

namespace didyma::text {

// What a character is, those of words first among the known; a text must have no UNKNOWN ones.
enum Kind : uint8_t { UNKNOWN, LETTER, DIGIT, MARK, POINT, UNSPACED, BETWEEN };
constexpr uint8_t KIND = 7;         // bits of a property that say the kind
constexpr uint8_t IS_CAPITAL = 8;   // further bits: a capital letter
constexpr uint8_t IS_NUMERAL = 16;  // a digit of whatever form

// Characters with their properties, a byte for each code point that there is.
struct Characters {
    Span<const uint32_t> codes;
    Span<const uint8_t> properties;

    int64_t size() const { return codes.size(); }
    uint8_t kind(int64_t at) const { return properties[codes[at]] & KIND; }

    // Whether a character belongs to the word that stands before it.
    bool continues(int64_t at) const {
        const uint8_t own = kind(at);
        if (own != POINT) return LETTER <= own && own <= MARK;
        return kind(at - 1) == DIGIT && at + 1 < size() && kind(at + 1) == DIGIT;
    }

    // The first place after a character and its marks.
    int64_t after(int64_t at) const {
        do ++at;
        while (at < size() && kind(at) == MARK);
        return at;
    }
};

inline bool has_unknown(Span<const uint32_t> codes, Span<const uint8_t> properties) {
    return std::any_of(codes.begin(), codes.end(),
                       [&](uint32_t code) { return properties[code] == UNKNOWN; });
}

// Calls word(start, stop) for each word, in order.
//
// A word is a run of letters, digits and marks, and of points that stand between digits. Where a
// script has no spaces, each pair of neighbouring characters is a word; a character is a letter
// with the marks that follow it.
template <class Word>
void split(const Characters& text, Word word) {
    const int64_t end = text.size();
    int64_t at = 0;
    while (at < end) {
        const uint8_t kind = text.kind(at);
        const int64_t start = at;
        if (kind == LETTER || kind == DIGIT) {
            do ++at;
            while (at < end && text.continues(at));
            word(start, at);
        } else if (kind == UNSPACED) {
            int64_t before = start;
            bool alone = true;
            at = text.after(at);
            while (at < end && text.kind(at) == UNSPACED) {
                const int64_t last = at;
                at = text.after(at);
                word(before, at);
                before = last;
                alone = false;
            }
            if (alone) word(start, at);
        } else {
            ++at;
        }
    }
}

}  // namespace didyma::text
