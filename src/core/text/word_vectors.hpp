// How near the words of a query and of a passage are as vectors.
#pragma once

#include "sums.hpp"
#include "text/reading.hpp"

namespace didyma::text {

constexpr int64_t N_NEARNESSES = 3;

// Σ a[i] b[i] as `dot` sums it, but in single precision and twice as many strands: a cosine is kept
// in no more.
inline float dot_single(Span<const float> a, Span<const float> b) {
    check_range(0, a.size(), b.size());
    constexpr int64_t N = 2 * STRANDS;
    const float *x = a.data(), *y = b.data();
    float partial[N] = {};
    int64_t i = 0;
    for (; i + N <= a.size(); i += N) {
        for (int64_t s = 0; s < N; ++s) partial[s] += x[i + s] * y[i + s];
    }
    for (int64_t width = N / 2; width > 0; width /= 2) {
        for (int64_t s = 0; s < width; ++s) partial[s] += partial[s + width];
    }
    float total = partial[0];
    for (; i < a.size(); ++i) total += x[i] * y[i];
    return total;
}

// Vectors and their norms, in two tables: a term has row r of the first, or row ~r of the second.
struct WordVectors {
    Span<const int32_t> rows;
    Matrix<const float> known;
    Span<const float> known_norms;
    Matrix<const float> others;
    Span<const float> other_norms;

    Span<const float> operator[](int32_t term) const {
        return rows[term] >= 0 ? known[rows[term]] : others[~rows[term]];
    }
    float norm(int32_t term) const {
        return rows[term] >= 0 ? known_norms[rows[term]] : other_norms[~rows[term]];
    }
};

// `didyma.text.features.word_vectors` says what the columns mean. A vector of norm 0 stands for
// none.
class Nearnesses {
  public:
    Nearnesses(const Reading& reading, const WordVectors& vectors)
        : reading_(reading),
          vectors_(vectors),
          asked_(reading.longest_query()),
          asked_terms_(reading.n_terms()),
          met_terms_(reading.n_terms()),
          slot_(reading.n_terms()),
          best_(reading.longest_query()),
          weight_(reading.longest_query()),
          total_(vectors.known.columns()),
          mean_(vectors.known.columns()) {}

    Table<double> compute() {
        Table<double> values(reading_.n_rows(), N_NEARNESSES, 0.0);
        for (int64_t q = 0; q < reading_.n_queries(); ++q) {
            ask(q);
            for (int64_t r = reading_.bounds[q]; r < reading_.bounds[q + 1]; ++r) {
                compare(reading_.row(r), r + 1, values[r]);
            }
        }
        return values;
    }

  private:
    void ask(int64_t q) {
        const Reading::Tokens query = reading_.query(q);
        every_ = reading_.is_every(query);
        n_ = 0;
        asked_idf_ = 0.0;
        total_.fill(0.0);
        for (int64_t t = query.begin; t < query.end; ++t) {
            const int32_t term = reading_.terms[t];
            if (!reading_.counts(t, every_) || !asked_terms_.add(term, q + 1)) continue;
            if (vectors_.norm(term) > 0) {
                const double idf = reading_.term_idf[term];
                asked_[n_] = term;
                weight_[n_++] = idf;
                axpy(idf, vectors_[term], total_);
                asked_idf_ += idf;
            }
        }
        asked_norm_ = std::sqrt(dot<double, double>(total_, total_));
        cosines_.clear();
        slot_.fill(-1);
    }

    // Cosines of a term with those of the query, found when it is first met.
    const float* cosines(int32_t term) {
        if (slot_[term] < 0) {
            slot_[term] = static_cast<int64_t>(cosines_.size());
            for (int64_t i = 0; i < n_; ++i) {
                const float product = dot_single(vectors_[term], vectors_[asked_[i]]);
                const float norm = vectors_.norm(term) * vectors_.norm(asked_[i]);
                cosines_.push_back(product / norm);
            }
        }
        return cosines_.data() + slot_[term];
    }

    void compare(Reading::Tokens row, int64_t moment, Span<double> out) {
        mean_.fill(0.0);
        best_.first(n_).fill(-1.0);
        double back = 0.0, met_idf = 0.0;
        for (int64_t t = row.begin; t < row.end; ++t) {
            const int32_t term = reading_.terms[t];
            if (!reading_.counts(t, every_) || vectors_.norm(term) == 0) continue;
            if (!met_terms_.add(term, moment)) continue;
            const float* own = cosines(term);
            double nearest = -1.0;
            for (int64_t i = 0; i < n_; ++i) {
                const double cosine = own[i];
                best_[i] = std::max(best_[i], cosine);
                nearest = std::max(nearest, cosine);
            }
            const double idf = reading_.term_idf[term];
            back += idf * nearest;
            met_idf += idf;
            axpy(idf, vectors_[term], mean_);
        }
        if (n_ == 0 || !(met_idf > 0)) return;
        const double norm = asked_norm_ * std::sqrt(dot<double, double>(mean_, mean_));
        out[0] = norm > 0 ? dot<double, double>(total_, mean_) / norm : 0.0;
        double covered = 0.0;
        for (int64_t i = 0; i < n_; ++i) covered += weight_[i] * best_[i];
        out[1] = covered / asked_idf_;
        out[2] = back / met_idf;
    }

    const Reading& reading_;
    const WordVectors vectors_;
    Array<int32_t> asked_;
    Marks asked_terms_, met_terms_;
    Array<int64_t> slot_;
    Array<double> best_, weight_, total_, mean_;
    std::vector<float> cosines_;
    int64_t n_ = 0;
    double asked_idf_ = 0.0, asked_norm_ = 0.0;
    bool every_ = false;
};

inline Table<double> nearnesses(const Reading& reading, Span<const int32_t> rows,
                                Matrix<const float> known, Span<const float> known_norms,
                                Matrix<const float> others, Span<const float> other_norms) {
    return Nearnesses(reading, {rows, known, known_norms, others, other_norms}).compute();
}

}  // namespace didyma::text
