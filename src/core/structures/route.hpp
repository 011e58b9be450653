// Route: shortest paths between two nodes of any directed graph.
#pragma once

#include <algorithm>
#include <cmath>

#include "array.hpp"

namespace didyma {
namespace route {

constexpr int64_t NO_PATH = -1, NEGATIVE_CYCLE = -2;

// Arcs by the node that they leave: those of node i are offsets[i] to offsets[i + 1]. Several may
// have the score of one edge.
struct Graph {
    int64_t n_nodes, n_arcs;
    Span<const int64_t> offsets, tails, heads, edges;

    explicit Graph(Span<const int64_t> dims)
        : n_nodes(dims[0]),
          n_arcs(dims[1]),
          offsets(dims.slice(2, 3 + n_nodes)),
          tails(dims.slice(3 + n_nodes, 3 + n_nodes + n_arcs)),
          heads(dims.slice(3 + n_nodes + n_arcs, 3 + n_nodes + 2 * n_arcs)),
          edges(dims.slice(3 + n_nodes + 2 * n_arcs, 3 + n_nodes + 3 * n_arcs)) {}
};

// The distance of each node from the source, and the arc by which it is reached (-1: by none).
struct Distances {
    Span<double> length;
    Span<int64_t> arc;
};

// A binary heap of nodes with keys; equal keys come out by node. An outdated entry stays in it.
class Heap {
  public:
    Heap(Span<double> keys, Span<int64_t> nodes) : keys_(keys), nodes_(nodes) {}
    bool empty() const { return size_ == 0; }
    double key() const { return keys_[0]; }
    int64_t node() const { return nodes_[0]; }

    void push(double key, int64_t node) {
        int64_t child = size_++;
        while (child > 0) {
            const int64_t parent = (child - 1) / 2;
            if (!before(key, node, parent)) break;
            place(child, keys_[parent], nodes_[parent]);
            child = parent;
        }
        place(child, key, node);
    }
    void pop() {
        const double key = keys_[--size_];
        const int64_t node = nodes_[size_];
        int64_t parent = 0, child = 1;
        while (child < size_) {
            if (child + 1 < size_ && before(keys_[child + 1], nodes_[child + 1], child)) ++child;
            if (before(key, node, child)) break;
            place(parent, keys_[child], nodes_[child]);
            parent = child;
            child = 2 * child + 1;
        }
        place(parent, key, node);
    }

  private:
    bool before(double key, int64_t node, int64_t other) const {
        return key < keys_[other] || (key == keys_[other] && node < nodes_[other]);
    }
    void place(int64_t i, double key, int64_t node) {
        keys_[i] = key;
        nodes_[i] = node;
    }
    Span<double> keys_;
    Span<int64_t> nodes_;
    int64_t size_ = 0;
};

// Dijkstra's algorithm, for lengths from 0 up; each arc is looked at once, and adds one entry.
inline void dijkstra(const Graph& graph, Span<const double> scores, int64_t source, int64_t target,
                     Distances distances, Heap heap) {
    heap.push(0.0, source);
    while (!heap.empty() && heap.node() != target) {
        const int64_t node = heap.node();
        const double length = heap.key();
        heap.pop();
        if (length > distances.length[node]) continue;
        for (int64_t arc = graph.offsets[node]; arc < graph.offsets[node + 1]; ++arc) {
            const double through = length - scores[graph.edges[arc]];
            const int64_t head = graph.heads[arc];
            if (!(through < distances.length[head])) continue;
            distances.length[head] = through;
            distances.arc[head] = arc;
            heap.push(through, head);
        }
    }
}

// The algorithm of Bellman and Ford, for any lengths; false if a cycle that the source reaches has
// a negative one. What is less than `tolerance` shorter is rounding.
inline bool bellman_ford(const Graph& graph, Span<const double> scores, double tolerance,
                         Distances distances) {
    for (int64_t round = 0; round <= graph.n_nodes; ++round) {
        bool changed = false;
        for (int64_t arc = 0; arc < graph.n_arcs; ++arc) {
            const double through =
                distances.length[graph.tails[arc]] - scores[graph.edges[arc]] + tolerance;
            const int64_t head = graph.heads[arc];
            if (!(through < distances.length[head])) continue;
            distances.length[head] = through - tolerance;
            distances.arc[head] = arc;
            changed = true;
        }
        if (!changed) return true;
    }
    return false;
}

// Edges of the shortest path in the graph that `dims` are, in ascending order; scores are negative
// lengths, and -inf forbids an edge.
inline int64_t best_path(Span<const double> scores, Span<const int64_t> dims, int64_t source,
                         int64_t target, Span<int32_t> parts) {
    const Graph graph(dims);
    Array<double> work(graph.n_nodes + graph.n_arcs + 1);  // lengths, and keys of a heap
    Array<int64_t> index(work.size());                     // arcs, and its nodes
    const Distances distances{work.first(graph.n_nodes), index.first(graph.n_nodes)};
    distances.length.fill(INF);
    distances.arc.fill(-1);
    distances.length[source] = 0.0;
    double highest = 0.0, largest = 0.0;
    for (const double score : scores) {
        highest = std::max(highest, score);
        if (std::isfinite(score)) largest = std::max(largest, std::abs(score));
    }
    if (highest <= 0.0) {
        dijkstra(
            graph, scores, source, target, distances,
            Heap(work.slice(graph.n_nodes, work.size()), index.slice(graph.n_nodes, index.size())));
    } else if (!bellman_ford(graph, scores, 1e-12 * largest, distances)) {
        return NEGATIVE_CYCLE;
    }
    if (distances.length[target] == INF) return NO_PATH;
    int64_t count = 0;
    for (int64_t node = target; node != source; ++count) {
        if (count == graph.n_nodes) return NEGATIVE_CYCLE;
        const int64_t arc = distances.arc[node];
        parts[count] = static_cast<int32_t>(graph.edges[arc]);
        node = graph.tails[arc];
    }
    std::sort(parts.begin(), parts.begin() + count);
    parts.slice(count, parts.size()).fill(-1);
    return count;
}

}  // namespace route
}  // namespace didyma
