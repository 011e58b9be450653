#include <nanobind/stl/unique_ptr.h>

#include "bind/families.hpp"
#include "bind/numpy.hpp"
#include "rows/binned.hpp"
#include "rows/cross.hpp"
#include "rows/csr.hpp"
#include "rows/dense.hpp"

namespace didyma {
namespace {

template <class T>
std::unique_ptr<Rows> dense_rows(Matrix<const T> X) {
    return std::make_unique<DenseRows<T>>(X);
}

template <class T, class Index>
std::unique_ptr<Rows> sparse_rows(Span<const T> data, Span<const Index> indices,
                                  Span<const int64_t> indptr, int64_t n_features) {
    return std::make_unique<SparseRows<T, Index>>(data, indices, indptr, n_features);
}

template <class T, class Index>
void bind_sparse(nb::module_& m) {
    m.def("sparse_rows", &sparse_rows<T, Index>, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
          nb::keep_alive<0, 3>());
}

// out[r] = X[rows[r]] · w.
void score(const Rows& storage, Span<const int64_t> rows, Span<const double> w, Span<double> out) {
    Array<double> table(storage.table_size());
    storage.score(rows, storage.tabulate(w, table), out, {});
}

// out += Σ_r coef[r] X[rows[r]].
void combine(const Rows& storage, Span<const int64_t> rows, Span<const double> coef,
             Span<double> out) {
    if (storage.in_place()) return storage.combine(rows, coef, out);
    Array<double> table(storage.table_size(), 0.0);
    storage.combine(rows, coef, table);
    axpy(1.0, Span<const double>(storage.features(table)), out);
}

}  // namespace

void bind_rows(nb::module_ m) {
    nb::class_<Rows>(m, "Rows")
        .def("score", &score, Released())
        .def("combine", &combine, Released());
    m.def("dense_rows", &dense_rows<uint8_t>, nb::keep_alive<0, 1>());
    m.def("dense_rows", &dense_rows<float>, nb::keep_alive<0, 1>());
    m.def("dense_rows", &dense_rows<double>, nb::keep_alive<0, 1>());
    bind_sparse<float, int32_t>(m);
    bind_sparse<float, int64_t>(m);
    bind_sparse<double, int32_t>(m);
    bind_sparse<double, int64_t>(m);
    nb::class_<BinnedRows, Rows>(m, "BinnedRows")
        .def(nb::init<Matrix<const uint8_t>, Span<const double>, Matrix<const double>,
                      Span<const double>, Matrix<const double>, int64_t>(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>());
    m.def("assign_bins", &assign_bins<float>, Released());
    m.def("assign_bins", &assign_bins<double>, Released());
    m.def("cross", &cross, Released());
}

}  // namespace didyma
