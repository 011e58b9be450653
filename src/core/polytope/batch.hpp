// The projection onto the hulls of a batch of structures, whose outputs are rows of part indices.
#pragma once

#include <optional>
#include <vector>

#include "polytope/active_set.hpp"
#include "polytope/frank_wolfe.hpp"
#include "polytope/share.hpp"
#include "polytope/vertices.hpp"
#include "structures/argmax.hpp"

namespace didyma::polytope {

// One instance and the vertices that its solver holds, one per slot.
class Vertices final : public Polytope {
  public:
    Vertices(const Argmax& oracle, bool aligned, const Batch& batch, int64_t capacity)
        : parts(capacity + 1, batch.n_parts, -1),
          extra_parts(capacity + 1, batch.n_extra, -1),
          counts(capacity + 1, 0),
          oracle_(oracle),
          batch_(batch),
          scratch_(batch),
          current_(batch.scores.columns()),
          gram_(aligned, batch.scores.columns()),
          theta_(capacity + 1, 0.0),
          noise_(capacity + 1, 0.0) {}

    // Turns to instance b, which finds nothing of another one.
    void begin(int64_t b) {
        scores_ = batch_.scores[b];
        extra_ = batch_.extra_of(b);
        size_ = batch_.sizes[b];
        scratch_.clear();
        parts.fill(-1);
        extra_parts.fill(-1);
    }

    // Makes room for more vertices: the active ones move to the first slots.
    void grow(int64_t capacity, Span<const int64_t> active) {
        Table<int32_t> all_parts(capacity + 1, parts.columns(), -1);
        Table<int32_t> all_extra(capacity + 1, extra_parts.columns(), -1);
        Array<int64_t> all_counts(capacity + 1, 0);
        Array<double> all_theta(capacity + 1, 0.0), all_noise(capacity + 1, 0.0);
        for (int64_t i = 0; i < active.size(); ++i) {
            const int64_t slot = active[i];
            copy(parts[slot], all_parts[i]);
            copy(extra_parts[slot], all_extra[i]);
            all_counts[i] = counts[slot];
            all_theta[i] = theta_[slot];
            all_noise[i] = noise_[slot];
        }
        parts = std::move(all_parts);
        extra_parts = std::move(all_extra);
        counts = std::move(all_counts);
        theta_ = std::move(all_theta);
        noise_ = std::move(all_noise);
    }

    // Puts a vertex into a slot; whether it is possible.
    bool put(int64_t slot, Parts own, Parts own_extra) {
        copy(own, parts[slot]);
        copy(own_extra, extra_parts[slot]);
        counts[slot] = 0;
        for (const int32_t part : own) counts[slot] += part >= 0;
        weigh(slot);
        return theta_[slot] > -INF;
    }

    int64_t argmax(Span<const double> u, int64_t spare) override {
        for (int64_t i = 0; i < current_.size(); ++i) current_[i] = scores_[i] - u[i];
        counts[spare] = oracle_.find(current_, extra_, batch_.dims, size_, scratch_.work,
                                     scratch_.index, parts[spare], extra_parts[spare]);
        weigh(spare);
        return spare;
    }

    double gram(int64_t slot, Span<const int64_t> active, Span<double> out) override {
        const auto row = [active](int64_t i) { return active[i]; };
        gram_(parts, counts[slot], slot, row, active.size(), out);
        return static_cast<double>(counts[slot]);
    }

    // ‖u‖² is computed as y'M'u, whose rounding is the same wherever parts stand.
    double combine(Span<const int64_t> active, Span<const double> y, Span<double> u,
                   Span<double> products) override {
        u.fill(0.0);
        for (int64_t i = 0; i < y.size(); ++i) scatter(parts[active[i]], y[i], u);
        double norm = 0.0;
        for (int64_t i = 0; i < y.size(); ++i) {
            products[i] = total(u, parts[active[i]]);
            norm += y[i] * products[i];
        }
        return norm;
    }

