// Sorting by score.
#pragma once

#include <utility>

#include "array.hpp"

namespace didyma {

constexpr int64_t FEW_ITEMS = 16;  // are sorted by insertion
constexpr int64_t MEAN_MOVES = 8;  // of an item, as long as an order is corrected by insertion

// Sorts index[low, high) by insertion; equal scores stay as they are.
template <class I>
void insert_descending(Span<const double> scores, Span<I> index, int64_t low, int64_t high) {
    for (int64_t t = low + 1; t < high; ++t) {
        const I item = index[t];
        int64_t s = t - 1;
        for (; s >= low && scores[index[s]] < scores[item]; --s) index[s + 1] = index[s];
        index[s + 1] = item;
    }
}

// Rearranges values[low, high), and rows with them, around a pivot; returns the pivot's position.
//
// Values before it are not smaller, values behind it not larger (Hoare's partition, which stops at
// equal values and so stays balanced on ties; median of three).
template <class I>
int64_t partition_descending(Span<double> values, Span<I> rows, int64_t low, int64_t high) {
    const auto exchange = [&](int64_t a, int64_t b) {
        std::swap(values[a], values[b]);
        std::swap(rows[a], rows[b]);
    };
    const int64_t middle = (low + high) >> 1, last = high - 1;
    if (values[middle] > values[low]) exchange(middle, low);
    if (values[last] > values[low]) exchange(last, low);
    if (values[middle] > values[last]) exchange(middle, last);
    exchange(low, last);  // first ≥ last ≥ middle: the median goes to the front
    const double pivot = values[low];
    int64_t i = low, j = high;
    while (true) {
        do ++i;
        while (i < high && values[i] > pivot);
        do --j;
        while (values[j] < pivot);
        if (i >= j) break;
        exchange(i, j);
    }
    exchange(low, j);
    return j;
}

// Sorts index so that scores[index] descends; equal scores in no promised order.
template <class I>
void sort_descending(Span<const double> scores, Span<I> index) {
    const int64_t n = index.size();
    if (n <= FEW_ITEMS) return insert_descending(scores, index, 0, n);
    Array<double> values(n);
    for (int64_t t = 0; t < n; ++t) values[t] = scores[index[t]];
    struct Range {
        int64_t low, high;
    } waiting[64];
    int64_t depth = 0;
    waiting[depth++] = {0, n};
    while (depth > 0) {
        auto [low, high] = waiting[--depth];
        while (high - low > FEW_ITEMS) {
            const int64_t pivot = partition_descending<I>(values, index, low, high);
            if (pivot - low > high - pivot) {  // the larger part waits: logarithmic depth
                waiting[depth++] = {low, pivot};
                low = pivot + 1;
            } else {
                waiting[depth++] = {pivot + 1, high};
                high = pivot;
            }
        }
        insert_descending(scores, index, low, high);
    }
}

// Sorts all rows anew by descending score, equal scores by index.
inline void merge_sort(Span<const double> scores, Span<int32_t> order) {
    const int64_t n = order.size();
    for (int64_t t = 0; t < n; ++t) order[t] = static_cast<int32_t>(t);
    for (int64_t low = 0; low < n; low += FEW_ITEMS) {
        insert_descending(scores, order, low, std::min(low + FEW_ITEMS, n));
    }
    Array<int32_t> merged(n);
    for (int64_t width = FEW_ITEMS; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            const int64_t middle = std::min(low + width, n), high = std::min(low + 2 * width, n);
            int64_t a = low, b = middle;
            for (int64_t t = low; t < high; ++t) {
                const bool first =
                    b == high || (a < middle && scores[order[a]] >= scores[order[b]]);
                merged[t] = order[first ? a++ : b++];
            }
        }
        std::copy(merged.begin(), merged.end(), order.begin());
    }
}

// Sorts all rows by descending score, equal scores by index, from the order they had before.
//
// Scores that have changed little are corrected by insertion, in O(n); others are sorted anew. The
// result does not depend on the order before.
inline void insertion_sort(Span<const double> scores, Span<int32_t> order) {
    int64_t left = MEAN_MOVES * order.size();
    for (int64_t t = 1; t < order.size(); ++t) {
        const int32_t item = order[t];
        const double score = scores[item];
        int64_t s = t - 1;
        for (; s >= 0; --s) {
            const double before = scores[order[s]];
            if (!(before < score || (before == score && order[s] > item))) break;
            order[s + 1] = order[s];
        }
        order[s + 1] = item;
        left -= t - 1 - s;
        if (left < 0) return merge_sort(scores, order);
    }
}

}  // namespace didyma
