// The numbers in which sums over trees are taken: probabilities where no sum comes near the
// smallest float, logarithms for weights of any range, and logarithms with their derivatives.
//
// Nothing is ever subtracted, so nothing cancels: small marginals are as accurate as large ones.
#pragma once

#include <cmath>

#include "structures/log_space.hpp"
#include "sums.hpp"

namespace didyma {

struct Probabilities {
    using Number = double;
    using Result = double;
    static constexpr double ZERO = 0.0, ONE = 1.0;

    static bool above(double a, double b) { return a > b; }
    static double plus(double a, double b) { return a + b; }
    static double times(double a, double b) { return a * b; }
    static double over(double a, double b) { return a / b; }
    static double to_log(double a) { return std::log(a); }
    static double to_probability(double a) { return a; }
    static double dot(Span<const double> a, Span<const double> b) { return didyma::dot(a, b); }
    static double total(Span<const double> a) {
        return sum(a.size(), [=](int64_t i) { return a[i]; });
    }
    static void accumulate(Span<double> target, double a, Span<const double> b) {
        check_range(0, target.size(), b.size());
        double* y = target.data();
        const double* x = b.data();
        for (int64_t i = 0; i < target.size(); ++i) y[i] += a * x[i];
    }
};

struct Logarithms {
    using Number = double;
    using Result = double;
    static constexpr double ZERO = LOG_ZERO, ONE = 0.0;

    static bool above(double a, double b) { return a > b; }
    static double plus(double a, double b) { return log_plus(a, b); }
    static double times(double a, double b) { return a + b; }
    static double over(double a, double b) { return a - b; }
    static double to_log(double a) { return a; }
    static double to_probability(double a) { return std::exp(a); }
    static double dot(Span<const double> a, Span<const double> b) {
        return log_sum(a.size(), [=](int64_t i) { return a[i] + b[i]; });
    }
    static double total(Span<const double> a) {
        return log_sum(a.size(), [=](int64_t i) { return a[i]; });
    }
    static void accumulate(Span<double> target, double a, Span<const double> b) {
        for (int64_t i = 0; i < target.size(); ++i) target[i] = log_plus(target[i], a + b[i]);
    }
};

// A number with how it moves along p, along r, and along both.
struct Jet {
    double value, p, r, both;
};

// Logarithms with derivatives. A sum moves by a mean of what its terms move by.
struct Derivatives {
    using Number = Jet;
    using Result = Jet;
    static constexpr Jet ZERO = {LOG_ZERO, 0.0, 0.0, 0.0}, ONE = {0.0, 0.0, 0.0, 0.0};

    static bool above(const Jet& a, const Jet& b) { return a.value > b.value; }
    static Jet plus(const Jet& one, const Jet& other) {
        const Jet& a = one.value < other.value ? other : one;
        const Jet& b = one.value < other.value ? one : other;
        if (b.value == LOG_ZERO) return a;
        const double ratio = std::exp(b.value - a.value);
        const double share = ratio / (1.0 + ratio);
        const double p = b.p - a.p, r = b.r - a.r;
        const double both = b.both - a.both + (1.0 - share) * p * r;
        return {a.value + std::log1p(ratio), a.p + share * p, a.r + share * r,
                a.both + share * both};
    }
    static Jet times(const Jet& a, const Jet& b) {
        return {a.value + b.value, a.p + b.p, a.r + b.r, a.both + b.both};
    }
    static Jet over(const Jet& a, const Jet& b) {
        return {a.value - b.value, a.p - b.p, a.r - b.r, a.both - b.both};
    }
    static double to_log(const Jet& a) { return a.value; }
    static Jet to_probability(const Jet& a) {
        const double probability = std::exp(a.value);
        return {probability, probability * a.p, probability * a.r,
                probability * (a.both + a.p * a.r)};
    }
    static Jet dot(Span<const Jet> a, Span<const Jet> b) {
        Jet result = ZERO;
        for (int64_t i = 0; i < a.size(); ++i) result = plus(result, times(a[i], b[i]));
        return result;
    }
    static Jet total(Span<const Jet> a) {
        Jet result = ZERO;
        for (int64_t i = 0; i < a.size(); ++i) result = plus(result, times(a[i], ONE));
        return result;
    }
    static void accumulate(Span<Jet> target, const Jet& a, Span<const Jet> b) {
        for (int64_t i = 0; i < target.size(); ++i) target[i] = plus(target[i], times(a, b[i]));
    }
};

}  // namespace didyma