    Span<const double> theta() const override { return theta_; }
    Span<const double> noise() const override { return noise_; }

    Table<int32_t> parts, extra_parts;
    Array<int64_t> counts;

  private:
    static constexpr double ROUNDING = 4e-16;  // a sum is known to this, relative to its terms

    static void copy(Parts from, Span<int32_t> to) {
        std::copy(from.begin(), from.end(), to.first(from.size()).begin());
    }

    // Score of a vertex, and what rounding may have done to it. Scores that are not its own have no
    // part in that: a mask is as good as -inf.
    void weigh(int64_t slot) {
        const Totals own = totals(scores_, parts[slot]);
        const Totals more = totals(extra_, extra_parts[slot]);
        theta_[slot] = own.score + more.score;
        noise_[slot] =
            ROUNDING * (own.magnitude + more.magnitude + static_cast<double>(counts[slot]));
    }

    const Argmax& oracle_;
    const Batch& batch_;
    Span<const double> scores_, extra_;
    Span<const int64_t> size_;
    Scratch scratch_;
    Array<double> current_;  // scores − u
    Gram gram_;
    Array<double> theta_, noise_;
};

// Vertices with weights, those of instance b in rows offsets[b] to offsets[b + 1]; no offsets mean
// that there are none.
struct Start {
    Span<const int64_t> offsets;
    Matrix<const int32_t> parts, extra_parts;
    Span<const double> weights;
};

enum class Method { ACTIVE_SET, VANILLA, AWAY, PAIRWISE, ARGMAX };

// A method ends at a gap of `stop`; one that can go no further is content with `tol`.
struct Limits {
    double tol, stop;
    int64_t max_iter;

    // A solution at a tolerance is for its marginals; that on its face is differentiated.
    bool keeps_factors(Method method) const { return method == Method::ACTIVE_SET && stop == 0.0; }
};

// Where the factor of each instance begins among all of them, given where its vertices do.
inline Array<int64_t> packed_offsets(Span<const int64_t> offsets) {
    Array<int64_t> begin(offsets.size());
    begin[0] = 0;
    for (int64_t b = 0; b + 1 < offsets.size(); ++b) {
        begin[b + 1] = begin[b] + Factor::packed_size(offsets[b + 1] - offsets[b]);
    }
    return begin;
}

// Solves one instance after the other.
class BatchSolver {
  public:
    BatchSolver(const Argmax& oracle, bool aligned, const Batch& batch, const Start& start,
                Method method, const Limits& limits, Solved& solved)
        : start_(start),
          method_(method),
          limits_(limits),
          solved_(solved),
          vertices_(oracle, aligned, batch, CAPACITY) {
        make_room(CAPACITY);
    }

    // Solves instance b. Where it runs out of slots it goes on with twice as many; the next
    // instance begins with as few as the first, so that no instance notices the others.
    void operator()(int64_t b) {
        const Span<double> u = solved_.marginals[b];
        if (slots_.size() > CAPACITY) {
            vertices_.grow(CAPACITY, {});
            make_room(CAPACITY);
        }
        vertices_.begin(b);
        Weighted point{slots_, weights_};
        const bool started = start_.offsets.size() > 0;
        int64_t position = started ? start_.offsets[b] : 0, iterations = 0;
        const int64_t end = started ? start_.offsets[b + 1] : 0;
        bool restarted = false;
        Outcome outcome;
        outcome.gap = 0.0;
        while (true) {
            if (point.n + end - position + 1 > slots_.size()) {
                grow(2 * std::max(slots_.size(), point.n + end - position), point);
            }
            for (; position < end; ++position) {
                if (vertices_.put(point.n, start_.parts[position], start_.extra_parts[position])) {
                    point.add(point.n, start_.weights[position]);
                }
            }
            if (point.n == 0) {
                u.fill(0.0);
                vertices_.argmax(u, 0);
                iterations = 1;
                if (vertices_.counts[0] < 0 || vertices_.theta()[0] == -INF) {
                    outcome.status = IMPOSSIBLE;
                    break;
                }
                point.add(0, 1.0);
            }
            outcome = run(point, u, limits_.max_iter - iterations);
            iterations += outcome.iterations;
            if (outcome.status == FULL) continue;
            if (outcome.gap <= limits_.tol) outcome.status = OPTIMAL;
            if (outcome.status != STALLED || restarted) break;
            restarted = true;  // rounding may have spoilt the factor: try once with a fresh one
        }
        solved_.gaps[b] = outcome.gap;
        solved_.iterations[b] = iterations;
        solved_.statuses[b] = outcome.status;
        solved_.offsets[b + 1] = point.n;
        keep(b, point);
    }

