// Single derivations of a hypergraph: samples, and the k best.
#pragma once

#include <vector>

#include "random.hpp"
#include "structures/hypergraph.hpp"

namespace didyma::hypergraph {

// One derivation for each row of `parts`, in proportion to exp(score); whether there is any. From
// the goal down, a vertex chooses one of its edges as it shares its probability in `sums`.
inline bool sample(Span<const double> scores, Span<const double> extra, Span<const int64_t> dims,
                   Span<const int64_t> size, int64_t n_values, Random random,
                   Matrix<int32_t> parts) {
    const Plan plan(dims);
    Array<double> values(n_values);
    Array<int64_t> stack(n_values);
    const int64_t base = read_leaves(scores, extra, values);
    const Range range = plan.range(size);
    const Shares shares(dims);
    add_up(plan, values, shares, range, base);
    if (values[range.goal] == -INF) return false;
    for (int64_t r = 0; r < parts.rows(); ++r) {
        int64_t count = 0, depth = 1;
        stack[0] = range.goal;
        while (depth > 0) {
            const int64_t slot = stack[depth - 1];
            if (slot >= base) {
                const int64_t begin = plan.edges(slot - base), end = plan.edges(slot - base + 1);
                int64_t chosen = begin;
                if (end - begin > 2) {
                    double left = random.uniform();
                    for (int64_t edge = begin; edge < end; edge += 2) {
                        if (shares[edge] > 0.0) {  // rounding may leave a rest: it goes to the last
                            chosen = edge;
                            left -= shares[edge];
                            if (left < 0.0) break;
                        }
                    }
                }
                stack[depth - 1] = plan.tail(chosen, 1);
                stack[depth++] = plan.tail(chosen, 0);
                continue;
            }
            --depth;
            if (slot < scores.size()) parts(r, count++) = static_cast<int32_t>(slot);
        }
    }
    return true;
}

// A derivation of a vertex: an edge, and the items of its two ends (0 for a leaf, or for the best
// one as long as nobody has asked for it). `next` links the candidates of a vertex, then its ranked
// items.
struct Item {
    double score;
    int64_t edge, ends[2], next;
};

// Lists of derivations that grow only where one is asked for (Huang & Chiang 2005, algorithm 3). A
// vertex has a list of candidates and, ranked, the items that were the best of these; the next best
// of item (l, r) are (l', r) and, where l is the first, (l, r').
class KBest {
  public:
    KBest(const Plan& plan, Span<const double> values, int64_t base)
        : plan_(plan), values_(values), base_(base), vertices_(values.size()) {
        items_.push_back({});  // number 0 is no item
        stack_.reserve(64);
    }

    // One more item of the goal; 0 if there is none.
    int64_t next(int64_t goal) {
        stack_.assign(1, goal);
        while (!stack_.empty()) {
            if (extend(stack_.back())) stack_.pop_back();
        }
        return vertex(goal).exhausted ? 0 : vertex(goal).last;
    }

    const Item& item(int64_t i) const { return items_[i]; }

  private:
    struct Vertex {
        int64_t candidates = 0, best = 0, last = 0;  // items; last is the worst that is ranked
        bool started = false, exhausted = false;
        bool followed = false;  // whether the next best of the last are candidates
    };

    Vertex& vertex(int64_t slot) {
        check_index(slot, static_cast<int64_t>(vertices_.size()));
        return vertices_[slot];
    }
    bool inner(int64_t slot) const { return slot >= base_; }
    double score(int64_t slot, int64_t i) const {
        return inner(slot) ? items_[i].score : values_[slot];
    }

    // Ranks one more item of a vertex, or notes that there is none; false if another vertex, now on
    // the stack, must do so first.
    bool extend(int64_t slot) {
        Vertex& v = vertex(slot);
        if (!v.started) start(slot);
        if (v.last > 0 && !v.followed && !follow(slot)) return false;
        const int64_t i = best_candidate(v.candidates);
        if (i == 0) {
            v.exhausted = true;
            return true;
        }
        for (int64_t side = 0; side < 2; ++side) {
            const int64_t tail = plan_.tail(items_[i].edge, side);
            if (!inner(tail) || items_[i].ends[side] != 0) continue;
            if (vertex(tail).best == 0) {
                stack_.push_back(tail);
                return false;
            }
            items_[i].ends[side] = vertex(tail).best;
        }
        unlink(v, i);
        if (v.last == 0) {
            v.best = i;
        } else {
            items_[v.last].next = i;
        }
        v.last = i;
        v.followed = false;
        return true;
    }

