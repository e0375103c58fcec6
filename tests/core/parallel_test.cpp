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

}  // namespace
}  // namespace dipsim
