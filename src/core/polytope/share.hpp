// Instances of a batch shared out among threads.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "array.hpp"
#include "threads.hpp"

namespace didyma::polytope {

constexpr double WORTH_SHARING = 200e-6;  // seconds of work that a second thread gains from

// Has each of n instances done by one of several workers: `make()` returns a pointer to one, and
// worker(b) does instance b. The caller's thread begins alone, and wakes others once the instances
// so far say that the rest is worth it; who does which is left to chance. Returns the workers.
template <class Make>
auto share_instances(int64_t n, int64_t n_jobs, Make make) {
    using Clock = std::chrono::steady_clock;
    std::vector<decltype(make())> workers;
    workers.push_back(make());
    if (n_jobs <= 1 || n <= 1) {
        for (int64_t b = 0; b < n; ++b) (*workers[0])(b);
        return workers;
    }
    std::atomic<int64_t> next{0};
    const auto begin = Clock::now();
    while (next < n) {
        (*workers[0])(next++);
        const std::chrono::duration<double> elapsed = Clock::now() - begin;
        const double left = static_cast<double>(n - next) / static_cast<double>(next);
        if (elapsed.count() * left >= WORTH_SHARING) break;
    }
    const int64_t threads = std::min(n_jobs, n - next);
    if (threads > 1) {
        workers.resize(threads);  // each thread makes its own, so that nobody waits for it
        parallel_for(threads, threads, [&](int64_t i) {
            if (!workers[i]) workers[i] = make();
            for (int64_t b = next++; b < n; b = next++) (*workers[i])(b);
        });
    } else if (threads == 1) {
        (*workers[0])(next);
    }
    return workers;
}

}  // namespace didyma::polytope
