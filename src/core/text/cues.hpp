// What in a passage may answer a query: overlaps of its parts, and traits of its words.
#pragma once

#include "text/lexicon.hpp"
#include "text/reading.hpp"

namespace didyma::text {

constexpr int64_t N_CUES = 21;

// Bits of traits that the kernel looks at, with NUMBER; all others are only collected.
constexpr int64_t PLACE = 2, BEING = 4, ARTICLE = 8, COPULA = 16, PRONOUN = 32;

// Runs of two or three words that were met since a moment, told apart by all their words.
class Runs {
  public:
    explicit Runs(int64_t most) : slots_(size_for(most), Slot{0, 0, 0}) {}

    bool has(uint64_t pair, int32_t third, int64_t moment) {
        return at(pair, third, moment).moment == moment;
    }
    // Whether it is new.
    bool add(uint64_t pair, int32_t third, int64_t moment) {
        Slot& slot = at(pair, third, moment);
        const bool is_new = slot.moment != moment;
        slot = {pair, third, moment};
        return is_new;
    }

  private:
    struct Slot {
        uint64_t pair;
        int32_t third;
        int64_t moment;
    };

    static int64_t size_for(int64_t most) {
        int64_t size = 4;
        while (size < 4 * most) size *= 2;
        return size;
    }

    // Where a run of this moment stands, or would; what is of another moment is not there.
    Slot& at(uint64_t pair, int32_t third, int64_t moment) {
        const int64_t last = slots_.size() - 1;
        int64_t place =
            hash_number(pair + static_cast<uint64_t>(third) * 0x9e3779b97f4a7c15) & last;
        while (slots_[place].moment == moment &&
               !(slots_[place].pair == pair && slots_[place].third == third)) {
            place = (place + 1) & last;
        }
        return slots_[place];
    }

    Array<Slot> slots_;
};

// `didyma.text.features.extended` says what the columns mean.
class Cues {
  public:
    Cues(const Reading& reading, Span<const bool> is_capital, Span<const int64_t> traits,
         Span<const int32_t> prefixes)
        : reading_(reading),
          is_capital_(is_capital),
          traits_(traits),
          prefixes_(prefixes),
          asked_pairs_(reading.longest_query()),
          asked_triples_(reading.longest_query()),
          met_pairs_(reading.longest_row()),
          met_triples_(reading.longest_row()),
          asked_terms_(reading.n_terms()),
          met_terms_(reading.n_terms()),
          asked_capitals_(reading.n_terms()),
          met_capitals_(reading.n_terms()),
          asked_stems_(reading.n_stems()),
          met_stems_(reading.n_stems()),
          subject_stems_(reading.n_stems()),
          asked_prefixes_(reading.n_terms()),
          met_prefixes_(reading.n_terms()) {}

    // The columns, and the traits that some word of each row has.
    std::tuple<Table<double>, Array<int64_t>> compute() {
        Table<double> values(reading_.n_rows(), N_CUES);
        Array<int64_t> traits(reading_.n_rows());
        for (int64_t q = 0; q < reading_.n_queries(); ++q) {
            const Query query = ask(q);
            for (int64_t r = reading_.bounds[q]; r < reading_.bounds[q + 1]; ++r) {
                traits[r] = look_at(query, r, values[r]);
            }
        }
        return {std::move(values), std::move(traits)};
    }

  private:
    struct Query {
        Reading::Tokens tokens;
        int64_t moment;
        bool every;
        double idf = 0.0, stem_idf = 0.0;
        int64_t n_capitals = 0, n_numbers = 0, n_prefixes = 0, n_pairs = 0, n_triples = 0;
        int32_t head = -1, last = -1;  // stems
    };

    bool has(int64_t t, int64_t trait) const { return (traits_[reading_.terms[t]] & trait) != 0; }

    // The pair of words that ends with a token.
    uint64_t pair(int64_t t) const {
        return static_cast<uint64_t>(reading_.terms[t - 1]) << 32 |
               static_cast<uint32_t>(reading_.terms[t]);
    }

    Query ask(int64_t q) {
        Query query{reading_.query(q), q + 1, reading_.is_every(reading_.query(q))};
        for (int64_t t = query.tokens.begin; t < query.tokens.end; ++t) {
            const int32_t term = reading_.terms[t], stem = reading_.stems[t];
            if (asked_terms_.add(term, q + 1)) {
                query.idf += reading_.term_idf[term];
                query.n_numbers += has(t, NUMBER);
            }
            if (is_capital_[t] && t > query.tokens.begin) {
                query.n_capitals += asked_capitals_.add(term, q + 1);
            }
            if (reading_.counts(t, query.every)) {
                if (query.head < 0) query.head = stem;
                query.last = stem;
                if (asked_stems_.add(stem, q + 1)) query.stem_idf += reading_.stem_idf[stem];
                query.n_prefixes += asked_prefixes_.add(prefixes_[term], q + 1);
            }
            if (t > query.tokens.begin) query.n_pairs += asked_pairs_.add(pair(t), 0, q + 1);
            if (t > query.tokens.begin + 1) {
                query.n_triples += asked_triples_.add(pair(t - 1), term, q + 1);
            }
        }
        return query;
    }

