// What is to be known of each distinct word of some texts.
#pragma once

#include <string>
#include <tuple>

#include "text/strings.hpp"
#include "text/words.hpp"

namespace didyma::text {

constexpr int64_t LONGEST_WORD = 64;  // code points; what a longer one has beyond is not looked at
constexpr int64_t GRAM = 3, PREFIX = 4;  // characters

// Bits of a word's traits that are told by its characters; a language names others.
constexpr int64_t NUMBER = 1, YEAR = 64;
constexpr int64_t STOP_WORD = int64_t{1} << 32;

// The terms and stems of a collection, and which term has which stem; shared and never written.
struct Vocabulary {
    Texts terms, stems;
    Span<const int32_t> stem_of;
    int64_t width;  // of digests that stand for the texts in old files, or 0
};

// The words of a language that have traits.
struct Traits {
    Texts terms;
    Span<const int64_t> bits;

    int64_t operator()(std::string_view term, uint32_t hash) const {
        const int32_t place = terms.find(term, hash);
        return place < 0 ? 0 : bits[place];
    }
};

inline void append_utf8(uint32_t code, std::string& to) {
    auto byte = [&](uint32_t bits) { to.push_back(static_cast<char>(bits)); };
    auto more = [&](int shift) { byte(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) {
        byte(code);
    } else if (code < 0x800) {
        byte(0xc0 | (code >> 6)), more(0);
    } else if (code < 0x10000) {
        byte(0xe0 | (code >> 12)), more(6), more(0);
    } else {
        byte(0xf0 | (code >> 18)), more(12), more(6), more(0);
    }
}

// The code point at a place, which moves on behind it.
inline uint32_t next_code(std::string_view text, size_t& at) {
    const auto first = static_cast<uint8_t>(text[at++]);
    if (first < 0x80) return first;
    uint32_t code = first < 0xe0 ? first & 31 : first < 0xf0 ? first & 15 : first & 7;
    while (at < text.size() && (text[at] & 0xc0) == 0x80) code = code << 6 | (text[at++] & 63);
    return code;
}

template <class T>
Array<T> copied(const std::vector<T>& values) {
    Array<T> array(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), array.begin());
    return array;
}

// Numbers of the terms and stems of words, in the order in which they are met.
//
// A word is what stands in a text, its term what folding makes of it, its stem the term without its
// ending. Texts are read in rounds, between which Python does what needs tables of Unicode and a
// stemmer: `split`; words beyond ASCII, and numbers with commas, are folded (`unfolded`, `fold`);
// terms that the vocabulary lacks are stemmed (`unstemmed`, `stem`); `tokens`. A vocabulary of
// digests is asked in between (`unidentified`, `identify`).
class Lexicon {
  public:
    Lexicon(const Vocabulary* vocabulary, const Traits& traits)
        : vocabulary_(vocabulary), trait_words_(traits) {}

    // Finds the words of a text.
    void split(Span<const uint32_t> codes, Span<const uint8_t> properties) {
        tokens_.clear();
        tokens_.reserve(static_cast<size_t>(codes.size() / 4));
        const Array<char> folded = fold_ascii(codes);
        text::split({codes, properties}, [&](int64_t start, int64_t stop) {
            const int64_t end = std::min(stop, start + LONGEST_WORD);
            const Span<const char> term = folded.slice(start, end);
            const Span<const uint32_t> word = codes.slice(start, end);
            const bool is_folded =
                std::memchr(term.data(), UNFOLDED, static_cast<size_t>(term.size())) == nullptr;
            const int32_t number =
                is_folded ? number_term({term.data(), static_cast<size_t>(term.size())}, properties)
                          : ~others_.number({reinterpret_cast<const char32_t*>(word.data()),
                                             static_cast<size_t>(word.size())});
            const bool is_capital = (properties[codes[start]] & IS_CAPITAL) != 0;
            tokens_.push_back(
                {number, static_cast<int32_t>(start), static_cast<int32_t>(stop), is_capital});
        });
    }

    // New words beyond ASCII, and numbers with commas.
    std::string unfolded() const {
        std::string bytes;
        for (int64_t n = size(term_of_other_); n < others_.size(); ++n) {
            for (char32_t code : others_[n]) append_utf8(code, bytes);
            bytes.push_back(END);
        }
        return bytes;
    }

    // Numbers their terms.
    void fold(std::string_view folded, Span<const uint8_t> properties) {
        Lines lines(folded);
        for (int64_t n = size(term_of_other_); n < others_.size(); ++n) {
            term_of_other_.push_back(number_term(lines.next(), properties));
        }
    }

