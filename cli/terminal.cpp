// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include "cli/commands.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include <unistd.h>

namespace dipsim::cli {

using std::chrono::steady_clock;

ProgressLine::ProgressLine(std::string what, bool quiet)
    : what_(std::move(what)),
      enabled_(!quiet && ::isatty(STDERR_FILENO) == 1),
      start_(steady_clock::now()),
      last_(start_) {}

ProgressLine::~ProgressLine() {
  if (shown_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

void ProgressLine::update(std::size_t done, std::size_t total) {
  constexpr std::chrono::seconds kSilence{2};
  constexpr std::chrono::milliseconds kPause{100};
  const std::lock_guard lock(mutex_);
  const auto now = steady_clock::now();
  if (!enabled_ || now - start_ < kSilence || now - last_ < kPause) {
    return;
  }
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double left = rate > 0.0 ? static_cast<double>(total - done) / rate : 0.0;
  fmt::print(stderr, "\r\x1b[K{} {}/{}, {:.1f}/s, {:.0f} s left", what_, done, total, rate, left);
  std::fflush(stderr);
}

namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

/// Waits for signals until it is told to end.
void watch(const std::stop_token& end, const std::stop_source& source) {
  const sigset_t set = ending_signals();
  constexpr timespec kPoll{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!end.stop_requested()) {
    if (::sigtimedwait(&set, nullptr, &kPoll) < 0) {
      continue;
    }
    if (!source.request_stop()) {
      ::_exit(kInterruptedExitCode);
    }
    fmt::print(stderr, "\ninterrupted: keeping what is finished (again: end at once)\n");
  }
}

}  // namespace

InterruptWatch::InterruptWatch() {
  const sigset_t set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set,
                    nullptr);  // threads made from now on leave them to the watcher
  watcher_ = std::jthread(watch, source_);
}

namespace {

std::atomic<bool> answered{false};

}  // namespace

void print_result(std::string_view text) {
  answered = true;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail_environment("stdout", "can't be written");
  }
}

bool result_printed() { return answered; }

}  // namespace dipsim::cli
