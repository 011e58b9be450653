// A ranking problem: rows in a storage, and an oracle that turns the scores of a query's rows into
// coefficients of these rows. The rows combined by them are the query's cut.
#pragma once

#include "learning/cut.hpp"
#include "ranking/oracle.hpp"
#include "rows/rows.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace didyma {

// Rows query after query as they are stored, which is how they are read fastest.
class RankingProblem : public CutOracle {
  public:
    // Query i has the rows rows[starts[i]] to rows[starts[i + 1] - 1], and by_grade says where
    // among them its rows by descending relevance stand. Shard t begins with query shards[t].
    RankingProblem(const Rows& storage, const RankingOracle& oracle, Span<const int64_t> rows,
                   Span<const int64_t> starts, Span<const int32_t> by_grade,
                   Span<const int64_t> shards)
        : storage_(storage),
          oracle_(oracle),
          rows_(rows),
          starts_(starts),
          by_grade_(by_grade),
          shards_(shards) {}

    int64_t n_queries() const { return starts_.size() - 1; }
    const Rows& storage() const { return storage_; }
    Span<const int64_t> rows_of(int64_t i) const { return between(i, i + 1); }

    // Coefficients and loss of query i at the scores of its rows as stored.
    double answer(int64_t i, Span<const double> scores, Span<double> coef) const {
        const Span<const int32_t> by_grade = by_grade_.slice(starts_[i], starts_[i + 1]);
        return answer_stored(oracle_, i, by_grade, scores, coef);
    }

    // Cut of query i while its rows are in cache: score, argmax, combine.
    double cut(Span<const double> w, int64_t i, int64_t next,
               Span<double> direction) const override {
        const bool in_place = storage_.in_place();
        Array<double> scratch(in_place ? 0 : storage_.table_size());
        const Span<double> table = in_place ? direction : Span<double>(scratch);
        const Span<const int64_t> rows = rows_of(i);
        Array<double> scores(rows.size()), coef(rows.size());
        storage_.score(rows, storage_.tabulate(w, table), scores, rows_of(next));
        const double loss = answer(i, scores, coef);
        table.fill(0.0);
        storage_.combine(rows, coef, table);
        if (!in_place) copy(storage_.features(table), direction);
        return loss;
    }

    // Writes the weighted sum of all cuts, each row being read once; returns its loss.
    double cut_all(Span<const double> w, Span<const double> weights, Span<double> direction,
                   int64_t n_jobs) const {
        Array<double> scratch(storage_.table_size()), losses(n_shards(), 0.0);
        const Span<const double> table = storage_.tabulate(w, scratch);
        add_shards(direction, n_jobs, [&](int64_t shard, Span<double> sums) {
            for (int64_t i = shards_[shard]; i < shards_[shard + 1]; ++i) {
                const Span<const int64_t> rows = rows_of(i);
                Array<double> scores(rows.size()), coef(rows.size());
                storage_.score(rows, table, scores, {});
                losses[shard] += weights[i] * answer(i, scores, coef);
                for (double& c : coef) c *= weights[i];
                storage_.combine(rows, coef, sums);
            }
        });
        return in_order(losses);
    }

    // Scores of all rows, by their numbers.
    void score(Span<const double> w, Span<double> out, int64_t n_jobs) const {
        each_scored(w, n_jobs, [&](int64_t shard, Span<const double> scores) {
            const Span<const int64_t> rows = between(shards_[shard], shards_[shard + 1]);
            for (int64_t r = 0; r < rows.size(); ++r) out[rows[r]] = scores[r];
        });
    }

    // Risk of each query at w; no more than the scores of a shard are in memory.
    void risks(Span<const double> w, Span<double> out, int64_t n_jobs) const {
        each_scored(w, n_jobs, [&](int64_t shard, Span<const double> scores) {
            const int64_t first = starts_[shards_[shard]];
            for (int64_t i = shards_[shard]; i < shards_[shard + 1]; ++i) {
                const auto own = scores.slice(starts_[i] - first, starts_[i + 1] - first);
                Array<double> coef(own.size());
                const double loss = answer(i, own, coef);
                out[i] = loss + dot(coef, own);
            }
        });
    }

