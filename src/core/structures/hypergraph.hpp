// Dynamic programmes as hypergraphs: the best derivation, and sums over all derivations.
//
// Values stand in one array: the scores of the parts, the additional scores, a zero, and then one
// value for each vertex. An edge into a vertex is a pair of earlier values to be added; a vertex is
// the best (or the sum, in log space) of its edges. So a derivation of the goal adds up leaves.
#pragma once

#include <cmath>

#include "array.hpp"

namespace didyma::hypergraph {

// The vertices that an instance needs, first to goal.
struct Range {
    int64_t first, goal;
};

// A plan as integers: where the vertices stand in it; how many lengths there are along each axis;
// for each combination of lengths the first vertex that is needed and the goal; for each vertex
// where its edges begin; the edges.
class Plan {
  public:
    explicit Plan(Span<const int64_t> dims) : dims_(dims) {}

    Range range(Span<const int64_t> size) const {
        int64_t code = 0;
        for (int64_t axis = 0; axis < size.size(); ++axis) {
            code = code * dims_[1 + axis] + size[axis];
        }
        const int64_t place = 1 + size.size() + 2 * code;
        return {dims_[place], dims_[place + 1]};
    }
    // Where the edges of vertex v begin; those of v + 1 begin where they end.
    int64_t edges(int64_t v) const { return dims_[dims_[0] + v]; }
    // The slots whose values an edge adds.
    int64_t tail(int64_t edge, int64_t side) const { return dims_[edge + side]; }
    double total(Span<const double> values, int64_t edge) const {
        return values[dims_[edge]] + values[dims_[edge + 1]];
    }

  private:
    Span<const int64_t> dims_;
};

// Leaves are the first values; returns the slot of the first vertex.
inline int64_t read_leaves(Span<const double> scores, Span<const double> extra,
                           Span<double> values) {
    std::copy(scores.begin(), scores.end(), values.first(scores.size()).begin());
    std::copy(extra.begin(), extra.end(),
              values.slice(scores.size(), scores.size() + extra.size()).begin());
    values[scores.size() + extra.size()] = 0.0;
    return scores.size() + extra.size() + 1;
}

inline double highest_edge(const Plan& plan, Span<const double> values, int64_t begin,
                           int64_t end) {
    double best = -INF;
    for (int64_t edge = begin; edge < end; edge += 2) {
        const double total = plan.total(values, edge);
        best = total > best ? total : best;
    }
    return best;
}

// Values of the vertices up to the goal: the best derivation of each.
inline void maximise(const Plan& plan, Span<double> values, Range range, int64_t base) {
    for (int64_t slot = range.first; slot <= range.goal; ++slot) {
        values[slot] =
            highest_edge(plan, values, plan.edges(slot - base), plan.edges(slot - base + 1));
    }
}

// Probabilities of edges among those of their vertices: they sum to 1, however large the values
// are.
class Shares {
  public:
    explicit Shares(Span<const int64_t> dims) : shares_(dims.size() / 2 + 1) {}
    double& operator[](int64_t edge) const { return shares_[edge / 2]; }

  private:
    Array<double> shares_;
};

// Values of the vertices up to the goal, log Σ exp over the derivations of each, and what share of
// that each edge has.
inline void add_up(const Plan& plan, Span<double> values, const Shares& shares, Range range,
                   int64_t base) {
    for (int64_t slot = range.first; slot <= range.goal; ++slot) {
        const int64_t begin = plan.edges(slot - base), end = plan.edges(slot - base + 1);
        const double highest = highest_edge(plan, values, begin, end);
        values[slot] = highest;
        if (highest == -INF) {
            for (int64_t edge = begin; edge < end; edge += 2) shares[edge] = 0.0;
        } else if (end - begin == 2) {
            shares[begin] = 1.0;
        } else {
            double total = 0.0;
            for (int64_t edge = begin; edge < end; edge += 2) {
                shares[edge] = std::exp(plan.total(values, edge) - highest);
                total += shares[edge];
            }
            for (int64_t edge = begin; edge < end; edge += 2) shares[edge] /= total;
            values[slot] += std::log(total);
        }
    }
}

// Argmax of a plan: values upwards, then the edges that attain them downwards. Of equally good
// edges the first wins. Returns the number of parts, or -1 if there is no derivation.
inline int64_t best_derivation(Span<const double> scores, Span<const double> extra,
                               Span<const int64_t> dims, Span<const int64_t> size,
                               Span<double> work, Span<int64_t> index, Span<int32_t> parts,
                               Span<int32_t> extra_parts) {
    const Plan plan(dims);
    const int64_t base = read_leaves(scores, extra, work);
    const Range range = plan.range(size);
    maximise(plan, work, range, base);
    if (work[range.goal] == -INF) return -1;
    int64_t count = 0, n_extra = 0, depth = 1;
    index[0] = range.goal;
    while (depth > 0) {
        const int64_t slot = index[depth - 1];
        if (slot >= base) {
            int64_t edge = plan.edges(slot - base);
            while (plan.total(work, edge) < work[slot]) edge += 2;
            index[depth - 1] = plan.tail(edge, 1);
            index[depth++] = plan.tail(edge, 0);
            continue;
        }
        --depth;
        if (slot < scores.size()) {
            parts[count++] = static_cast<int32_t>(slot);
        } else if (slot < scores.size() + extra.size()) {
            extra_parts[n_extra++] = static_cast<int32_t>(slot - scores.size());
        }
    }
    parts.slice(count, parts.size()).fill(-1);
    extra_parts.slice(n_extra, extra_parts.size()).fill(-1);
    return count;
}

// A batch of instances of one plan; additional scores of one row are those of all instances.
struct Batch {
    Matrix<const double> scores, extra;
    Span<const int64_t> dims;
    Matrix<const int64_t> sizes;
    int64_t n_values;

