// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace dipsim {

/// Number of hardware threads, at least 1.
std::size_t hardware_jobs();

/// Whether this thread runs the body of a parallel_for with several threads or with jobs = 1: then
/// the threads are in use, or none but this one is wanted, and a parallel_for inside runs on this
/// one alone.
bool inside_parallel_for();

/// Threads that a parallel_for with many bodies runs on here: `jobs`, 0: all; 1 inside another one.
std::size_t usable_jobs(std::size_t jobs);

/// Calls body(i) once for every i in [0, count) on up to `jobs` threads (0: hardware_jobs()).
/// The body writes its result by index, so the outcome does not depend on `jobs`. When bodies
/// throw, the exception of the lowest index is rethrown after all threads have ended. A requested
/// stop lets running bodies finish and starts no further ones.
void parallel_for(std::size_t count, std::size_t jobs, const std::function<void(std::size_t)>& body,
                  const std::stop_token& stop = {});

}  // namespace dipsim
