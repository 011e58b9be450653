// Sums whose order is written out, so that their bits depend on no compiler and no processor.
#pragma once

#include "array.hpp"

namespace didyma {

#ifndef DIDYMA_STRANDS
#define DIDYMA_STRANDS 8
#endif
constexpr int64_t STRANDS =
    DIDYMA_STRANDS;  // partial sums that a vector unit computes side by side

// Σ term(i) over i below n: STRANDS partial sums, added in a fixed tree, then the rest in order.
template <class Term>
double sum(int64_t n, Term term) {
    int64_t i = 0;
    double total = 0.0;
    if (n >= STRANDS) {  // short sums need not add up zeros
        double partial[STRANDS] = {};
        for (; i + STRANDS <= n; i += STRANDS) {
            for (int64_t s = 0; s < STRANDS; ++s) partial[s] += term(i + s);
        }
        for (int64_t width = STRANDS / 2; width > 0; width /= 2) {
            for (int64_t s = 0; s < width; ++s) partial[s] += partial[s + width];
        }
        total = partial[0];
    }
    for (; i < n; ++i) total += term(i);
    return total;
}

// Σ a[i] b[i] over the first n.
template <class A, class B>
double dot(Span<A> a, Span<B> b, int64_t n) {
    check_range(0, n, a.size());
    check_range(0, n, b.size());
    const A* x = a.data();
    const B* y = b.data();
    return sum(n, [=](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
}

template <class A, class B>
double dot(Span<A> a, Span<B> b) {
    return dot(a, b, a.size());
}

// b += c a.
template <class A>
void axpy(double c, Span<A> a, Span<double> b) {
    check_range(0, a.size(), b.size());
    const A* x = a.data();
    double* y = b.data();
    for (int64_t i = 0; i < a.size(); ++i) y[i] += c * static_cast<double>(x[i]);
}

}  // namespace didyma
