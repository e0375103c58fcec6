// SPDX-License-Identifier: Apache-2.0
#include "sim/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// The threads that an outermost loop and all loops inside it share, beside the calling one. They
/// are started when they are first needed and wait for more until the outermost loop has ended:
/// inner loops may be as short as a millisecond.
class Crew {
 public:
  explicit Crew(std::size_t threads) : spare_(threads) {}

  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
  }

  /// Whether there was a thread that nobody used; whoever takes it gives it back.
  bool take() {
    std::size_t seen = spare_.load();
    while (seen > 0 && !spare_.compare_exchange_weak(seen, seen - 1)) {
    }
    return seen > 0;
  }

  void give() { ++spare_; }

  [[nodiscard]] std::size_t spare() const { return spare_.load(); }

  /// Runs the task on a thread that was taken. It must not throw, and says whether its thread is to
  /// be given back.
  void start(std::function<bool()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      if (idle_ < tasks_.size()) {
        threads_.emplace_back([this] { serve(); });
      }
    }
    wake_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    ++idle_;
    while (true) {
      wake_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) {
        return;
      }
      const std::function<bool()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      const bool done_with = task();
      lock.lock();
      ++idle_;  // before others may take it: else they would start one more
      if (done_with) {
        give();
      }
    }
  }

  std::atomic<std::size_t> spare_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<bool()>> tasks_;
  std::size_t idle_ = 0;
  bool closing_ = false;
  std::vector<std::jthread> threads_;  ///< ends first: it waits for them
};

/// Of the outermost loop around this thread; none outside of loops.
thread_local Crew* crew = nullptr;

/// Sets `crew` while it lives.
class Inside {
 public:
  explicit Inside(Crew& now) : before_(crew) { crew = &now; }

  ~Inside() { crew = before_; }

  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Crew* before_;
};

class Loop {
 public:
  Loop(std::size_t count, std::size_t most_threads, Crew& threads,
       const std::function<void(std::size_t)>& body, const std::stop_token& stop)
      : count_(count),
        most_threads_(most_threads),
        threads_(threads),
        body_(body),
        stop_(stop),
        failed_at_(count) {}

  void run() {
    while (grow()) {
    }
    work();
    // Of the threads that have done others may use all but the last, which the caller goes on with.
    if (--active_ > 0) {
      threads_.give();
    }
    join();
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  void work() {
    const Inside here(threads_);
    while (!stop_.stop_requested()) {
      const std::size_t i = next_.fetch_add(1);
      // Indices are handed out in order, so every index below the first failure is still run and
      // the failure that is reported does not depend on the number of threads.
      if (i >= count_ || i > failed_at_.load()) {
        return;
      }
      grow();
      try {
        body_(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (i < failed_at_.load()) {
          failed_at_ = i;
          failure_ = std::current_exception();
        }
      }
    }
  }

  /// One more thread where there is work left for it and a spare one; whether there was.
  bool grow() {
    if (threads_.spare() == 0 || next_.load() >= count_) {
      return false;
    }
    const std::lock_guard lock(mutex_);
    if (started_ >= std::min(count_, most_threads_) || !threads_.take()) {
      return false;
    }
    ++started_;
    ++active_;
    ++helpers_;
    threads_.start([this] {
      work();
      const bool others = --active_ > 0;
      const std::lock_guard done(mutex_);
      --helpers_;
      done_.notify_one();
      return others;
    });
    return true;
  }

  void join() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return helpers_ == 0; });
  }

  std::size_t count_;
  std::size_t most_threads_;
  Crew& threads_;
  const std::function<void(std::size_t)>& body_;
  const std::stop_token& stop_;
  std::atomic<std::size_t> next_{0};
  std::size_t started_ = 1;             ///< threads, the calling one among them
  std::size_t helpers_ = 0;             ///< other threads that have not returned
  std::atomic<std::size_t> active_{1};  ///< of these, that have not done
  std::atomic<std::size_t> failed_at_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable done_;
};

}  // namespace

std::size_t hardware_jobs() { return std::max(1U, std::thread::hardware_concurrency()); }

std::size_t usable_jobs(std::size_t jobs) {
  if (crew == nullptr) {
    return jobs == 0 ? hardware_jobs() : jobs;
  }
  const std::size_t here = 1 + crew->spare();
  return jobs == 0 ? here : std::min(jobs, here);
}

void parallel_for(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& body,
                  const std::stop_token& stop) {
  const std::size_t most = jobs == 0 ? std::max(count, hardware_jobs()) : jobs;
  if (crew != nullptr) {
    Loop(count, most, *crew, body, stop).run();
    return;
  }
  Crew threads((jobs == 0 ? hardware_jobs() : jobs) - 1);
  Loop(count, most, threads, body, stop).run();
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) {
    throw Stopped{};
  }
}

}  // namespace dipsim
