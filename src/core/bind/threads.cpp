#include "threads.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace didyma {
namespace {

// The calls of one parallel_for.
struct Job {
    const std::function<void(int64_t)>* task;
    int64_t n;
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable ended;
    int64_t n_ended = 0;
    std::exception_ptr error;

    void work() {
        for (int64_t i = next++; i < n; i = next++) {
            std::exception_ptr thrown;
            try {
                (*task)(i);
            } catch (...) {
                thrown = std::current_exception();
            }
            std::lock_guard<std::mutex> lock(mutex);
            if (thrown && !error) error = thrown;
            if (++n_ended == n) ended.notify_one();
        }
    }

    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        ended.wait(lock, [this] { return n_ended == n; });
    }
};

class Pool {
  public:
    // Lets `helpers` threads work on a job, once they are free.
    void offer(const std::shared_ptr<Job>& job, int64_t helpers) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (; n_threads_ < helpers; ++n_threads_) std::thread([this] { run(); }).detach();
        jobs_.insert(jobs_.end(), helpers, job);
        helpers == 1 ? offered_.notify_one() : offered_.notify_all();
    }

  private:
    void run() {
        while (true) {
            std::shared_ptr<Job> job;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                offered_.wait(lock, [this] { return !jobs_.empty(); });
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            job->work();
        }
    }

    std::mutex mutex_;
    std::condition_variable offered_;
    std::deque<std::shared_ptr<Job>> jobs_;
    int64_t n_threads_ = 0;
};

// Never destroyed: its threads may outlive the interpreter. A forked child has none of them, so it
// begins with a pool of its own.
std::atomic<Pool*> pool{nullptr};

Pool& the_pool() {
    static std::once_flag once;
    std::call_once(once, [] {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
#endif
        pool = new Pool;
    });
    return *pool;
}

}  // namespace

void parallel_for(int64_t n, int64_t threads, const std::function<void(int64_t)>& task) {
    if (n <= 1 || threads <= 1) {
        for (int64_t i = 0; i < n; ++i) task(i);
        return;
    }
    auto job = std::make_shared<Job>();
    job->task = &task;
    job->n = n;
    the_pool().offer(job, std::min(threads, n) - 1);
    job->work();
    job->wait();
    if (job->error) std::rethrow_exception(job->error);
}

}  // namespace didyma