    // Weighted loss at given scores of all rows, and a coefficient of each row.
    double respond(Span<const double> scores, Span<const double> weights, Span<double> coefficients,
                   int64_t n_jobs) const {
        Array<double> losses(n_shards(), 0.0);
        parallel_for(n_shards(), n_jobs, [&](int64_t shard) {
            for (int64_t i = shards_[shard]; i < shards_[shard + 1]; ++i) {
                const Span<const int64_t> rows = rows_of(i);
                Array<double> own(rows.size()), coef(rows.size());
                for (int64_t r = 0; r < rows.size(); ++r) own[r] = scores[rows[r]];
                losses[shard] += weights[i] * answer(i, own, coef);
                for (int64_t r = 0; r < rows.size(); ++r) {
                    coefficients[rows[r]] = weights[i] * coef[r];
                }
            }
        });
        return in_order(losses);
    }

    // Writes X' c.
    void gather(Span<const double> coefficients, Span<double> direction, int64_t n_jobs) const {
        add_shards(direction, n_jobs, [&](int64_t shard, Span<double> sums) {
            const Span<const int64_t> rows = between(shards_[shard], shards_[shard + 1]);
            Array<double> coef(rows.size());
            for (int64_t r = 0; r < rows.size(); ++r) coef[r] = coefficients[rows[r]];
            storage_.combine(rows, coef, sums);
        });
    }

    // Writes X_i' c of each query.
    void gather_each(Span<const double> coefficients, Matrix<double> directions,
                     int64_t n_jobs) const {
        parallel_for(n_shards(), n_jobs, [&](int64_t shard) {
            Array<double> table(storage_.table_size());
            for (int64_t i = shards_[shard]; i < shards_[shard + 1]; ++i) {
                const Span<const int64_t> rows = rows_of(i);
                Array<double> coef(rows.size());
                for (int64_t r = 0; r < rows.size(); ++r) coef[r] = coefficients[rows[r]];
                table.fill(0.0);
                storage_.combine(rows, coef, table);
                copy(storage_.features(table), directions[i]);
            }
        });
    }

  private:
    int64_t n_shards() const { return shards_.size() - 1; }

    // The rows of the queries from first to last.
    Span<const int64_t> between(int64_t first, int64_t last) const {
        return rows_.slice(starts_[first], starts_[last]);
    }

    static void copy(Span<const double> from, Span<double> to) {
        std::copy(from.begin(), from.end(), to.begin());
    }

    static double in_order(Span<const double> terms) {
        double total = 0.0;
        for (const double term : terms) total += term;
        return total;
    }

    // Calls add(shard, sums) on threads; the sums of all shards are added in order.
    template <class Add>
    void add_shards(Span<double> direction, int64_t n_jobs, Add add) const {
        Table<double> sums(std::max<int64_t>(n_shards(), 1), storage_.table_size(), 0.0);
        parallel_for(n_shards(), n_jobs, [&](int64_t shard) { add(shard, sums[shard]); });
        for (int64_t shard = 1; shard < n_shards(); ++shard) {
            axpy(1.0, Span<const double>(sums[shard]), sums[0]);
        }
        copy(storage_.features(sums[0]), direction);
    }

    // Calls use(shard, scores) with the scores of each shard's rows as stored.
    template <class Use>
    void each_scored(Span<const double> w, int64_t n_jobs, Use use) const {
        Array<double> scratch(storage_.table_size());
        const Span<const double> table = storage_.tabulate(w, scratch);
        const bool zero = std::all_of(w.begin(), w.end(), [](double x) { return x == 0.0; });
        parallel_for(n_shards(), n_jobs, [&](int64_t shard) {
            const Span<const int64_t> rows = between(shards_[shard], shards_[shard + 1]);
            Array<double> scores(rows.size(), 0.0);
            if (!zero) storage_.score(rows, table, scores, {});  // else no row has to be looked at
            use(shard, scores);
        });
    }

    const Rows& storage_;
    const RankingOracle& oracle_;
    Span<const int64_t> rows_, starts_;
    Span<const int32_t> by_grade_;
    Span<const int64_t> shards_;
};

}  // namespace didyma
