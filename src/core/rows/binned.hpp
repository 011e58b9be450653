// Binned rows: one byte says in which bin of its column a value is.
//
// A column has a weight for each bin but bin 0. Where it *runs*, as the indicators 1[x > edge] do,
// a bin counts with the weights of all bins before it: with T the running sums of w, a row's score
// is Σ_j T[b_j, j], and the rows combined by coefficients are a histogram of these for each column,
// summed from its end. The last bin, of missing values, and the bins of columns that do not run
// stand alone.
//
// Tables are flat, of shape (bins, columns): the columns of a bin are neighbours, and so sums over
// bins vectorise. A unit u is the value of an indicator; a sign is 1 or -1 if the weights of a
// column must not be negative, or not be positive.
//
// Columns may have a slope: a weight more, the first, by which their steps rise together. With
// `rises` r the step at bin m is u_m w_m + r_m w_0, so that ½‖w‖² shrinks steps towards a line.
#pragma once

#include "rows/rows.hpp"
#include "sums.hpp"

namespace didyma {

class BinnedRows : public Rows {
  public:
    // `running` are zeros and ones; `units` have a row for each bin, and so have `rises`, or no row
    // if there is no slope.
    BinnedRows(Matrix<const uint8_t> bins, Span<const double> running, Matrix<const double> units,
               Span<const double> signs, Matrix<const double> rises, int64_t height)
        : bins_(bins),
          running_(running),
          signs_(signs),
          units_(units),
          rises_(rises),
          height_(height) {}

    int64_t n_columns() const { return bins_.columns(); }
    bool sloped() const { return rises_.rows() > 0; }
    int64_t n_features() const override { return table_size() - first_weight(); }
    int64_t table_size() const override { return height_ * n_columns(); }
    bool in_place() const override { return false; }

    // The running sums of weights: what each bin of each column adds to a score.
    Span<const double> tabulate(Span<const double> w, Span<double> table) const override {
        by_bin(table)[0].fill(0.0);
        fill_table(w, table, [](double weight, int64_t) { return weight; });
        return table;
    }

    void score(Span<const int64_t> rows, Span<const double> table, Span<double> out,
               Span<const int64_t>) const override {
        const int64_t d = n_columns();
        for (int64_t r = 0; r < rows.size(); ++r) {
            const Span<const uint8_t> bins = bins_[rows[r]];
            out[r] = sum(d, [=](int64_t j) { return table[bins[j] * d + j]; });
        }
    }

    // A histogram of coefficients for each column.
    void combine(Span<const int64_t> rows, Span<const double> coef,
                 Span<double> table) const override {
        for (int64_t r = 0; r < rows.size(); ++r) {
            if (coef[r] != 0.0) count(rows[r], coef[r], table);
        }
    }

    Span<double> features(Span<double> table) const override {
        sum_from_end(table);
        return table.slice(first_weight(), table.size());
    }

    // Turns histograms into the weights' side of a product, in place; returns its squared norm.
    double sum_from_end(Span<double> table) const {
        const Matrix<double> values = by_bin(table);
        const double* running = running_.data();
        for (int64_t m = height_ - 3; m > 0; --m) {
            const double* behind = values[m + 1].data();
            double* value = values[m].data();
            for (int64_t j = 0; j < n_columns(); ++j) value[j] += running[j] * behind[j];
        }
        values[0].fill(0.0);
        for (int64_t m = 1; sloped() && m < height_; ++m) {
            const double *rise = rises_[m].data(), *value = values[m].data();
            double* slope = values[0].data();
            for (int64_t j = 0; j < n_columns(); ++j) slope[j] += rise[j] * value[j];
        }
        double norm = dot(values[0], values[0]);
        for (int64_t m = 1; m < height_; ++m) {
            const double* unit = units_[m].data();
            double* value = values[m].data();
            for (int64_t j = 0; j < n_columns(); ++j) value[j] *= unit[j];
            norm += dot(values[m], values[m]);
        }
        return norm;
    }

    // v -= size · direction, which is cleared; the table becomes that of v's feasible part, where a
    // weight of the wrong sign is zero.
    void step(double size, Span<double> direction, Span<double> v, Span<double> table) const {
        const double* signs = signs_.data();
        axpy(-size, Span<const double>(direction.slice(first_weight(), direction.size())), v);
        direction.fill(0.0);
        fill_table(v, table, [=](double weight, int64_t j) {
            return weight * signs[j] < 0.0 ? 0.0 : weight;
        });
    }

  private:
    // Where in a table the weights begin: before or after its first row, whose bin adds nothing.
    int64_t first_weight() const { return sloped() ? 0 : n_columns(); }

