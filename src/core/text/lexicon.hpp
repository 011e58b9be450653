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

inline std::u32string from_utf8(std::string_view text) {
    std::u32string codes;
    for (size_t at = 0; at < text.size();) {
        const auto first = static_cast<uint8_t>(text[at++]);
        uint32_t code = first < 0x80   ? first
                        : first < 0xe0 ? first & 31
                        : first < 0xf0 ? first & 15
                                       : first & 7;
        while (at < text.size() && (text[at] & 0xc0) == 0x80) code = code << 6 | (text[at++] & 63);
        codes.push_back(code);
    }
    return codes;
}

template <class T>
Array<T> copied(const std::vector<T>& values) {
    Array<T> array(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), array.begin());
    return array;
}

// Numbers of words, of their terms and stems, in the order in which they are met.
//
// A word is what stands in a text, its term what folding makes of it, its stem the term without its
// ending. New words are given out in rounds, for what Python does: those beyond ASCII to be
// folded (`unfolded`, `fold`), then terms that the vocabulary lacks to be stemmed (`unstemmed`,
// `stem`). A vocabulary of digests is asked in between (`unidentified`, `identify`).
class Lexicon {
  public:
    Lexicon(const Vocabulary* vocabulary, const Traits& traits)
        : vocabulary_(vocabulary), trait_words_(traits) {}

    // The words of a text: their numbers, and where they start and stop.
    std::tuple<Array<int32_t>, Array<int32_t>, Array<int32_t>> split(
        Span<const uint32_t> codes, Span<const uint8_t> properties) {
        std::vector<int32_t> word, starts, stops;
        text::split({codes, properties}, [&](int64_t start, int64_t stop) {
            const int64_t looked_at = std::min(stop, start + LONGEST_WORD);
            const auto part = codes.slice(start, looked_at);
            const std::u32string_view text(reinterpret_cast<const char32_t*>(part.data()),
                                           static_cast<size_t>(part.size()));
            const auto [number, is_new] = words_.number(text, Numbering<char32_t>::hash(text));
            if (is_new) is_capital_.push_back((properties[codes[start]] & IS_CAPITAL) != 0);
            word.push_back(number);
            starts.push_back(static_cast<int32_t>(start));
            stops.push_back(static_cast<int32_t>(stop));
        });
        return {copied(word), copied(starts), copied(stops)};
    }

    // New words beyond ASCII.
    std::string unfolded() const {
        std::string bytes;
        for (int64_t n = n_folded(); n < words_.size(); ++n) {
            if (is_ascii(words_[n])) continue;
            for (char32_t code : words_[n]) append_utf8(code, bytes);
            bytes.push_back(END);
        }
        return bytes;
    }

    // Numbers the terms of new words, given those of `unfolded`.
    void fold(std::string_view folded, Span<const uint8_t> properties) {
        Lines lines(folded);
        std::string lower;
        for (int64_t n = n_folded(); n < words_.size(); ++n) {
            std::string_view term;
            if (is_ascii(words_[n])) {
                lower.clear();
                for (char32_t code : words_[n]) {
                    if (code != ',') lower.push_back(static_cast<char>(lower_case(code)));
                }
                term = lower;
            } else {
                term = lines.next();
            }
            const uint32_t hash = Numbering<char>::hash(term);
            const auto [number, is_new] = terms_.number(term, hash);
            term_.push_back(number);
            if (is_new) describe(term, hash, properties);
        }
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
            std::string_view stem;
            if (places_[n] >= 0) {
                stem = vocabulary_->stems[vocabulary_->stem_of[places_[n]]];
            } else if (width > 0) {
                stem = stemmed.substr(0, static_cast<size_t>(width));
                stemmed.remove_prefix(stem.size());
            } else {
                stem = lines.next();
            }
            const uint32_t hash = Numbering<char>::hash(stem);
            const auto [number, is_new] = stems_.number(stem, hash);
            stem_.push_back(number);
            if (is_new) {
                stem_places_.push_back(vocabulary_ ? vocabulary_->stems.find(stem, hash) : -1);
            }
        }
    }

    const Numbering<char>& terms() const { return terms_; }
    const Numbering<char>& stems() const { return stems_; }
    int64_t n_words() const { return words_.size(); }

    Array<int32_t> term_of_word() const { return copied(term_); }
    Array<int32_t> stem_of_term() const { return copied(stem_); }
    Array<int32_t> term_places() const { return copied(places_); }
    Array<int32_t> stem_places() const { return copied(stem_places_); }

    Array<bool> is_capital() const {
        Array<bool> array(size(is_capital_));
        std::copy(is_capital_.begin(), is_capital_.end(), array.begin());
        return array;
    }
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
            const std::u32string term = from_utf8(terms_[n]);
            if (traits_[n] & UNSPACED_TERM) {
                for (uint64_t code : term) take(code);
            } else {
                const int64_t length = static_cast<int64_t>(term.size());
                auto at = [&](int64_t i) -> uint64_t {
                    return i < 0 ? U'^' : i < length ? term[static_cast<size_t>(i)] : U'$';
                };
                for (int64_t i = 0; i < length; ++i) {
                    take(at(i - 1) << 42 | at(i) << 21 | at(i + 1));
                }
            }
            stops[n + 1] = size(grams);
        }
        return {copied(grams), std::move(stops), slots.size()};
    }

  private:
    static constexpr int64_t UNSPACED_TERM = STOP_WORD << 1;

    template <class T>
    static int64_t size(const std::vector<T>& values) {
        return static_cast<int64_t>(values.size());
    }
    int64_t n_folded() const { return size(term_); }

    static bool is_ascii(std::u32string_view word) {
        return std::all_of(word.begin(), word.end(), [](char32_t code) { return code < 0x80; });
    }
    static char32_t lower_case(char32_t code) {
        return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
    }

    void describe(std::string_view term, uint32_t hash, Span<const uint8_t> properties) {
        const uint8_t first = properties[from_utf8(term.substr(0, 4))[0]];
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

    static bool is_year(std::string_view term) {
        const bool is_number = std::all_of(term.begin(), term.end(),
                                           [](char digit) { return digit >= '0' && digit <= '9'; });
        return is_number && term.size() == 4 && (term[0] == '1' || term.substr(0, 2) == "20");
    }

    const Vocabulary* vocabulary_;
    const Traits& trait_words_;
    Numbering<char32_t> words_;
    Numbering<char> terms_, stems_;
    std::vector<char> is_capital_;
    std::vector<int32_t> term_, places_, stem_, stem_places_;
    std::vector<int64_t> traits_;
};

}  // namespace didyma::text
