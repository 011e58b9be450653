// Numbers from text: the double that Python's float gives, or NaN where that is not certain.
//
// A number is an integer mantissa times a power of ten. `decimal` rounds it correctly wherever its
// arithmetic can tell, and gives NaN for the few that are then left to float.
#pragma once

#include <cmath>
#include <limits>

#include "data/text.hpp"

namespace didyma::data {

constexpr double UNSURE = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t MAX_DIGITS = 18;                           // of a mantissa in 64 bits
constexpr int64_t LEAST_POWER = -300, GREATEST_POWER = 280;  // no overflow and no subnormal

// The leading 64 bits t of each power of ten and their place: t·2^e ≤ 10^q < (t + 1)·2^e. They are
// computed with the integers of Python when the module is loaded.
struct Powers {
    Array<uint64_t> leading;
    Array<int64_t> place;
};
const Powers& powers();

// The upper 64 bits of the 128-bit product of two 64-bit integers.
inline uint64_t high_product(uint64_t a, uint64_t b) {
    constexpr uint64_t LOW_HALF = 0xFFFFFFFF;
    const uint64_t a_high = a >> 32, a_low = a & LOW_HALF, b_high = b >> 32, b_low = b & LOW_HALF;
    const uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
    const uint64_t other = a_low * b_high + (middle & LOW_HALF);
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

// The double nearest to ±mantissa·10^exponent, or NaN where this arithmetic cannot tell. Two exact
// doubles give a correctly rounded product or quotient. Otherwise mantissa times the truncated
// power is known to two units in its 64th bit: enough, unless the 53-bit rounding boundary lies
// between.
inline double decimal(bool negative, int64_t mantissa, int64_t exponent) {
    static constexpr double EXACT[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value = 0.0;
    if (mantissa < (int64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
        value = static_cast<double>(mantissa);
        value = exponent < 0 ? value / EXACT[-exponent] : value * EXACT[exponent];
    } else if (mantissa != 0) {
        if (exponent < LEAST_POWER || exponent > GREATEST_POWER) return UNSURE;
        constexpr uint64_t TOP_BIT = uint64_t{1} << 63;
        uint64_t shifted = static_cast<uint64_t>(mantissa);
        int64_t shift = 0;
        for (; shifted < TOP_BIT; ++shift) shifted <<= 1;
        const int64_t power = exponent - LEAST_POWER;
        const uint64_t product = high_product(shifted, powers().leading[power]);
        const int64_t dropped = product >= TOP_BIT ? 11 : 10;
        const auto kept = static_cast<int64_t>(product >> dropped);
        const auto rest = static_cast<int64_t>(product & ((uint64_t{1} << dropped) - 1));
        const int64_t half = int64_t{1} << (dropped - 1);
        if (rest == half - 1 || rest == half) return UNSURE;
        const int64_t place = dropped + 64 + powers().place[power] - shift;
        value = std::ldexp(static_cast<double>(kept + (rest > half)), static_cast<int>(place));
    }
    return negative ? -value : value;
}

// A parsed number: one past its end, or -1 where there is none.
struct Number {
    int64_t end;
    double value;
};

// Parses the token at `at`.
inline Number number(Text text, int64_t at) {
    constexpr Number NONE = {-1, UNSURE};
    const bool negative = text[at] == '-';
    if (negative || text[at] == '+') ++at;
    int64_t begin = at, exponent = 0;
    uint64_t mantissa = 0;  // may wrap around where there are too many digits
    for (; is_digit(text[at]); ++at) mantissa = mantissa * 10 + (text[at] - '0');
    int64_t digits = at - begin;
    if (text[at] == '.') {
        const int64_t point = ++at;
        for (; is_digit(text[at]); ++at) mantissa = mantissa * 10 + (text[at] - '0');
        exponent = point - at;
        digits += at - point;
    }
    if (digits == 0) return NONE;
    if (digits > MAX_DIGITS) {
        for (; text[begin] == '0' || text[begin] == '.'; ++begin) digits -= text[begin] == '0';
    }
    if ((text[at] | 32) == 'e') {
        ++at;
        const bool down = text[at] == '-';
        if (down || text[at] == '+') ++at;
        const int64_t first = at;
        int64_t power = 0;
        for (; is_digit(text[at]); ++at) {
            power = std::min<int64_t>(power * 10 + (text[at] - '0'), 100'000);
        }
        if (at == first) return NONE;
        exponent += down ? -power : power;
    }
    if (!is_end(text[at])) return NONE;
    if (digits > MAX_DIGITS) return {at, UNSURE};
    return {at, decimal(negative, static_cast<int64_t>(mantissa), exponent)};
}

// Parses the number in each span (start, stop) into `values`. Returns the first row that holds no
// number or -1, and how many rows `unsure` now lists.
inline std::tuple<int64_t, int64_t> numbers(Text text, Matrix<const int64_t> spans,
                                            Span<double> values, Span<int64_t> unsure) {
    int64_t n_unsure = 0;
    for (int64_t row = 0; row < spans.rows(); ++row) {
        const Number parsed = number(text, spans(row, 0));
        values[row] = parsed.value;
        if (parsed.end != spans(row, 1)) return {row, n_unsure};
        if (std::isnan(parsed.value)) unsure[n_unsure++] = row;
    }
    return {-1, n_unsure};
}

}  // namespace didyma::data
