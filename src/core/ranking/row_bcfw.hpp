// Passes of block-coordinate Frank-Wolfe over binned rows, in the space of rows.
//
// The planes of a query are columns of coefficients of its rows, with losses, and with weights α on
// the simplex.
#pragma once

#include <cmath>

#include "ranking/problem.hpp"
#include "rows/binned.hpp"

namespace didyma {

// The dual: planes[row, slot], losses[query, slot], alpha[query, slot], and scales and gaps of
// queries; v, and the table of its feasible part by which rows are scored.
struct RowDual {
    Matrix<double> planes, losses, alpha;
    Span<const double> scales;
    Span<double> gaps, v, table;
};

// One visit to query i after the other.
class RowSweep {
  public:
    RowSweep(const RankingProblem& problem, const BinnedRows& storage, const RowDual& dual)
        : problem_(problem),
          storage_(storage),
          dual_(dual),
          slots_(dual.planes.columns()),
          direction_(storage.table_size(), 0.0),
          image_(storage.table_size()),
          slack_(slots_),
          moves_(slots_),
          gram_(slots_, slots_) {}

    // Moves weight to the most violated cut, from each plane in proportion to what it lacks of that
    // cut's value; how far is told by one histogram of what would change.
    void visit(int64_t i) {
        const Span<const int64_t> rows = problem_.rows_of(i);
        Array<double> scores(rows.size()), coef(rows.size());
        const int64_t added = add_plane(i, rows, scores, coef);
        const Span<double> weight = dual_.alpha[i];
        const auto [gap, slope] = leave(weight, added);
        dual_.gaps[i] = dual_.scales[i] * gap;
        if (slope <= 0.0) return;
        for (int64_t r = 0; r < rows.size(); ++r) {
            const Span<double> plane = dual_.planes[rows[r]];
            double change = 0.0;
            for (int64_t k = 0; k < slots_; ++k) change += moves_[k] * (plane[added] - plane[k]);
            coef[r] = change;
        }
        storage_.combine(rows, coef, direction_);
        const double curvature = dual_.scales[i] * storage_.sum_from_end(direction_);
        const double size = slope < curvature ? slope / curvature : 1.0;
        for (int64_t k = 0; k < slots_; ++k) {
            weight[k] -= size * moves_[k];
            weight[added] += size * moves_[k];
        }
        storage_.step(dual_.scales[i] * size, direction_, dual_.v, dual_.table);
    }

    // The same with all planes of a query weighed against each other, by their Gram matrix. It
    // costs a histogram for each plane; few queries need it, most of all one that is alone.
    void visit_thoroughly(int64_t i) {
        const Span<const int64_t> rows = problem_.rows_of(i);
        Array<double> scores(rows.size()), coef(rows.size());
        const int64_t added = add_plane(i, rows, scores, coef);
        const double scale = dual_.scales[i];
        dual_.gaps[i] = 0.0;
        for (int64_t k = 0; k < slots_; ++k) {
            dual_.gaps[i] += scale * dual_.alpha(i, k) * (slack_[added] - slack_[k]);
            fill_gram(k, rows, coef, scores);
        }
        transfer(dual_.alpha[i], scale);
        for (int64_t r = 0; r < rows.size(); ++r) coef[r] = dot(dual_.planes[rows[r]], moves_);
        direction_.fill(0.0);
        storage_.combine(rows, coef, direction_);
        storage_.sum_from_end(direction_);
        storage_.step(scale, direction_, dual_.v, dual_.table);
    }

  private:
    // Scores the rows of query i, remembers its most violated cut as a plane, and computes the
    // slacks of all planes; returns the plane's slot.
    int64_t add_plane(int64_t i, Span<const int64_t> rows, Span<double> scores, Span<double> coef) {
        storage_.score(rows, dual_.table, scores, {});
        const Span<double> losses = dual_.losses[i];
        const int64_t added = free_slot(losses, dual_.alpha[i], rows);
        losses[added] = problem_.answer(i, scores, coef);
        for (int64_t k = 0; k < slots_; ++k) slack_[k] = losses[k];
        for (int64_t r = 0; r < rows.size(); ++r) {
            const Span<double> plane = dual_.planes[rows[r]];
            plane[added] = coef[r];
            for (int64_t k = 0; k < slots_; ++k) slack_[k] += plane[k] * scores[r];
        }
        return added;
    }

