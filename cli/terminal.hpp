// SPDX-License-Identifier: Apache-2.0
// What the program does with the terminal: progress, Ctrl-C, messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace dipsim::cli {

/// A line on stderr, rewritten in place: "comparing 12/120, 35/s, 3 s left". Appears after two
/// seconds, only on a terminal, and is wiped at the end.
class ProgressLine {
 public:
  ProgressLine(std::string what, bool quiet);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Thread-safe.
  void update(std::size_t done, std::size_t total);

  /// Shows this text instead: what goes on while no total is known.
  void note(const std::string& text);

 private:
  /// Whether the line may be written now; holds back what comes too fast. Under the lock.
  bool due();

  std::string what_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
  std::optional<std::chrono::steady_clock::time_point> counting_;  ///< since the first update
  std::size_t before_ = 0;                                         ///< done at the first update
  std::size_t done_ = 0;                                           ///< the most that was reported
  std::mutex mutex_;
};

/// Turns the first Ctrl-C (or SIGTERM) into a stop request; a second one ends the program at once.
/// Create it before any other thread.
class InterruptWatch {
 public:
  InterruptWatch();

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

  [[nodiscard]] bool interrupted() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

/// Writes the answer of a command to stdout. Throws Environment when stdout can't take it.
void print_result(std::string_view text);

/// True once a command has given its answer: nothing else may follow it on stdout.
bool result_printed();

}  // namespace dipsim::cli