    // Copies the vertices of all instances that were solved here to their places.
    void write(Span<const int64_t> triangles) const {
        for (const Place& place : places_) {
            const int64_t first = solved_.offsets[place.instance];
            copy_rows(parts_, solved_.parts, place, first);
            copy_rows(extra_parts_, solved_.extra_parts, place, first);
            const auto from = weights_found_.begin() + place.first;
            std::copy(from, from + place.n, solved_.weights.begin() + first);
            const auto rows = factors_.begin() + place.factor;
            std::copy(rows, rows + place.factor_size,
                      solved_.factors.begin() + triangles[place.instance]);
        }
    }

  private:
    static constexpr int64_t CAPACITY = 32;  // vertices that there is room for at first

    // Where the vertices of an instance stand among all that were found here.
    struct Place {
        int64_t instance, first, n, factor, factor_size;
    };

    void make_room(int64_t capacity) {
        slots_ = Array<int64_t>(capacity);
        weights_ = Array<double>(capacity);
        active_set_.reset();
        frank_wolfe_.reset();
    }

    void grow(int64_t capacity, Weighted& point) {
        vertices_.grow(capacity, point.active());
        const Array<double> before = std::move(weights_);
        make_room(capacity);
        for (int64_t i = 0; i < point.n; ++i) {
            slots_[i] = i;
            weights_[i] = before[i];
        }
        point = {slots_, weights_, point.n};
    }

    Outcome run(Weighted& point, Span<double> u, int64_t max_iter) {
        if (method_ == Method::ARGMAX) {  // the first vertex is the optimum
            Array<double> products(point.n);
            vertices_.combine(point.active(), point.y(), u, products);
            return {0.0, 0.0, 0, OPTIMAL};
        }
        if (method_ == Method::ACTIVE_SET) {
            if (!active_set_) active_set_.emplace(slots_.size());
            const auto count = static_cast<double>(vertices_.counts[point.slots[0]]);
            const double c = std::max(1.0, count);
            return active_set_->solve(vertices_, point, u, c, limits_.stop, max_iter);
        }
        if (!frank_wolfe_) frank_wolfe_.emplace(slots_.size());
        const Step step = method_ == Method::VANILLA ? Step::VANILLA
                          : method_ == Method::AWAY  ? Step::AWAY
                                                     : Step::PAIRWISE;
        return frank_wolfe_->solve(vertices_, point, u, step, limits_.stop, max_iter);
    }

    void keep(int64_t b, const Weighted& point) {
        const auto factor = static_cast<int64_t>(factors_.size());
        for (int64_t i = 0; limits_.keeps_factors(method_) && i < point.n; ++i) {
            const Span<const double> row = active_set_->factor().row(i);
            factors_.insert(factors_.end(), row.begin(), row.end());
        }
        places_.push_back({b, static_cast<int64_t>(weights_found_.size()), point.n, factor,
                           static_cast<int64_t>(factors_.size()) - factor});
        for (int64_t i = 0; i < point.n; ++i) {
            const Parts parts = vertices_.parts[point.slots[i]];
            const Parts extra = vertices_.extra_parts[point.slots[i]];
            parts_.insert(parts_.end(), parts.begin(), parts.end());
            extra_parts_.insert(extra_parts_.end(), extra.begin(), extra.end());
            weights_found_.push_back(point.weights[i]);
        }
    }

