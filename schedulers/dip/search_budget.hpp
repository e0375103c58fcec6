// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace dipsim::dip {

/// What a search may spend: evaluations, which makes it reproducible, or time, which does not.
class SearchBudget {
 public:
  explicit SearchBudget(std::size_t evaluations) : evaluations_(evaluations) {}

  /// From now on.
  explicit SearchBudget(std::chrono::milliseconds time) : start_(Clock::now()), time_(time) {}

  /// Share that is used up after this many evaluations, 1 or more at the end.
  [[nodiscard]] double used(std::size_t evaluations) const {
    if (!time_) {
      return evaluations_ == 0
                 ? 1.0
                 : static_cast<double>(evaluations) / static_cast<double>(evaluations_);
    }
    const std::chrono::duration<double> passed = Clock::now() - start_;
    return time_->count() == 0 ? 1.0 : passed / std::chrono::duration<double>(*time_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::size_t evaluations_ = 0;
  Clock::time_point start_;
  std::optional<std::chrono::milliseconds> time_;
};

}  // namespace dipsim::dip