    int64_t look_at(const Query& query, int64_t r, Span<double> out) {
        const auto [begin, end] = reading_.row(r);
        const int64_t moment = r + 1;
        double common_idf = 0.0, subject_idf = 0.0, rarest = 0.0;
        int64_t common_capitals = 0, common_numbers = 0, common_prefixes = 0;
        int64_t n_pairs = 0, n_triples = 0, common_pairs = 0, common_triples = 0;
        int64_t n_capitals = 0, n_places = 0, n_content = 0, new_stems = 0, traits = 0;
        bool new_number = false, is_name = false, is_definition = false, in_subject = true;
        int32_t opening = -1;
        for (int64_t t = begin; t < end; ++t) {
            const int32_t term = reading_.terms[t], stem = reading_.stems[t];
            traits |= traits_[term];
            n_places += has(t, PLACE);
            if (has(t, COPULA)) in_subject = false;
            if (t > begin) {
                is_definition |= has(t - 1, BEING) && has(t, ARTICLE);
                if (is_capital_[t]) {
                    ++n_capitals;
                    is_name |= t - 1 > begin && is_capital_[t - 1];
                    if (met_capitals_.add(term, moment)) {
                        common_capitals += asked_capitals_.has(term, query.moment);
                    }
                }
                if (met_pairs_.add(pair(t), 0, moment)) {
                    ++n_pairs;
                    common_pairs += asked_pairs_.has(pair(t), 0, query.moment);
                }
            }
            if (t > begin + 1 && met_triples_.add(pair(t - 1), term, moment)) {
                ++n_triples;
                common_triples += asked_triples_.has(pair(t - 1), term, query.moment);
            }
            if (met_terms_.add(term, moment)) {
                if (asked_terms_.has(term, query.moment)) {
                    common_idf += reading_.term_idf[term];
                    common_numbers += has(t, NUMBER);
                } else {
                    new_number |= has(t, NUMBER);
                }
            }
            if (!reading_.counts(t, query.every)) continue;
            ++n_content;
            if (opening < 0) opening = stem;
            if (met_prefixes_.add(prefixes_[term], moment)) {
                common_prefixes += asked_prefixes_.has(prefixes_[term], query.moment);
            }
            const bool is_asked = asked_stems_.has(stem, query.moment);
            if (met_stems_.add(stem, moment)) {
                new_stems += !is_asked;
                if (is_asked) rarest = std::max(rarest, reading_.stem_idf[stem]);
            }
            if (is_asked && in_subject && subject_stems_.add(stem, moment)) {
                subject_idf += reading_.stem_idf[stem];
            }
        }
        double missing = 0.0;
        for (int64_t t = query.tokens.begin; t < query.tokens.end; ++t) {
            const int32_t stem = reading_.stems[t];
            if (asked_stems_.has(stem, query.moment) && !met_stems_.has(stem, moment)) {
                missing = std::max(missing, reading_.stem_idf[stem]);
            }
        }
        const int64_t length = end - begin;
        out[0] = share(common_idf, query.idf);
        out[1] = share(common_pairs, query.n_pairs + n_pairs - common_pairs);
        out[2] = share(common_triples, query.n_triples);
        out[3] = share(common_triples, query.n_triples + n_triples - common_triples);
        out[4] = rarest;
        out[5] = missing;
        out[6] = share(common_prefixes, query.n_prefixes);
        out[7] = in_subject ? 0.0 : share(subject_idf, query.stem_idf);
        out[8] = opening >= 0 && asked_stems_.has(opening, query.moment);
        out[9] = query.head >= 0 && met_stems_.has(query.head, moment);
        out[10] = query.last >= 0 && met_stems_.has(query.last, moment);
        out[11] = share(common_capitals, query.n_capitals);
        out[12] = share(common_numbers, query.n_numbers);
        out[13] = std::log(1 + static_cast<double>(new_stems));
        out[14] = share(n_capitals, length);
        out[15] = is_name;
        out[16] = share(n_places, length);
        out[17] = is_definition;
        out[18] = length > 0 && has(begin, PRONOUN);
        out[19] = n_content < 4;
        out[20] = new_number;
        return traits;
    }

    const Reading& reading_;
    Span<const bool> is_capital_;
    Span<const int64_t> traits_;
    Span<const int32_t> prefixes_;
    Runs asked_pairs_, asked_triples_, met_pairs_, met_triples_;
    Marks asked_terms_, met_terms_, asked_capitals_, met_capitals_;
    Marks asked_stems_, met_stems_, subject_stems_, asked_prefixes_, met_prefixes_;
};

inline std::tuple<Table<double>, Array<int64_t>> cues(const Reading& reading,
                                                      Span<const bool> is_capital,
                                                      Span<const int64_t> traits,
                                                      Span<const int32_t> prefixes) {
    return Cues(reading, is_capital, traits, prefixes).compute();
}

}  // namespace didyma::text