    // Fills all bins but the first; `allowed(w, j)` is the feasible weight of column j. The last
    // bin stands alone, and so does its weight, whatever its sign.
    template <class Allowed>
    void fill_table(Span<const double> w, Span<double> table, Allowed allowed) const {
        const int64_t d = n_columns(), last = height_ - 1, first = sloped() ? 0 : 1;
        const Matrix<double> values = by_bin(table);
        const Matrix<const double> weights(w.data(), height_ - first, d);
        const double* running = running_.data();
        Array<double> slopes(d, 0.0);
        for (int64_t j = 0; sloped() && j < d; ++j) slopes[j] = allowed(weights(0, j), j);
        for (int64_t m = 1; m < last; ++m) {
            const double *before = values[m - 1].data(), *weight = weights[m - first].data();
            const double *unit = units_[m].data(), *rise = sloped() ? rises_[m].data() : unit;
            const double* slope = slopes.data();
            double* value = values[m].data();
            for (int64_t j = 0; j < d; ++j) {
                const double step = unit[j] * allowed(weight[j], j) + rise[j] * slope[j];
                value[j] = running[j] * before[j] + step;
            }
        }
        for (int64_t j = 0; j < d; ++j) {
            const double level = sloped() ? rises_(last, j) * slopes[j] : 0.0;
            values(last, j) = units_(last, j) * weights(last - first, j) + level;
        }
    }

    // Adds c to the bins of a row.
    void count(int64_t row, double c, Span<double> table) const {
        constexpr int64_t EIGHT = 8;
        const Span<const uint8_t> bins = bins_[row];
        const int64_t d = n_columns();
        int64_t j = 0;
        for (; j + EIGHT <= d; j += EIGHT) {  // all are read before any is written
            int64_t places[EIGHT];
            double sums[EIGHT];
            for (int64_t t = 0; t < EIGHT; ++t) places[t] = bins[j + t] * d + j + t;
            for (int64_t t = 0; t < EIGHT; ++t) sums[t] = table[places[t]] + c;
            for (int64_t t = 0; t < EIGHT; ++t) table[places[t]] = sums[t];
        }
        for (; j < d; ++j) table[bins[j] * d + j] += c;
    }

    Matrix<double> by_bin(Span<double> table) const {
        check_range(0, table_size(), table.size());
        return {table.data(), height_, n_columns()};
    }

    Matrix<const uint8_t> bins_;
    Span<const double> running_, signs_;
    Matrix<const double> units_, rises_;
    int64_t height_;
};

// Where the bins of columns begin.
//
// The edges of a column ascend to infinity. Its guesses are lower bounds of bins for values in the
// cells of an even grid that begins at low[j] and has scale[j] cells a unit; one more look decides
// nearly always.
struct BinEdges {
    static constexpr int64_t TOGETHER = 32;  // columns whose tables stay in the nearest cache

    Matrix<const double> edges;
    Matrix<const uint8_t> guesses;
    Span<const double> low, scale;

    // The bins of a row in the next columns from `first` on, TOGETHER at most.
    template <class T>
    void assign(Span<const T> x, int64_t first, Span<uint8_t> bins) const {
        const double last_cell = static_cast<double>(guesses.columns() - 1);
        const auto origin = low.slice(first, first + x.size());
        const auto density = scale.slice(first, first + x.size());
        int32_t cells[TOGETHER];
        for (int64_t j = 0; j < x.size(); ++j) {
            const double place = (static_cast<double>(x[j]) - origin[j]) * density[j];
            cells[j] = static_cast<int32_t>(std::min(std::max(0.0, place), last_cell));
        }
        for (int64_t j = 0; j < x.size(); ++j) {
            const Span<const double> edge = edges[first + j];
            int64_t m = guesses(first + j, cells[j]);
            m += x[j] > edge[m];  // no branch, as it would be mispredicted
            while (x[j] > edge[m]) ++m;
            bins[j] = static_cast<uint8_t>(x[j] == x[j] ? m : edge.size());
        }
    }
};

// The number of edges below each value of X; a missing one (NaN) gets the number of all edges.
// `bins` may have more columns than X.
template <class T>
void assign_bins(Matrix<const T> X, Matrix<const double> edges, Matrix<const uint8_t> guesses,
                 Span<const double> low, Span<const double> scale, Matrix<uint8_t> bins) {
    constexpr int64_t ROWS = 64;  // that stay in cache while one column after the other is done
    const BinEdges columns{edges, guesses, low, scale};
    for (int64_t top = 0; top < X.rows(); top += ROWS) {
        const int64_t bottom = std::min(top + ROWS, X.rows());
        for (int64_t left = 0; left < X.columns(); left += BinEdges::TOGETHER) {
            const int64_t right = std::min(left + BinEdges::TOGETHER, X.columns());
            for (int64_t r = top; r < bottom; ++r) {
                columns.assign(X[r].slice(left, right), left, bins[r].slice(left, right));
            }
        }
    }
}

}  // namespace didyma