    // Every edge is a candidate, by its best derivation.
    void start(int64_t slot) {
        vertex(slot).started = true;
        const int64_t begin = plan_.edges(slot - base_);
        for (int64_t edge = plan_.edges(slot - base_ + 1) - 2; edge >= begin; edge -= 2) {
            const double total = plan_.total(values_, edge);
            if (total > -INF) link(vertex(slot), {total, edge, {0, 0}, 0});
        }
    }

    // Makes the next best of the last ranked item candidates; false if an end must be ranked first.
    bool follow(int64_t slot) {
        const Item last = items_[vertex(slot).last];
        const int64_t a = plan_.tail(last.edge, 0), b = plan_.tail(last.edge, 1);
        const int64_t left = last.ends[0], right = last.ends[1];
        if (inner(a) && left == vertex(a).last && !vertex(a).exhausted) {
            stack_.push_back(a);
            return false;
        }
        const bool leftmost = !inner(a) || left == vertex(a).best;
        if (inner(b) && leftmost && right == vertex(b).last && !vertex(b).exhausted) {
            stack_.push_back(b);
            return false;
        }
        vertex(slot).followed = true;
        if (inner(a) && items_[left].next > 0) {
            const int64_t other = items_[left].next;
            link(vertex(slot),
                 {items_[other].score + score(b, right), last.edge, {other, right}, 0});
        }
        if (inner(b) && leftmost && items_[right].next > 0) {
            const int64_t other = items_[right].next;
            link(vertex(slot), {score(a, left) + items_[other].score, last.edge, {left, other}, 0});
        }
        return true;
    }

    void link(Vertex& v, Item item) {
        item.next = v.candidates;
        v.candidates = static_cast<int64_t>(items_.size());
        items_.push_back(item);
    }

    void unlink(Vertex& v, int64_t i) {
        if (v.candidates == i) {
            v.candidates = items_[i].next;
        } else {
            int64_t before = v.candidates;
            while (items_[before].next != i) before = items_[before].next;
            items_[before].next = items_[i].next;
        }
        items_[i].next = 0;
    }

    // The best candidate of a list, the first of several; 0 if it is empty.
    int64_t best_candidate(int64_t i) const {
        int64_t chosen = 0;
        double highest = -INF;
        for (; i > 0; i = items_[i].next) {
            if (items_[i].score > highest) {
                chosen = i;
                highest = items_[i].score;
            }
        }
        return chosen;
    }

    const Plan& plan_;
    Span<const double> values_;
    int64_t base_;
    std::vector<Vertex> vertices_;
    std::vector<Item> items_;
    std::vector<int64_t> stack_;
};

// The best derivations, one for each row of `parts`, best first; how many there are.
inline int64_t k_best(Span<const double> scores, Span<const double> extra, Span<const int64_t> dims,
                      Span<const int64_t> size, int64_t n_values, Matrix<int32_t> parts,
                      Span<double> totals) {
    const Plan plan(dims);
    Array<double> values(n_values);
    const int64_t base = read_leaves(scores, extra, values);
    const Range range = plan.range(size);
    maximise(plan, values, range, base);
    if (values[range.goal] == -INF) return 0;
    if (range.goal < base) {
        totals[0] = values[range.goal];
        if (range.goal < scores.size()) parts(0, 0) = static_cast<int32_t>(range.goal);
        return 1;
    }
    KBest lists(plan, values, base);
    std::vector<int64_t> stack;
    for (int64_t r = 0; r < totals.size(); ++r) {
        const int64_t next = lists.next(range.goal);
        if (next == 0) return r;
        totals[r] = lists.item(next).score;
        int64_t count = 0;
        stack.assign(1, next);
        while (!stack.empty()) {
            const Item& item = lists.item(stack.back());
            stack.pop_back();
            for (int64_t side = 0; side < 2; ++side) {
                const int64_t slot = plan.tail(item.edge, side);
                if (slot >= base) {
                    stack.push_back(item.ends[side]);
                } else if (slot < scores.size()) {
                    parts(r, count++) = static_cast<int32_t>(slot);
                }
            }
        }
    }
    return totals.size();
}

}  // namespace didyma::hypergraph
