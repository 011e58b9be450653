// LETOR / svmlight text: `label qid:TEXT index:value ... # comment`, one row a line.
//
// A file is cut at line ends into pieces that are parsed independently. `scan` sizes the result and
// `parse` fills it, so nothing is stored twice. Every piece must end with a newline.
#pragma once

#include <tuple>

#include "data/decimal.hpp"

namespace didyma::data {

enum Fault : int64_t {
    FINE,
    BAD_LABEL,
    BAD_INDEX,
    BAD_VALUE,
    WIDE_INDEX,
    REPEATED_INDEX,
    EMPTY_QID,
    REPEATED_QID,
    CHANGED
};

constexpr int64_t MAX_INDEX = (int64_t{1} << 31) - 2;  // columns are 32-bit integers
constexpr int64_t INDEX_DIGITS = 10;

struct Words {
    int64_t begin, end;
};

// The span of the document id in a comment: X of `#docid = X ...`, or all of `# X`.
inline Words document_id(Text text, int64_t at) {
    if (text[at] != '#') return {at, at};
    int64_t begin = skip_space(text, at + 1);
    static const Text DOCID = literal("docid");
    if (starts_with(text, begin, DOCID)) {
        const int64_t equals = skip_space(text, begin + DOCID.size());
        if (text[equals] == '=') {
            begin = skip_space(text, equals + 1);
            int64_t end = begin;
            while (!is_space(text[end])) ++end;
            return {begin, end};
        }
    }
    int64_t end = begin;
    while (text[end] != '\n') ++end;
    while (end > begin && is_space(text[end - 1])) --end;
    return {begin, end};
}

// Sizes up text[start:stop]: rows, entries, least index, greatest index, rows with a document id.
inline std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t> scan(Text text, int64_t start,
                                                                    int64_t stop) {
    int64_t rows = 0, entries = 0, least = MAX_INDEX, greatest = -1, named = 0;
    for (int64_t at = start; at < stop; ++at) {
        at = skip_space(text, at);
        const int64_t head = at;
        const bool is_row = text[at] != '\n' && text[at] != '#';
        rows += is_row;
        for (; text[at] != '\n' && text[at] != '#'; ++at) {
            if (text[at] != ':') continue;
            int64_t index = 0, unit = 1, back = at - 1;
            for (; back > head && is_digit(text[back]) && at - back <= INDEX_DIGITS; --back) {
                index += (text[back] - '0') * unit;
                unit *= 10;
            }
            if (head < back && back < at - 1 && is_space(text[back])) {
                ++entries;
                least = std::min(least, index);
                greatest = std::max(greatest, index);
            }
        }
        if (is_row && text[at] == '#') {
            const Words id = document_id(text, at);
            named += id.begin < id.end;
        }
        while (text[at] != '\n') ++at;
    }
    return {rows, entries, least, std::min(greatest, MAX_INDEX), named};
}

// One past a word for a missing value, or -1.
inline int64_t end_of_missing(Text text, int64_t at) {
    static const Text WORDS[] = {literal("NULL"), literal("NaN")};
    for (const Text& word : WORDS) {
        if (starts_with(text, at, word) && is_end(text[at + word.size()])) return at + word.size();
    }
    return -1;
}

// Where the rows of a piece go: its first row and entry, and one past its last of each.
struct Place {
    int64_t row, rows, entry, entries;
};

// What is expected of entries: column = index - base < width and |value| ≤ bound. With `missing` a
// value may be NULL or NaN.
struct Schema {
    int64_t base, width;
    double bound;
    bool missing, dense;
};

// What a piece is parsed into. Dense, an entry goes to values[row·width + column] and `seen`
// (width) finds repeated indices; otherwise to values[entry] and columns[entry], and ends[row] is
// one past the row's last entry. docids[row] is the span of the document id in the text (empty
// without one). runs[k] = (row, start, stop): a query id that differs from the one in the row
// before. unsure[k] = (place in the text, target): a number left to float, whose target is a place
// in `values`, or -1 - row for a label.
template <class T>
struct Parsed {
    Span<double> y;
    Span<T> values;
    Span<int32_t> columns;
    Span<int64_t> ends;
    Matrix<int64_t> docids;
    Span<int64_t> seen;
    Matrix<int64_t> runs, unsure;
};

// Code, place of the fault, runs, unsure numbers, first line with a query id, first line without
// (-1: there is none), whether the columns of every row increase.
using Report = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>;

template <class T>
class Parser {
  public:
    Parser(Text text, Place place, Schema schema, Parsed<T> out)
        : text_(text), place_(place), schema_(schema), out_(out) {}

    // Fills the rows of text[start:stop].
    Report parse(int64_t start, int64_t stop) {
        for (at_ = start; at_ < stop; ++at_) {
            const int64_t line = at_;
            at_ = skip_space(text_, at_);
            if (text_[at_] != '\n' && text_[at_] != '#') {
                if (place_.row >= place_.rows) return report(CHANGED, at_);
                const Fault fault = parse_row(line);
                if (fault != FINE) return report(fault, token_);
            }
            while (text_[at_] != '\n') ++at_;
        }
        const bool all =
            place_.row == place_.rows && (schema_.dense || place_.entry == place_.entries);
        return report(all ? FINE : CHANGED, at_);
    }

