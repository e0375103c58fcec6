// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <stop_token>

namespace dipsim {

/// Number of hardware threads, at least 1.
std::size_t hardware_jobs();

/// Threads that a parallel_for with many bodies would run on here and now: `jobs`, 0: all; inside
/// another one at most this thread and those that nobody uses.
std::size_t usable_jobs(std::size_t jobs);

/// Calls body(i) once for every i in [0, count) on up to `jobs` threads (0: hardware_jobs()).
/// Loops nest: the outermost one and all inside it share its `jobs` threads, and a loop in progress
/// takes over threads that others have done with. The body writes its result by index, so the
/// outcome does not depend on `jobs`. When bodies throw, the exception of the lowest index is
/// rethrown after all threads have ended. A requested stop lets running bodies finish and starts no
/// further ones.
void parallel_for(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& body,
                  const std::stop_token& stop = {});

/// Thrown out of long computations where a stop is requested. Nothing is wrong, so it is no Error.
class Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped"; }
};

/// Throws Stopped where a stop is requested.
void throw_if_stopped(const std::stop_token& stop);

}  // namespace dipsim
