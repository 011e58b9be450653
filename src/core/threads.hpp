// One pool of threads for all kernels: they wait inside the core, and no Python runs on them.
#pragma once

#include <cstdint>
#include <functional>

namespace didyma {

// Calls task(i) for every i below n, on `threads` threads at most, of which the caller's is one.
// Returns when all have ended; rethrows what the first failing task threw. Which thread runs which
// task is left to chance, so a task must write to places of its own.
void parallel_for(std::int64_t n, std::int64_t threads,
                  const std::function<void(std::int64_t)>& task);

}  // namespace didyma
