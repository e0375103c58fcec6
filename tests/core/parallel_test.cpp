// SPDX-License-Identifier: Apache-2.0
#include "sim/core/parallel.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace dipsim {
namespace {

constexpr std::array<std::size_t, 5> kJobs = {0, 1, 2, 5, 64};

TEST_CASE("there is at least one hardware thread") { CHECK(hardware_jobs() >= 1); }

TEST_CASE("a parallel loop visits every index once, on any number of threads") {
  for (const std::size_t jobs : kJobs) {
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
      CAPTURE(jobs);
      CAPTURE(count);
      std::vector<std::atomic<int>> visits(count);
      parallel_for(count, jobs, [&](std::size_t i) { ++visits[i]; });
      bool once = true;
      for (const std::atomic<int>& each : visits) {
        once = once && each == 1;
      }
      CHECK(once);
    }
  }
}

TEST_CASE("one job runs in order on the calling thread") {
  std::vector<std::size_t> order;
  bool here = true;
  const auto caller = std::this_thread::get_id();
  parallel_for(50, 1, [&](std::size_t i) {
    order.push_back(i);
    here = here && std::this_thread::get_id() == caller;
  });
  std::vector<std::size_t> expected(50);
  std::iota(expected.begin(), expected.end(), std::size_t{0});
  CHECK(order == expected);
  CHECK(here);
}

TEST_CASE("two jobs run at the same time") {
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  parallel_for(2, 2, [&](std::size_t) {
    ++arrived;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
    if (arrived < 2) {
      met = false;
    }
  });
  CHECK(met);
}

TEST_CASE("the exception of the lowest failing index is rethrown, whatever the number of threads") {
  for (const std::size_t jobs : kJobs) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::atomic<int> below{0};
      std::string message;
      try {
        parallel_for(200, jobs, [&](std::size_t i) {
          if (i < 37) {
            ++below;
          }
          if (i == 37) {
            // Later failures come first.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          if (i >= 37 && i % 2 == 1) {
            throw std::runtime_error(std::to_string(i));
          }
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CAPTURE(jobs);
      CHECK(message == "37");
      CHECK(below == 37);
    }
  }
}

TEST_CASE("after a failure no further bodies are started") {
  int visits = 0;
  CHECK_THROWS_AS(parallel_for(1000, 1,
                               [&](std::size_t i) {
                                 ++visits;
                                 if (i == 3) {
                                   throw std::runtime_error("fourth");
                                 }
                               }),
                  std::runtime_error);
  CHECK(visits == 4);
}

TEST_CASE("exceptions that are no std::exception pass through") {
  bool caught = false;
  try {
    parallel_for(4, 2, [](std::size_t i) {
      if (i == 2) {
        throw 42;  // NOLINT(hicpp-exception-baseclass)
      }
    });
  } catch (int value) {
    caught = value == 42;
  }
  CHECK(caught);
}

TEST_CASE("after a failure no thread is left running") {
  std::atomic<int> inside{0};
  CHECK_THROWS_AS(parallel_for(8, 8,
                               [&](std::size_t i) {
                                 ++inside;
                                 if (i == 0) {
                                   --inside;
                                   throw std::runtime_error("first");
                                 }
                                 std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                 --inside;
                               }),
                  std::runtime_error);
  CHECK(inside == 0);
}

TEST_CASE("a requested stop starts no further bodies") {
  for (const std::size_t jobs : {std::size_t{1}, std::size_t{4}}) {
    CAPTURE(jobs);
    std::stop_source before;
    before.request_stop();
    std::atomic<int> visits{0};
    parallel_for(100, jobs, [&](std::size_t) { ++visits; }, before.get_token());
    CHECK(visits == 0);

    std::stop_source during;
    visits = 0;
    parallel_for(
        10'000, jobs,
        [&](std::size_t i) {
          ++visits;
          if (i == 10) {
            during.request_stop();
          }
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        },
        during.get_token());
    CHECK(visits >= 11);
    CHECK(visits < 10'000);
  }
}

TEST_CASE("parallel loops nest") {
  std::vector<std::atomic<int>> visits(30);
  parallel_for(5, 3, [&](std::size_t i) {
    parallel_for(6, 3, [&](std::size_t j) { ++visits[i * 6 + j]; });
  });
  bool once = true;
  for (const std::atomic<int>& each : visits) {
    once = once && each == 1;
  }
  CHECK(once);
}

/// Bodies at work now, and the most that ever were.
class Counter {
 public:
  void enter() {
    const int now = ++now_;
    int most = most_;
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
  }

  void leave() { --now_; }

  [[nodiscard]] int most() const { return most_; }

 private:
  std::atomic<int> now_{0};
  std::atomic<int> most_{0};
};

TEST_CASE("nested loops together run no more bodies at once than the outermost may") {
  for (const std::size_t jobs : {std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
    Counter counter;
    parallel_for(4, jobs, [&](std::size_t) {
      parallel_for(20, 0, [&](std::size_t) {
        counter.enter();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        counter.leave();
      });
    });
    CAPTURE(jobs);
    CHECK(counter.most() <= static_cast<int>(jobs));
  }
}

TEST_CASE("a loop inside a loop of one body has all threads") {
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  parallel_for(1, 3, [&](std::size_t) {
    parallel_for(3, 0, [&](std::size_t) {
      ++arrived;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (arrived < 3 && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::yield();
      }
      met = met && arrived >= 3;
    });
  });
  CHECK(met);
}

TEST_CASE("a loop in progress takes over the threads of bodies that have ended") {
  std::atomic<bool> begun{false};
  Counter counter;
  parallel_for(2, 2, [&](std::size_t i) {
    if (i == 0) {
      while (!begun) {
        std::this_thread::yield();
      }
      return;
    }
    std::atomic<bool> both{false};
    parallel_for(20'000, 0, [&](std::size_t) {
      counter.enter();
      begun = true;
      if (!both) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      both = both || counter.most() > 1;
      counter.leave();
    });
  });
  CHECK(counter.most() == 2);
}

TEST_CASE("a stop that was requested is thrown, one that was not is not") {
  std::stop_source source;
  CHECK_NOTHROW(throw_if_stopped(source.get_token()));
  CHECK_NOTHROW(throw_if_stopped({}));
  source.request_stop();
  CHECK_THROWS_AS(throw_if_stopped(source.get_token()), Stopped);
}

}  // namespace
}  // namespace dipsim
