// Maximum-weight assignment by shortest augmenting paths (Jonker & Volgenant), O(n³).
//
// Columns have prices p, and a row is content with a column of the largest value w_ij − p_j: an
// assignment of all rows to all columns that contents every row is optimal. Columns that no row
// needs go to idle rows, whose weights are zero. Any prices are a valid start, and those that were
// right for similar weights a good one: they stay from call to call.
#pragma once

#include <cmath>
#include <utility>

#include "extrema.hpp"

namespace didyma {

class Assignment {
  public:
    // Numbers of doubles and of integers that an assignment to m columns works with. They are zero
    // at first, and then remember prices and columns for the next call.
    static constexpr int64_t work_size(int64_t m) { return 5 * m; }
    static constexpr int64_t index_size(int64_t m) { return 1 + 6 * m; }

    // n rows are assigned to n of m ≥ n columns; entry [i, j] stands at i·stride + j.
    Assignment(Span<const double> weights, int64_t stride, int64_t n, int64_t m, Span<double> work,
               Span<int64_t> index)
        : weights_(weights),
          stride_(stride),
          n_(n),
          m_(m),
          price_(work.slice(0, m)),
          value_(work.slice(m, 2 * m)),
          open_price_(work.slice(2 * m, 3 * m)),
          distance_(work.slice(3 * m, 4 * m)),
          idle_(work.slice(4 * m, 5 * m)),
          solved_(index[0]),
          column_of_(index.slice(1, m + 1)),
          row_of_(index.slice(m + 1, 2 * m + 1)),
          free_(index.slice(2 * m + 1, 3 * m + 1)),
          parent_(index.slice(3 * m + 1, 4 * m + 1)),
          order_(index.slice(4 * m + 1, 5 * m + 1)),
          closed_(index.slice(5 * m + 1, 6 * m + 1)) {}

    // False if −∞ forbids every assignment.
    bool solve() {
        int64_t rows = m_;
        if (solved_ != 1 || FEW_IDLE * (m_ - n_) > n_ || !resume()) {
            price_.fill(0.0);
            column_of_.fill(-1);
            row_of_.fill(-1);
            rows = n_;  // idle rows take what is left, at the lowest price
        }
        solved_ = 0;  // only a complete assignment is worth remembering
        int64_t n_free = 0;
        for (int64_t i = 0; i < rows; ++i) {
            if (column_of_[i] < 0) free_[n_free++] = i;
        }
        n_free = bid(n_free);
        for (int64_t k = 0; k < n_free; ++k) {
            if (!augment(free_[k])) return false;
        }
        for (int64_t j = 0; j < m_; ++j) {
            if (row_of_[j] < 0) {
                row_of_[j] = rows;
                column_of_[rows++] = j;
            }
        }
        solved_ = 1;
        return true;
    }

    // Column of each row.
    Span<int64_t> columns() const { return column_of_.first(n_); }

  private:
    static constexpr double PRECISION = 1024.0;  // prices beyond so many weights are forgotten
    static constexpr int64_t FEW_IDLE = 8;  // of so many rows, one; else a fresh start is faster

    Span<const double> row(int64_t i) const {
        return i < n_ ? weights_.slice(i * stride_, i * stride_ + m_) : Span<const double>(idle_);
    }

    // Fills value with row − price; its maximum.
    double compute_values(Span<const double> row) const {
        check_range(0, m_, row.size());
        const double *w = row.data(), *p = price_.data();
        double* v = value_.data();
        for (int64_t j = 0; j < m_; ++j) v[j] = w[j] - p[j];
        return largest(value_);
    }

    // Keeps of the last assignment what its prices still justify; false if they are useless.
    bool resume() const {
        double lowest = INF, highest = -INF, scale = 0.0;
        for (int64_t j = 0; j < m_; ++j) {
            lowest = price_[j] < lowest ? price_[j] : lowest;
            highest = price_[j] > highest ? price_[j] : highest;
        }
        for (int64_t i = 0; i < n_; ++i) {
            const double weight = row(i)[column_of_[i]];
            if (weight > -INF) scale = std::max(scale, std::abs(weight));
        }
        if (!(highest - lowest <= PRECISION * scale)) return false;
        for (int64_t j = 0; j < m_; ++j) price_[j] -= lowest;
        for (int64_t i = 0; i < m_; ++i) {
            const int64_t column = column_of_[i];
            bool content = price_[column] == 0.0;
            if (i < n_) {
                const double best = compute_values(row(i));
                content = value_[column] == best && best > -INF;
            }
            if (!content) column_of_[i] = row_of_[column] = -1;
        }
        return true;
    }