    static void copy_rows(const std::vector<int32_t>& from, const Matrix<int32_t>& to,
                          const Place& place, int64_t first) {
        const auto begin = from.begin() + place.first * to.columns();
        std::copy(begin, begin + place.n * to.columns(),
                  to.slice(first, first + place.n).flat().begin());
    }

    const Start& start_;
    const Method method_;
    const Limits& limits_;
    Solved& solved_;
    Vertices vertices_;
    Array<int64_t> slots_;
    Array<double> weights_;
    std::optional<ActiveSet> active_set_;
    std::optional<FrankWolfe> frank_wolfe_;
    std::vector<Place> places_;
    std::vector<int32_t> parts_, extra_parts_;
    std::vector<double> weights_found_, factors_;
};

// Solves each instance. Rows of `start` are where it begins; none means at its argmax.
inline Solved solve_batch(const Argmax& oracle, bool aligned, const Batch& batch,
                          const Start& start, Method method, const Limits& limits, int64_t n_jobs) {
    const int64_t n = batch.size();
    Solved solved(n, batch.scores.columns());
    const auto workers = share_instances(n, oracle.concurrent() ? n_jobs : 1, [&] {
        return std::make_unique<BatchSolver>(oracle, aligned, batch, start, method, limits, solved);
    });
    for (int64_t b = 0; b < n; ++b) solved.offsets[b + 1] += solved.offsets[b];
    const int64_t n_vertices = solved.offsets[n];
    solved.parts = Table<int32_t>(n_vertices, batch.n_parts);
    solved.extra_parts = Table<int32_t>(n_vertices, batch.n_extra);
    solved.weights = Array<double>(n_vertices);
    const Array<int64_t> triangles = packed_offsets(solved.offsets);
    solved.factors = Array<double>(limits.keeps_factors(method) ? triangles[n] : 0);
    for (const auto& worker : workers) worker->write(triangles);
    return solved;
}

// The derivative of the marginals of each instance along [p; p_extra], added to zeros in out.
struct Moves {
    Span<const int64_t> offsets;
    Matrix<const int32_t> parts, extra_parts;
    Span<const double> factors;  // those of `Solved`, or none
    bool aligned;
    Matrix<const double> p, p_extra;
    Matrix<double> out, out_extra;
};

class Mover {
  public:
    explicit Mover(const Moves& moves)
        : moves_(moves),
          triangles_(packed_offsets(moves.offsets)),
          gram_(moves.aligned, moves.p.columns()),
          factor_(0) {}

    void operator()(int64_t b) {
        const int64_t first = moves_.offsets[b], end = moves_.offsets[b + 1];
        if (end - first > factor_.capacity()) {
            factor_ = Factor(end - first);
            row_ = Array<double>(end - first);
            theta_ = Array<double>(end - first);
        }
        const Span<const double> solved =
            moves_.factors.size() > 0 ? moves_.factors.slice(triangles_[b], triangles_[b + 1])
                                      : Span<const double>();
        derivative(moves_.parts.slice(first, end), moves_.extra_parts.slice(first, end), solved,
                   gram_, factor_, theta_, row_, moves_.p[b], moves_.p_extra[b], moves_.out[b],
                   moves_.out_extra[b]);
    }

  private:
    const Moves& moves_;
    const Array<int64_t> triangles_;
    Gram gram_;
    Factor factor_;
    Array<double> row_, theta_;
};

inline void apply_derivative(const Moves& moves, int64_t n_jobs) {
    share_instances(moves.p.rows(), n_jobs, [&] { return std::make_unique<Mover>(moves); });
}

}  // namespace didyma::polytope