    int64_t size() const { return scores.rows(); }
    Plan plan() const { return Plan(dims); }
    Span<const double> extra_of(int64_t b) const { return extra[extra.rows() > 1 ? b : 0]; }
};

// Sets what belongs to leaves and to the vertices of a range to zero.
inline void clear(Span<double> values, Range range, int64_t base) {
    values.first(base).fill(0.0);
    if (range.goal >= base) values.slice(range.first, range.goal + 1).fill(0.0);
}

// Splits values of leaves into those of parts and of additional ones.
inline void write_leaves(Span<const double> values, Span<double> parts, Span<double> extra) {
    const auto first = values.first(parts.size());
    std::copy(first.begin(), first.end(), parts.begin());
    const auto second = values.slice(parts.size(), parts.size() + extra.size());
    std::copy(second.begin(), second.end(), extra.begin());
}

// Log partitions and probabilities of all leaves; the first impossible instance, or -1. Downwards,
// a vertex shares its probability among its edges in proportion to what they add up to.
inline int64_t sums(const Batch& batch, Span<double> log_partition, Matrix<double> marginals,
                    Matrix<double> extra_marginals) {
    const Plan plan = batch.plan();
    const Shares shares(batch.dims);
    Array<double> values(batch.n_values), flow(batch.n_values);
    for (int64_t b = 0; b < batch.size(); ++b) {
        const int64_t base = read_leaves(batch.scores[b], batch.extra_of(b), values);
        const Range range = plan.range(batch.sizes[b]);
        add_up(plan, values, shares, range, base);
        log_partition[b] = values[range.goal];
        if (values[range.goal] == -INF) return b;
        clear(flow, range, base);
        flow[range.goal] = 1.0;
        for (int64_t slot = range.goal; slot >= range.first; --slot) {
            if (!(flow[slot] > 0.0)) continue;
            const int64_t end = plan.edges(slot - base + 1);
            for (int64_t edge = plan.edges(slot - base); edge < end; edge += 2) {
                const double share = flow[slot] * shares[edge];
                flow[plan.tail(edge, 0)] += share;
                flow[plan.tail(edge, 1)] += share;
            }
        }
        write_leaves(flow, marginals[b], extra_marginals[b]);
    }
    return -1;
}

// How the values of the vertices move as those of the leaves do.
inline void differentiate(const Plan& plan, const Shares& shares, Span<double> moves, Range range,
                          int64_t base) {
    for (int64_t slot = range.first; slot <= range.goal; ++slot) {
        double move = 0.0;
        const int64_t end = plan.edges(slot - base + 1);
        for (int64_t edge = plan.edges(slot - base); edge < end; edge += 2) {
            // What is impossible may move by anything.
            if (shares[edge] > 0.0) move += shares[edge] * plan.total(moves, edge);
        }
        moves[slot] = move;
    }
}

// How the probabilities of all leaves move as their scores move along p: every value of `sums` with
// its derivative beside it, up and then down.
inline void covariances(const Batch& batch, Matrix<const double> p, Matrix<const double> p_extra,
                        Matrix<double> q, Matrix<double> q_extra) {
    const Plan plan = batch.plan();
    const Shares shares(batch.dims);
    Array<double> values(batch.n_values), moves(batch.n_values);
    Array<double> flow(batch.n_values), change(batch.n_values);
    for (int64_t b = 0; b < batch.size(); ++b) {
        const int64_t base = read_leaves(batch.scores[b], batch.extra_of(b), values);
        read_leaves(p[b], p_extra[b], moves);
        const Range range = plan.range(batch.sizes[b]);
        add_up(plan, values, shares, range, base);
        differentiate(plan, shares, moves, range, base);
        clear(flow, range, base);
        clear(change, range, base);
        flow[range.goal] = 1.0;
        for (int64_t slot = range.goal; slot >= range.first; --slot) {
            if (!(flow[slot] > 0.0)) continue;
            const int64_t end = plan.edges(slot - base + 1);
            for (int64_t edge = plan.edges(slot - base); edge < end; edge += 2) {
                const double share = shares[edge];
                if (share == 0.0) continue;
                const double further = plan.total(moves, edge) - moves[slot];
                const double moved = share * (change[slot] + flow[slot] * further);
                for (int64_t side = 0; side < 2; ++side) {
                    flow[plan.tail(edge, side)] += flow[slot] * share;
                    change[plan.tail(edge, side)] += moved;
                }
            }
        }
        write_leaves(change, q[b], q_extra[b]);
    }
}

// How what `covariances` finds for p moves as scores move along r. Every value has its derivatives
// along p, along r, and along both beside it.
inline void third_cumulants(const Batch& batch, Matrix<const double> p,
                            Matrix<const double> p_extra, Matrix<const double> r,
                            Matrix<const double> r_extra, Matrix<double> t,
                            Matrix<double> t_extra) {
    const Plan plan = batch.plan();
    const int64_t n = batch.n_values;
    const Shares shares(batch.dims);
    Array<double> values(n), flow(n), along_p(n), along_r(n), along_both(n);
    Array<double> change_p(n), change_r(n), change_both(n);
    for (int64_t b = 0; b < batch.size(); ++b) {
        const int64_t base = read_leaves(batch.scores[b], batch.extra_of(b), values);
        read_leaves(p[b], p_extra[b], along_p);
        read_leaves(r[b], r_extra[b], along_r);
        const Range range = plan.range(batch.sizes[b]);
        add_up(plan, values, shares, range, base);
        differentiate(plan, shares, along_p, range, base);
        differentiate(plan, shares, along_r, range, base);
        for (auto* array : {&along_both, &flow, &change_p, &change_r, &change_both}) {
            clear(*array, range, base);
        }
        for (int64_t slot = range.first; slot <= range.goal; ++slot) {
            double both = 0.0;
            const int64_t end = plan.edges(slot - base + 1);
            for (int64_t edge = plan.edges(slot - base); edge < end; edge += 2) {
                if (shares[edge] == 0.0) continue;
                const double further_p = plan.total(along_p, edge) - along_p[slot];
                const double further_r = plan.total(along_r, edge) - along_r[slot];
                const double moved = plan.total(along_both, edge) + further_p * further_r;
                both += shares[edge] * moved;
            }
            along_both[slot] = both;
        }
        flow[range.goal] = 1.0;
        for (int64_t slot = range.goal; slot >= range.first; --slot) {
            if (!(flow[slot] > 0.0)) continue;
            const int64_t end = plan.edges(slot - base + 1);
            for (int64_t edge = plan.edges(slot - base); edge < end; edge += 2) {
                const double share = shares[edge];
                if (share == 0.0) continue;
                const double further_p = plan.total(along_p, edge) - along_p[slot];
                const double further_r = plan.total(along_r, edge) - along_r[slot];
                const double further = plan.total(along_both, edge) - along_both[slot];
                const double moved_p = share * (change_p[slot] + flow[slot] * further_p);
                const double moved_r = share * (change_r[slot] + flow[slot] * further_r);
                double moved = share * (change_both[slot] + change_p[slot] * further_r);
                moved += moved_r * further_p + share * flow[slot] * further;
                for (int64_t side = 0; side < 2; ++side) {
                    const int64_t tail = plan.tail(edge, side);
                    flow[tail] += flow[slot] * share;
                    change_p[tail] += moved_p;
                    change_r[tail] += moved_r;
                    change_both[tail] += moved;
                }
            }
        }
        write_leaves(change_both, t[b], t_extra[b]);
    }
}

// Values of all vertices, at the leaves' values as they are.
inline void longest(Span<double> values, Span<const int64_t> dims, int64_t base) {
    maximise(Plan(dims), values, {base, values.size() - 1}, base);
}

// Marks the values that some derivation of the goal reads.
inline void reach(Span<const int64_t> dims, Span<const int64_t> size, int64_t base,
                  Span<bool> reached) {
    const Plan plan(dims);
    const Range range = plan.range(size);
    Array<double> values(reached.size(), 0.0);
    maximise(plan, values, range, base);  // what has no derivation is impossible
    reached[range.goal] = values[range.goal] == 0.0;
    for (int64_t slot = range.goal; slot >= range.first; --slot) {
        if (!reached[slot]) continue;
        const int64_t end = plan.edges(slot - base + 1);
        for (int64_t edge = plan.edges(slot - base); edge < end; edge += 2) {
            if (plan.total(values, edge) == 0.0) {
                reached[plan.tail(edge, 0)] = true;
                reached[plan.tail(edge, 1)] = true;
            }
        }
    }
}

}  // namespace didyma::hypergraph
