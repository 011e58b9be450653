// Clusters of mentions from the scores of pairs (see didyma.applications.coreference.task).
#pragma once

#include "structures/forest.hpp"

namespace didyma {

// Scores of pairs in the upper triangle, with what is added within and across clusters y.
inline Table<double> square_scores(Span<const double> scores, Span<const int64_t> y, double within,
                                   double across) {
    const int64_t n = y.size();
    Table<double> square(n, n, 0.0);
    for (int64_t i = 0, pair = 0; i < n; ++i) {
        for (int64_t j = i + 1; j < n; ++j) {
            square(i, j) = scores[pair++] + (y[i] == y[j] ? within : across);
        }
    }
    return square;
}

// Edges i·n + j of the best forest.
inline Array<int32_t> spanning_forest(Span<const double> scores, Span<const int64_t> y,
                                      double within, double across) {
    const int64_t size[] = {y.size()};
    const Table<double> square = square_scores(scores, y, within, across);
    Array<double> work(size[0]);
    Array<int64_t> index(size[0]);
    Array<int32_t> edges(std::max<int64_t>(size[0] - 1, 1));
    const Span<const int64_t> sizes(size, 1);
    const int64_t count = best_forest(square.flat(), {}, sizes, sizes, work, index, edges, {});
    Array<int32_t> chosen(count);
    std::copy(edges.begin(), edges.begin() + count, chosen.begin());
    return chosen;
}

// Labels of clusters that come of merging the two with the best positive sum of scores between
// them, while there are any. Each cluster remembers its best partner. A merger may spoil it; what
// is remembered then bounds the truth from above, and is looked up when it leads.
inline Array<int64_t> agglomerate(Span<const double> scores, Span<const int64_t> y, double within,
                                  double across) {
    constexpr double UNKNOWN = INF;
    const int64_t n = y.size();
    const Table<double> between = square_scores(scores, y, within, across);
    Array<int64_t> labels(n), partner(n, -1);
    Array<double> best(n, UNKNOWN);
    Array<bool> stale(n, true);
    for (int64_t i = 0; i < n; ++i) {
        labels[i] = i;
        for (int64_t j = 0; j < i; ++j) between(i, j) = between(j, i);
    }
    while (n > 0) {
        int64_t first = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (best[i] > best[first]) first = i;
        }
        if (best[first] <= 0.0) break;
        if (stale[first]) {
            best[first] = 0.0;
            stale[first] = false;
            for (int64_t j = 0; j < n; ++j) {
                if (labels[j] == j && j != first && between(first, j) > best[first]) {
                    best[first] = between(first, j);
                    partner[first] = j;
                }
            }
            continue;
        }
        const int64_t merged = std::min(first, partner[first]);
        const int64_t gone = std::max(first, partner[first]);
        best[gone] = 0.0;
        best[merged] = UNKNOWN;
        stale[merged] = true;
        for (int64_t i = 0; i < n; ++i) {
            if (labels[i] == gone) labels[i] = merged;
            if (labels[i] != i || i == merged) continue;
            between(i, merged) += between(i, gone);
            between(merged, i) = between(i, merged);
            if (between(i, merged) >= best[i]) {
                best[i] = between(i, merged);
                partner[i] = merged;
                stale[i] = false;
            } else if (partner[i] == merged || partner[i] == gone) {
                stale[i] = true;
            }
        }
    }
    return labels;
}

}  // namespace didyma
