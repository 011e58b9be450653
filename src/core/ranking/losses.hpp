// Ranking losses as steps: what each item costs by the place it takes.
//
// A loss is Δ = scale · (Σ positive(i, j) + Σ negative(i, j)), summed over the items of a ranking,
// each taken at the state (i, j) of positives and negatives placed before it. `steps(P, N)` are
// those of a query with so many positives and negatives. With a cut-off k, the steps of a positive
// behind rank k depend on i alone and those of a negative on j.
#pragma once

#include <cmath>
#include <stdexcept>
#include <vector>

#include "array.hpp"

namespace didyma {

// 1/log2(1 + rank) of the item that so many stand above.
inline double discount(int64_t above) { return 1.0 / std::log2(static_cast<double>(above) + 2.0); }

// Discounts of the ranks of the longest query, zero behind a cut-off, and their sums.
class Discounts {
  public:
    Discounts(int64_t cutoff, int64_t longest) : values_(longest), sums_(longest + 1) {
        for (int64_t above = 0; above < longest; ++above) {
            values_[above] = above < cutoff ? discount(above) : 0.0;
            sums_[above + 1] = sums_[above] + values_[above];
        }
    }
    double operator[](int64_t above) const { return values()[above]; }
    Span<const double> values() const { return span(values_); }
    double ideal(int64_t positives) const { return span(sums_)[positives]; }  // best sum of so many

  private:
    static Span<const double> span(const std::vector<double>& numbers) {
        return {numbers.data(), static_cast<int64_t>(numbers.size())};
    }

    std::vector<double> values_, sums_;
};

// Negatives cost nothing by themselves, unless a loss says otherwise.
struct NoNegativeSteps {
    double negative(int32_t, int32_t) const { return 0.0; }
};

// 1 − AP: of the precision at each positive, the share that negatives take.
struct AveragePrecision {
    struct Steps : NoNegativeSteps {
        double scale;
        double positive(int32_t i, int32_t j) const {
            return static_cast<double>(j) / (static_cast<double>(i + j) + 1.0);
        }
    };
    Steps steps(int64_t P, int64_t) const { return {{}, 1.0 / static_cast<double>(P)}; }
};

// 1 − 1/rank of the first positive.
struct ReciprocalRank {
    struct Steps : NoNegativeSteps {
        double scale;
        double positive(int32_t i, int32_t j) const {
            return i == 0 ? static_cast<double>(j) / (static_cast<double>(j) + 1.0) : 0.0;
        }
    };
    Steps steps(int64_t, int64_t) const { return {{}, 1.0}; }
};

// 1 − area under the ROC curve: the negatives above each positive, as a share of all pairs.
struct RocArea {
    struct Steps : NoNegativeSteps {
        double scale;
        double positive(int32_t, int32_t j) const { return static_cast<double>(j); }
    };
    Steps steps(int64_t P, int64_t N) const {
        return {{}, 1.0 / (static_cast<double>(P) * static_cast<double>(N))};
    }
};

// min(1, P/k) − precision@k: one for each positive pushed out of the first k ranks.
class PrecisionAt {
  public:
    struct Steps : NoNegativeSteps {
        double scale;
        int32_t cutoff;
        double positive(int32_t i, int32_t j) const {
            return i < cutoff && cutoff <= i + j ? 1.0 : 0.0;
        }
    };
    explicit PrecisionAt(int64_t cutoff) : cutoff_(cutoff) {}
    Steps steps(int64_t P, int64_t N) const {
        return {{},
                1.0 / static_cast<double>(cutoff_),
                static_cast<int32_t>(std::min(cutoff_, P + N + 1))};
    }

  private:
    int64_t cutoff_;
};

// 1 − NDCG@k for one grade: the discount lost by each positive, as a share of all discounts.
class DiscountedGain {
  public:
    struct Steps : NoNegativeSteps {
        double scale;
        Span<const double> discounts;
        double positive(int32_t i, int32_t j) const { return discounts[i] - discounts[i + j]; }
    };
    DiscountedGain(int64_t cutoff, int64_t longest) : discounts_(cutoff, longest) {}
    Steps steps(int64_t P, int64_t) const {
        return {{}, 1.0 / discounts_.ideal(P), discounts_.values()};
    }

  private:
    Discounts discounts_;
};

// A user's steps, one table of states after another, by ascending (P, N).
struct StepTables {
    Matrix<const int64_t> sizes;  // P and N of each table
    Span<const int64_t> starts;   // of each table, and the end of all
    Span<const double> values;    // by rows of i; none of a function that is zero
};

// A loss that is tabulated, of the steps of a positive and of a negative within the cut-off.
class TabulatedLoss {
  public:
    struct Steps {
        double scale;
        Matrix<const double> positives, negatives;
        int32_t cutoff;
        double positive(int32_t i, int32_t j) const { return look_up(positives, i, j); }
        double negative(int32_t i, int32_t j) const { return look_up(negatives, i, j); }

      private:
        double look_up(const Matrix<const double>& table, int32_t i, int32_t j) const {
            return table.rows() > 0 && j < cutoff - i ? table(i, j) : 0.0;
        }
    };
    TabulatedLoss(const StepTables& positive, const StepTables& negative, int64_t cutoff)
        : positive_(positive), negative_(negative), cutoff_(cutoff) {}
    Steps steps(int64_t P, int64_t N) const {
        const int64_t k = std::min(cutoff_, P + N + 1);
        return {1.0, table(positive_, P, N, std::min(P, k), std::min(N + 1, k)),
                table(negative_, P, N, std::min(P + 1, k), std::min(N, k)),
                static_cast<int32_t>(k)};
    }

  private:
    static Matrix<const double> table(const StepTables& tables, int64_t P, int64_t N, int64_t rows,
                                      int64_t columns) {
        if (tables.values.size() == 0) return {};
        int64_t low = 0, high = tables.sizes.rows();
        while (low < high) {
            const int64_t middle = (low + high) >> 1;
            const Span<const int64_t> size = tables.sizes[middle];
            const bool before = size[0] < P || (size[0] == P && size[1] < N);
            (before ? low : high) = before ? middle + 1 : middle;
        }
        const Span<const double> values =
            tables.values.slice(tables.starts[low], tables.starts[low + 1]);
        check_range(0, rows * columns, values.size());
        return {values.data(), rows, columns};
    }

    StepTables positive_, negative_;
    int64_t cutoff_;
};

// What Python says of a loss.
struct LossDescription {
    enum Kind { AP, RR, ROC, PRECISION, NDCG, STEPS } kind;
    int64_t cutoff;
    StepTables positive, negative;
};

// Calls f with the loss that is described, for queries up to a length.
template <class F>
auto with_loss(const LossDescription& loss, int64_t longest, F f) {
    switch (loss.kind) {
        case LossDescription::AP:
            return f(AveragePrecision());
        case LossDescription::RR:
            return f(ReciprocalRank());
        case LossDescription::ROC:
            return f(RocArea());
        case LossDescription::PRECISION:
            return f(PrecisionAt(loss.cutoff));
        case LossDescription::NDCG:
            return f(DiscountedGain(loss.cutoff, longest));
        case LossDescription::STEPS:
            return f(TabulatedLoss(loss.positive, loss.negative, loss.cutoff));
    }
    throw std::invalid_argument("no such loss");
}

}  // namespace didyma
