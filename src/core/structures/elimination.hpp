// Variable elimination as a circuit of maxima of sums (see didyma.structures.elimination).
//
// dims is [n_states, n_tables], five integers per table (outputs, terms, first value, place,
// whether it is a root) and the tables' entries. At its place stand the table that each term comes
// from (-1 for scores), where each output's rows begin, and the rows: indices of values to be
// added. Values are the scores, the additional scores and then the outputs of the tables.
#pragma once

#include "array.hpp"

namespace didyma {

struct EliminationTable {
    int64_t n_out, n_terms, out, place, is_root;

    EliminationTable(Span<const int64_t> dims, int64_t table) {
        const auto fields = dims.slice(2 + 5 * table, 7 + 5 * table);
        n_out = fields[0], n_terms = fields[1], out = fields[2], place = fields[3];
        is_root = fields[4];
    }
    // Where the rows of output o begin in dims.
    int64_t row(Span<const int64_t> dims, int64_t o) const {
        const int64_t first = place + n_terms;
        return first + n_out + 1 + dims[first + o] * n_terms;
    }
};

inline double add_row(Span<const double> values, Span<const int64_t> dims, int64_t at,
                      int64_t n_terms) {
    double total = values[dims[at]];
    for (int64_t t = 1; t < n_terms; ++t) total += values[dims[at + t]];
    return total;
}

// Argmax of a factor graph: max-sum upwards, then the best rows downwards. Returns the number of
// parts, or -1 if every output is impossible.
inline int64_t eliminate(Span<const double> scores, Span<const double> extra,
                         Span<const int64_t> dims, Span<const int64_t> /*size*/, Span<double> work,
                         Span<int64_t> index, Span<int32_t> parts, Span<int32_t> extra_parts) {
    const int64_t d = scores.size(), f = extra.size();
    const int64_t n_states = dims[0], n_tables = dims[1];
    std::copy(scores.begin(), scores.end(), work.first(d).begin());
    std::copy(extra.begin(), extra.end(), work.slice(d, d + f).begin());
    for (int64_t t = 0; t < n_tables; ++t) {
        const EliminationTable table(dims, t);
        for (int64_t o = 0; o < table.n_out; ++o) {
            double best = -INF;
            const int64_t end = table.row(dims, o + 1);
            for (int64_t at = table.row(dims, o); at < end; at += table.n_terms) {
                const double total = add_row(work, dims, at, table.n_terms);
                best = total > best ? total : best;
            }
            work[table.out + o] = best;
        }
        if (table.is_root && work[table.out] == -INF) return -1;
        index[t] = 0;
    }
    for (int64_t t = n_tables - 1; t >= 0; --t) {
        const EliminationTable table(dims, t);
        const int64_t o = index[t];  // the output that the table above has used
        int64_t at = table.row(dims, o);
        while (add_row(work, dims, at, table.n_terms) < work[table.out + o]) at += table.n_terms;
        for (int64_t k = 0; k < table.n_terms; ++k) {
            const int64_t term = dims[at + k];
            if (term < d) {
                parts[term / n_states] = static_cast<int32_t>(term);
            } else if (term < d + f) {
                extra_parts[(term - d) / (n_states * n_states)] = static_cast<int32_t>(term - d);
            } else {
                const int64_t source = dims[table.place + k];
                index[source] = term - EliminationTable(dims, source).out;
            }
        }
    }
    return d / n_states;
}

}  // namespace didyma