    // Of each word of the text that was split last: its term, where it starts and stops, and
    // whether it begins with a capital.
    std::tuple<Array<int32_t>, Array<int32_t>, Array<int32_t>, Array<bool>> tokens() const {
        const int64_t n = size(tokens_);
        Array<int32_t> terms(n), starts(n), stops(n);
        Array<bool> is_capital(n);
        for (int64_t t = 0; t < n; ++t) {
            const Token& token = tokens_[t];
            terms[t] = token.number >= 0 ? token.number : term_of_other_[~token.number];
            starts[t] = token.start;
            stops[t] = token.stop;
            is_capital[t] = token.is_capital;
        }
        return {std::move(terms), std::move(starts), std::move(stops), std::move(is_capital)};
    }

    // Terms whose place in a vocabulary of digests is not known yet.
    std::string_view unidentified() const { return terms_.from(size(places_)); }
    void identify(std::string_view digests) {
        for (size_t at = 0; at < digests.size(); at += static_cast<size_t>(vocabulary_->width)) {
            const auto key = digests.substr(at, static_cast<size_t>(vocabulary_->width));
            places_.push_back(vocabulary_->terms.find(key, Numbering<char>::hash(key)));
        }
    }

    // New terms that the vocabulary lacks.
    std::string unstemmed() const {
        std::string bytes;
        for (int64_t n = size(stem_); n < terms_.size(); ++n) {
            if (places_[n] < 0) bytes.append(terms_[n]).push_back(END);
        }
        return bytes;
    }

    // Numbers the stems of new terms, given those of `unstemmed` as the vocabulary has them.
    void stem(std::string_view stemmed, int64_t width) {
        Lines lines(stemmed);
        for (int64_t n = size(stem_); n < terms_.size(); ++n) {
            if (places_[n] >= 0) {
                stem_.push_back(number_stem(vocabulary_->stem_of[places_[n]]));
            } else if (width > 0) {
                stem_.push_back(number_stem(stemmed.substr(0, static_cast<size_t>(width))));
                stemmed.remove_prefix(static_cast<size_t>(width));
            } else {
                stem_.push_back(number_stem(lines.next()));
            }
        }
    }

    const Numbering<char>& terms() const { return terms_; }
    const Numbering<char>& stems() const { return stems_; }

    Array<int32_t> stem_of_term() const { return copied(stem_); }
    Array<int32_t> term_places() const { return copied(places_); }
    Array<int32_t> stem_places() const { return copied(stem_places_); }

    Array<bool> is_stop() const {
        Array<bool> array(size(traits_));
        for (int64_t n = 0; n < array.size(); ++n) array[n] = (traits_[n] & STOP_WORD) != 0;
        return array;
    }
    Array<int64_t> traits() const {
        Array<int64_t> array(size(traits_));
        for (int64_t n = 0; n < array.size(); ++n) array[n] = traits_[n] & (STOP_WORD - 1);
        return array;
    }

    // The number of each term's first characters.
    Array<int32_t> prefixes() const {
        Numbering<char> numbering;
        Array<int32_t> prefixes(terms_.size());
        for (int64_t n = 0; n < terms_.size(); ++n) {
            const std::string_view term = terms_[n];
            size_t stop = 0;
            for (int64_t count = 0; stop < term.size(); ++stop) {
                if ((term[stop] & 0xc0) != 0x80 && ++count > PREFIX) break;
            }
            prefixes[n] = numbering.number(term.substr(0, stop));
        }
        return prefixes;
    }

    // Distinct character n-grams of each term: three in a row of ^term$, or the characters of
    // scripts without spaces. Term n has those numbered grams[stops[n]:stops[n + 1]]; with them
    // how many there are.
    std::tuple<Array<int32_t>, Array<int64_t>, int64_t> grams() const {
        Slots slots;
        std::vector<uint64_t> keys;
        std::vector<int64_t> last;  // 1 + the last term that has it
        std::vector<int32_t> grams;
        Array<int64_t> stops(terms_.size() + 1);
        stops[0] = 0;
        for (int64_t n = 0; n < terms_.size(); ++n) {
            auto take = [&](uint64_t key) {
                const uint32_t hash = hash_number(key);
                int32_t gram = slots.find(hash, [&](int32_t g) { return keys[g] == key; });
                if (gram < 0) {
                    gram = slots.add(hash);
                    keys.push_back(key);
                    last.push_back(0);
                }
                if (last[gram] != n + 1) grams.push_back(gram);
                last[gram] = n + 1;
            };
            const std::string_view term = terms_[n];
            size_t at = 0;
            if (traits_[n] & UNSPACED_TERM) {
                while (at < term.size()) take(next_code(term, at));
            } else {
                uint64_t run = uint64_t{'^'} << 21 | next_code(term, at);
                while (at < term.size()) {
                    run = (run << 21 | next_code(term, at)) & THREE_CODES;
                    take(run);
                }
                take((run << 21 | '$') & THREE_CODES);
            }
            stops[n + 1] = size(grams);
        }
        return {copied(grams), std::move(stops), slots.size()};
    }

