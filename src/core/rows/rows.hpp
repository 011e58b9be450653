// Rows of features in one of several storages, gathered by index so that no row is moved.
#pragma once

#include "array.hpp"

namespace didyma {

// Products with some rows of a matrix X. Sums are double whatever the type of X; rows with
// coefficient zero are not read.
class Rows {
  public:
    virtual ~Rows() = default;
    virtual int64_t n_features() const = 0;

    // Size of the tables below, and whether they are vectors of features as they are.
    virtual int64_t table_size() const { return n_features(); }
    virtual bool in_place() const { return true; }

    // What rows are scored by at w: w itself, or a table that is made of it.
    virtual Span<const double> tabulate(Span<const double> w, Span<double>) const { return w; }

    // out[r] = X[rows[r]] · w, for w as tabulated. The rows `soon` will be scored next.
    virtual void score(Span<const int64_t> rows, Span<const double> table, Span<double> out,
                       Span<const int64_t> soon) const = 0;

    // table += Σ_r coef[r] X[rows[r]], in a form that `features` reads.
    virtual void combine(Span<const int64_t> rows, Span<const double> coef,
                         Span<double> table) const = 0;

    // The features of what was combined: the table itself, or what it is turned into, in place.
    virtual Span<double> features(Span<double> table) const { return table; }
};

}  // namespace didyma