    // A free place among the planes of a query; the two lightest are merged if there is none.
    int64_t free_slot(Span<double> losses, Span<double> weight, Span<const int64_t> rows) const {
        int64_t next_lightest = weight[1] < weight[0] ? 0 : 1;
        int64_t lightest = 1 - next_lightest;
        for (int64_t k = 2; k < slots_; ++k) {
            if (weight[k] < weight[lightest]) {
                next_lightest = lightest;
                lightest = k;
            } else if (weight[k] < weight[next_lightest]) {
                next_lightest = k;
            }
        }
        if (weight[lightest] > 0.0) {
            const double both = weight[lightest] + weight[next_lightest];
            const double share = weight[lightest] / both;
            auto mean = [&](Span<double> values) {
                values[next_lightest] =
                    share * values[lightest] + (1.0 - share) * values[next_lightest];
            };
            for (const int64_t row : rows) mean(dual_.planes[row]);
            mean(losses);
            weight[next_lightest] = both;
            weight[lightest] = 0.0;
        }
        return lightest;
    }

    // Writes into moves_ how much weight each plane may give to the added one: all of it, if it is
    // the least tight. Returns the gap of the query and the slope of the dual along that change.
    std::tuple<double, double> leave(Span<const double> weight, int64_t added) {
        double gap = 0.0, worst = 0.0, slope = 0.0;
        for (int64_t k = 0; k < slots_; ++k) {
            const double lack = slack_[added] - slack_[k];
            gap += weight[k] * lack;
            if (weight[k] > 0.0 && lack > worst) worst = lack;
        }
        for (int64_t k = 0; k < slots_; ++k) {
            const double lack = slack_[added] - slack_[k];
            moves_[k] = lack > 0.0 && worst > 0.0 ? weight[k] * lack / worst : 0.0;
            slope += moves_[k] * lack;
        }
        return {gap, slope};
    }

    // Row k of the Gram matrix: the rows combined by plane k, scored again.
    void fill_gram(int64_t k, Span<const int64_t> rows, Span<double> coef, Span<double> scores) {
        for (int64_t r = 0; r < rows.size(); ++r) coef[r] = dual_.planes(rows[r], k);
        direction_.fill(0.0);
        storage_.combine(rows, coef, direction_);
        storage_.score(rows, storage_.tabulate(storage_.features(direction_), image_), scores, {});
        const Span<double> products = gram_[k];
        products.fill(0.0);
        for (int64_t r = 0; r < rows.size(); ++r) {
            const Span<double> plane = dual_.planes[rows[r]];
            for (int64_t m = 0; m < slots_; ++m) products[m] += scores[r] * plane[m];
        }
    }

    // Moves weight from the least tight plane in use to the tightest, as often as that pays.
    void transfer(Span<double> weight, double scale) {
        constexpr int TRANSFERS = 1000;
        moves_.fill(0.0);
        for (int transfers = 0; transfers < TRANSFERS; ++transfers) {
            int64_t best = 0, worst = -1;
            for (int64_t k = 0; k < slots_; ++k) {
                if (slack_[k] > slack_[best]) best = k;
                if (weight[k] > 0.0 && (worst < 0 || slack_[k] < slack_[worst])) worst = k;
            }
            const double gap = slack_[best] - slack_[worst];
            if (gap <= 1e-14 * (1.0 + std::abs(slack_[best]))) break;
            const double curvature =
                scale * (gram_(best, best) + gram_(worst, worst) - 2.0 * gram_(best, worst));
            const double size = gap >= weight[worst] * curvature ? weight[worst] : gap / curvature;
            weight[worst] -= size;
            weight[best] += size;
            moves_[worst] -= size;
            moves_[best] += size;
            for (int64_t k = 0; k < slots_; ++k) {
                slack_[k] -= size * scale * (gram_(k, best) - gram_(k, worst));
            }
        }
    }

    const RankingProblem& problem_;
    const BinnedRows& storage_;
    RowDual dual_;
    int64_t slots_;
    Array<double> direction_, image_, slack_, moves_;
    Table<double> gram_;
};

}  // namespace didyma
