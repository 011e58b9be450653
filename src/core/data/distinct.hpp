// Numbers for the distinct rows of a matrix.
#pragma once

#include <tuple>

#include "array.hpp"

namespace didyma::data {

// Numbers the distinct rows of `keys` (n, words) by first appearance, with a hash table: the number
// of each row, and the first row of each number.
inline std::tuple<Array<int64_t>, Array<int64_t>> distinct(Matrix<const uint32_t> keys) {
    constexpr uint64_t PRIME = 0x9E3779B97F4A7C15;
    const int64_t n = keys.rows();
    int64_t size = 2, count = 0;
    while (size < 2 * n) size *= 2;
    Array<int64_t> table(size, -1), code(n), first(n);
    for (int64_t row = 0; row < n; ++row) {
        uint64_t mixed = 0;
        for (uint32_t word : keys[row]) {
            mixed = (mixed ^ word) * PRIME;
            mixed ^= mixed >> 32;
        }
        auto slot = static_cast<int64_t>(mixed & static_cast<uint64_t>(size - 1));
        while (table[slot] >= 0 &&
               !std::equal(keys[row].begin(), keys[row].end(), keys[first[table[slot]]].begin())) {
            slot = (slot + 1) & (size - 1);
        }
        if (table[slot] < 0) {
            table[slot] = count;
            first[count++] = row;
        }
        code[row] = table[slot];
    }
    Array<int64_t> firsts(count);
    std::copy(first.begin(), first.begin() + count, firsts.begin());
    return {std::move(code), std::move(firsts)};
}

}  // namespace didyma::data