  private:
    static constexpr char UNFOLDED = '\0';
    static constexpr int64_t UNSPACED_TERM = STOP_WORD << 1;
    static constexpr uint64_t THREE_CODES = (uint64_t{1} << 63) - 1;  // of 21 bits each

    template <class T>
    static int64_t size(const std::vector<T>& values) {
        return static_cast<int64_t>(values.size());
    }

    // A word of a text; the number of its term, or if it is to be folded that among such, inverted.
    struct Token {
        int32_t number, start, stop;
        bool is_capital;
    };

    // Letters, digits and points of ASCII in lower case, at once for all words; what else there is
    // in a word Python has to fold.
    static Array<char> fold_ascii(Span<const uint32_t> codes) {
        Array<char> folded(codes.size());
        for (int64_t at = 0; at < codes.size(); ++at) {
            const uint32_t code = codes[at];
            const uint32_t lower = code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
            folded[at] = code < 0x80 && code != ',' ? static_cast<char>(lower) : UNFOLDED;
        }
        return folded;
    }

    int32_t number_term(std::string_view term, Span<const uint8_t> properties) {
        const uint32_t hash = Numbering<char>::hash(term);
        const auto [number, is_new] = terms_.number(term, hash);
        if (is_new) describe(term, hash, properties);
        return number;
    }

    void describe(std::string_view term, uint32_t hash, Span<const uint8_t> properties) {
        size_t at = 0;
        const uint8_t first = properties[next_code(term, at)];
        int64_t traits = trait_words_(term, hash);
        if (first & IS_NUMERAL) traits |= NUMBER | (is_year(term) ? YEAR : 0);
        if ((first & KIND) == UNSPACED) traits |= UNSPACED_TERM;
        traits_.push_back(traits);
        if (vocabulary_ == nullptr) {
            places_.push_back(-1);
        } else if (vocabulary_->width == 0) {
            places_.push_back(vocabulary_->terms.find(term, hash));
        }
    }

    // The number of the stem at a place of the vocabulary.
    int32_t number_stem(int32_t place) {
        const uint32_t hash = hash_number(static_cast<uint64_t>(place));
        const int32_t found =
            known_.find(hash, [&](int32_t k) { return known_places_[k] == place; });
        if (found >= 0) return known_stems_[found];
        known_.add(hash);
        known_places_.push_back(place);
        known_stems_.push_back(static_cast<int32_t>(size(stem_places_)));
        stem_places_.push_back(place);
        return known_stems_.back();
    }

    // The number of a stem; without a vocabulary that of its text.
    int32_t number_stem(std::string_view stem) {
        const uint32_t hash = Numbering<char>::hash(stem);
        const int32_t place = vocabulary_ ? vocabulary_->stems.find(stem, hash) : -1;
        if (place >= 0) return number_stem(place);
        const auto [number, is_new] = stems_.number(stem, hash);
        if (is_new) {
            new_stems_.push_back(static_cast<int32_t>(size(stem_places_)));
            stem_places_.push_back(-1);
        }
        return new_stems_[number];
    }

    static bool is_year(std::string_view term) {
        const bool is_number = std::all_of(term.begin(), term.end(),
                                           [](char digit) { return digit >= '0' && digit <= '9'; });
        return is_number && term.size() == 4 && (term[0] == '1' || term.substr(0, 2) == "20");
    }

    const Vocabulary* vocabulary_;
    const Traits& trait_words_;
    std::vector<Token> tokens_;
    Numbering<char32_t> others_;  // words that Python folds
    std::vector<int32_t> term_of_other_;
    Numbering<char> terms_, stems_;  // stems that the vocabulary lacks
    Slots known_;                    // those that it has
    std::vector<int32_t> known_places_, known_stems_, new_stems_;
    std::vector<int32_t> places_, stem_, stem_places_;
    std::vector<int64_t> traits_;
};

}  // namespace didyma::text