  private:
    Report report(Fault fault, int64_t at) const {
        return {fault, at, n_runs_, n_unsure_, with_qid_, without_qid_, increasing_};
    }

    Fault parse_row(int64_t line) {
        const int64_t row = place_.row;
        token_ = at_;
        const Number label = number(text_, at_);
        if (label.end < 0) return BAD_LABEL;
        at_ = label.end;
        out_.y[row] = label.value;
        if (std::isnan(label.value)) leave(token_, -1 - row);
        bool has_qid = false;
        last_column_ = -1;
        while (true) {
            token_ = at_ = skip_space(text_, at_);
            if (text_[at_] == '\n' || text_[at_] == '#') break;
            static const Text QID = literal("qid:");
            const bool is_qid = starts_with(text_, at_, QID);
            const Fault fault = is_qid ? parse_qid(at_ + QID.size(), has_qid) : parse_entry();
            if (fault != FINE) return fault;
            has_qid |= is_qid;
        }
        int64_t& first = has_qid ? with_qid_ : without_qid_;
        if (first < 0) first = line;
        const Words id = document_id(text_, at_);
        out_.docids(row, 0) = id.begin;
        out_.docids(row, 1) = id.end;
        out_.ends[row] = place_.entry;
        ++place_.row;
        return FINE;
    }

    Fault parse_qid(int64_t begin, bool has_qid) {
        at_ = begin;
        while (!is_end(text_[at_])) ++at_;
        if (has_qid) return REPEATED_QID;
        if (at_ == begin) return EMPTY_QID;
        if (qid_.size() != at_ - begin || !starts_with(text_, begin, qid_)) {
            out_.runs(n_runs_, 0) = place_.row;
            out_.runs(n_runs_, 1) = begin;
            out_.runs(n_runs_, 2) = at_;
            ++n_runs_;
            qid_ = text_.slice(begin, at_);
        }
        return FINE;
    }

    Fault parse_entry() {
        int64_t index = 0;
        for (; is_digit(text_[at_]) && at_ - token_ < INDEX_DIGITS; ++at_) {
            index = index * 10 + (text_[at_] - '0');
        }
        const int64_t column = index - schema_.base;
        if (at_ == token_ || text_[at_] != ':' || column < 0 || index > MAX_INDEX) return BAD_INDEX;
        const int64_t begin = at_ + 1;
        Number entry = number(text_, begin);
        if (entry.end < 0 && schema_.missing) entry = {end_of_missing(text_, begin), UNSURE};
        if (entry.end < 0 || entry.value > schema_.bound || entry.value < -schema_.bound) {
            return BAD_VALUE;
        }
        at_ = entry.end;
        if (column >= schema_.width) return WIDE_INDEX;
        if (place_.entry >= place_.entries) return CHANGED;
        int64_t target = place_.entry++;
        if (schema_.dense) {
            target = place_.row * schema_.width + column;
            if (out_.seen[column] == place_.row + 1) return REPEATED_INDEX;
            out_.seen[column] = place_.row + 1;
        } else {
            increasing_ &= column > last_column_;
            last_column_ = column;
            out_.columns[target] = static_cast<int32_t>(column);
        }
        out_.values[target] = static_cast<T>(entry.value);
        if (std::isnan(entry.value)) leave(token_, target);
        return FINE;
    }

    void leave(int64_t token, int64_t target) {
        out_.unsure(n_unsure_, 0) = token;
        out_.unsure(n_unsure_, 1) = target;
        ++n_unsure_;
    }

    Text text_;
    Place place_;
    Schema schema_;
    Parsed<T> out_;
    Text qid_;  // of the row before
    int64_t at_ = 0, token_ = 0, last_column_ = -1;
    int64_t n_runs_ = 0, n_unsure_ = 0, with_qid_ = -1, without_qid_ = -1;
    bool increasing_ = true;
};

// Fills the rows of text[start:stop], the first being `row` and its first entry `entry`. They must
// end at `rows`, and not go beyond `entries`, or the text is not what was scanned.
template <class T>
Report parse(Text text, int64_t start, int64_t stop, int64_t row, int64_t rows, int64_t entry,
             int64_t entries, int64_t base, int64_t width, double bound, bool missing, bool dense,
             Span<double> y, Span<T> values, Span<int32_t> columns, Span<int64_t> ends,
             Matrix<int64_t> docids, Span<int64_t> seen, Matrix<int64_t> runs,
             Matrix<int64_t> unsure) {
    Parser<T> parser(text, {row, rows, entry, entries}, {base, width, bound, missing, dense},
                     {y, values, columns, ends, docids, seen, runs, unsure});
    return parser.parse(start, stop);
}

}  // namespace didyma::data
