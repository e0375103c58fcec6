// SPDX-License-Identifier: Apache-2.0
#include "sim/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dipsim {

namespace {

thread_local bool inside = false;

/// Sets `inside` to `now` while it lives.
class Inside {
 public:
  explicit Inside(bool now) : before_(inside) { inside = now; }

  ~Inside() { inside = before_; }

  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool before_;
};

}  // namespace

bool inside_parallel_for() { return inside; }

std::size_t hardware_jobs() { return std::max(1U, std::thread::hardware_concurrency()); }

std::size_t usable_jobs(std::size_t jobs) {
  return inside ? 1 : (jobs == 0 ? hardware_jobs() : jobs);
}

void parallel_for(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& body,
                  const std::stop_token& stop) {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> failed_at{count};
  std::exception_ptr failure;
  std::mutex failure_mutex;

  const bool nested = inside;
  const std::size_t threads = std::min(count, usable_jobs(jobs));
  const bool in_use = nested || jobs == 1 || threads > 1;
  const auto work = [&] {
    const Inside now(in_use);
    while (!stop.stop_requested()) {
      const std::size_t i = next.fetch_add(1);
      // Indices are handed out in order, so every index below the first failure is still run and
      // the failure that is reported does not depend on the number of threads.
      if (i >= count || i > failed_at.load()) {
        return;
      }
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (i < failed_at.load()) {
          failed_at = i;
          failure = std::current_exception();
        }
      }
    }
  };

  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < threads; ++t) {
      others.emplace_back(work);
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace dipsim
