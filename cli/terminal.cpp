// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include "cli/commands.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
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

bool ProgressLine::due() {
  constexpr std::chrono::seconds kSilence{2};
  constexpr std::chrono::milliseconds kPause{100};
  const auto now = steady_clock::now();
  if (!enabled_ || now - start_ < kSilence || now - last_ < kPause) {
    return false;
  }
  last_ = now;
  shown_ = true;
  return true;
}

void ProgressLine::update(std::size_t done, std::size_t total) {
  const std::lock_guard lock(mutex_);
  if (!counting_) {  // what came before the first one says nothing about the rate
    counting_ = steady_clock::now();
    before_ = done;
  }
  done_ = std::max(done_, done);  // reports of several threads may overtake one another
  if (!due()) {
    return;
  }
  const double seconds = std::chrono::duration<double>(last_ - *counting_).count();
  const double rate =
      seconds > 0.0 ? static_cast<double>(done_ - std::min(done_, before_)) / seconds : 0.0;
  const double left = rate > 0.0 ? static_cast<double>(total - std::min(done_, total)) / rate : 0.0;
  fmt::print(stderr, "\r\x1b[K{} {}/{}, {:.1f}/s, {:.0f} s left", what_, done_, total, rate, left);
  std::fflush(stderr);
}

void ProgressLine::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (due()) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
  }
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