    // Free rows take their best column and raise its price until the next best is as good.
    //
    // A row that loses its column bids at once, as long as prices rise; the others, and those that
    // do not come to rest soon, are left in free. Returns their number.
    int64_t bid(int64_t n_free) const {
        int64_t patience = 4 * n_free + m_;
        int64_t left = 0, k = 0;
        while (k < n_free) {
            const int64_t bidder = free_[k++];
            const double best = compute_values(row(bidder));
            int64_t column = 0;
            while (column < m_ - 1 && value_[column] != best) ++column;
            value_[column] = -INF;
            const double second = largest(value_);
            --patience;
            const double raised = price_[column] + (best - second);
            if (!(raised < INF) || patience < 0) {
                free_[left++] = bidder;
                continue;
            }
            const bool rises = raised > price_[column];
            if (rises) {
                price_[column] = raised;
            } else if (row_of_[column] >= 0) {
                column = 0;
                while (value_[column] != second) ++column;
            }
            const int64_t loser = std::exchange(row_of_[column], bidder);
            column_of_[bidder] = column;
            if (loser < 0) continue;
            column_of_[loser] = -1;
            if (rises) {
                free_[--k] = loser;
            } else {
                free_[left++] = loser;
            }
        }
        return left;
    }

    // Shortens distances by the edges of a row; the shortest.
    double relax(Span<const double> edges, double offset, int64_t row) const {
        check_range(0, m_, edges.size());
        const double *e = edges.data(), *p = open_price_.data();
        double* v = value_.data();
        int64_t* parent = parent_.data();
        for (int64_t j = 0; j < m_; ++j) {
            const double length = offset - e[j] + p[j];
            const bool shorter = length < v[j];
            parent[j] = shorter ? row : parent[j];
            v[j] = shorter ? length : v[j];
        }
        return smallest(value_);
    }

    // Assigns one more row along a shortest path; false if there is none.
    //
    // The length of an edge is what its row loses by it; value is the distance of each open column,
    // distance that of each closed one.
    bool augment(int64_t start) const {
        for (int64_t j = 0; j < m_; ++j) {
            value_[j] = INF;
            open_price_[j] = price_[j];
            order_[j] = row_of_[j] < 0 ? j : m_ + j;  // at one distance, a free column first
        }
        int64_t from = start, first, n_closed = 0;
        double offset = 0.0, nearest;
        while (true) {
            nearest = relax(row(from), offset, from);
            if (nearest == INF) return false;
            first = 2 * m_;
            for (int64_t j = 0; j < m_; ++j) {
                const int64_t place = value_[j] == nearest ? order_[j] : 2 * m_;
                first = place < first ? place : first;
            }
            if (first < m_) break;
            const int64_t column = first - m_;
            from = row_of_[column];
            offset = nearest + (row(from)[column] - price_[column]);
            value_[column] = open_price_[column] = INF;  // closed
            distance_[n_closed] = nearest;
            closed_[n_closed++] = column;
        }
        for (int64_t k = 0; k < n_closed; ++k) price_[closed_[k]] += nearest - distance_[k];
        for (int64_t column = first; column >= 0;) {
            from = parent_[column];
            row_of_[column] = from;
            column = std::exchange(column_of_[from], column);
        }
        return true;
    }

    Span<const double> weights_;
    int64_t stride_, n_, m_;
    Span<double> price_, value_, open_price_, distance_, idle_;
    int64_t& solved_;
    Span<int64_t> column_of_, row_of_, free_, parent_, order_, closed_;
};

// Column of each row in the assignment with the largest sum; rows ≤ columns.
inline Array<int64_t> assign(Matrix<const double> weights) {
    const int64_t n = weights.rows(), m = weights.columns();
    Array<double> work(Assignment::work_size(m), 0.0);
    Array<int64_t> index(Assignment::index_size(m), 0);
    Assignment assignment(weights.flat(), m, n, m, work, index);
    assignment.solve();
    Array<int64_t> columns(n);
    std::copy(assignment.columns().begin(), assignment.columns().end(), columns.begin());
    return columns;
}

// Argmax of didyma.structures.Matching: n rows and m columns of scores, whose rows stand `stride`
// apart. Writes the parts and returns their number, or −1 if there is no matching. Work has
// 5 max(n, m) + n m doubles, index as an Assignment.
inline int64_t match(Span<const double> scores, int64_t stride, int64_t n, int64_t m,
                     Span<double> work, Span<int64_t> index, Span<int32_t> parts) {
    const int64_t count = std::min(n, m), most = std::max(n, m);
    if (count == 0) return 0;
    Span<const double> weights = scores;
    if (n > m) {  // the columns are the rows
        const Span<double> turned = work.slice(5 * n, 5 * n + n * m);
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < m; ++j) turned[j * n + i] = scores[i * stride + j];
        }
        weights = turned;
    }
    Assignment assignment(weights, n > m ? n : stride, count, most, work, index);
    if (!assignment.solve()) return -1;
    const Span<int64_t> column = assignment.columns();
    for (int64_t i = 0; i < count; ++i) {
        parts[i] = static_cast<int32_t>(n <= m ? i * stride + column[i] : column[i] * stride + i);
    }
    return count;
}

// The same of size[0] rows and size[1] of dims[0] columns.
inline int64_t best_matching(Span<const double> scores, Span<const double>,
                             Span<const int64_t> dims, Span<const int64_t> size, Span<double> work,
                             Span<int64_t> index, Span<int32_t> parts, Span<int32_t>) {
    return match(scores, dims[0], size[0], size[1], work, index, parts);
}

}  // namespace didyma
