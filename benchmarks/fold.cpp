// The best folds of a batch, as one would write this dynamic programme by hand.
//
// A row of one table for the first base, a row of the other for the last: both hold the same numbers, so
// that the loop over partners reads neighbours. `values` has room for 2 (n + 2)² numbers.
#include <cstdint>
#include <utility>
#include <vector>

extern "C" void fold_all(const double* all_scores, int64_t batch, int64_t n, double* values,
                         int64_t* all_parts) {
    const int64_t width = n + 2, most = n / 2;
    double *best = values, *by_last = values + width * width;
    std::vector<double> pair(n);
    std::vector<std::pair<int64_t, int64_t>> stack;
    for (int64_t b = 0; b < batch; ++b) {
        const double* scores = all_scores + b * n * n;
        for (int64_t i = n - 1; i >= 0; --i) {
            for (int64_t j = i + 1; j <= n; ++j) {
                const double* last = by_last + j * width;
                double highest = last[i + 1];
                for (int64_t k = i + 4; k < j; ++k) {
                    const double total = pair[k] + last[k + 1];
                    highest = total > highest ? total : highest;
                }
                best[i * width + j] = by_last[j * width + i] = highest;
                if (j < n) pair[j] = scores[i * n + j] + best[(i + 1) * width + j];
            }
        }
        int64_t* parts = all_parts + b * most;
        int64_t count = 0;
        stack.assign(1, {0, n});
        while (!stack.empty()) {
            const auto [i, j] = stack.back();
            stack.pop_back();
            if (j <= i) continue;
            int64_t k = i;
            const double value = best[i * width + j];
            if (value != best[(i + 1) * width + j]) {
                for (k = i + 4; k < j; ++k) {
                    const double inside = best[(i + 1) * width + k];
                    if (scores[i * n + k] + inside + best[(k + 1) * width + j] >= value) break;
                }
                parts[count++] = i * n + k;
                stack.emplace_back(i + 1, k);
            }
            stack.emplace_back(k + 1, j);
        }
        while (count < most) parts[count++] = -1;
    }
}
