// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/group_sizes.hpp"

#include <algorithm>
#include <utility>

namespace dipsim {

namespace {

/// Searches depth first, module by module. What is chosen so far bounds the time from below: no
/// further module makes the longest way or the slowest stage shorter.
class SizeSearch {
 public:
  SizeSearch(const SizingProblem& problem,
             const std::function<bool(std::span<const std::size_t>)>& fits)
      : problem_(problem), fits_(fits), ends_(problem.options.size()) {
    // Fewest and most GPUs that the modules from this one on can take.
    least_.assign(problem.options.size() + 1, 0);
    for (std::size_t m = problem.options.size(); m-- > 0;) {
      int least = problem.gpus + 1;
      for (const GroupOption& option : problem.options[m]) {
        least = std::min(least, option.group.gpus());
      }
      least_[m] = least_[m + 1] + least;
    }
  }

  std::optional<std::vector<std::size_t>> run() {
    visit(0, 0, Duration{0}, Duration{0});
    return std::move(best_);
  }

 private:
  void visit(std::size_t module, int used, Duration longest, Duration slowest) {
    const Duration time = longest + (problem_.steps - 1) * slowest;
    if (best_ && time >= best_time_) {
      return;
    }
    if (module == problem_.options.size()) {
      if (used == problem_.gpus && (!fits_ || fits_(chosen_))) {
        best_ = chosen_;
        best_time_ = time;
      }
      return;
    }
    Duration begin{0};
    for (const ModuleId input : problem_.inputs[module]) {
      begin = std::max(begin, ends_[input.row()]);
    }
    const std::vector<GroupOption>& options = problem_.options[module];
    for (std::size_t row = 0; row < options.size(); ++row) {
      const int taken = used + options[row].group.gpus();
      if (taken + least_[module + 1] > problem_.gpus) {
        continue;
      }
      ends_[module] = begin + options[row].all;
      chosen_.push_back(row);
      visit(module + 1, taken, std::max(longest, ends_[module]),
            std::max(slowest, options[row].slowest));
      chosen_.pop_back();
    }
  }

  const SizingProblem& problem_;
  const std::function<bool(std::span<const std::size_t>)>& fits_;
  std::vector<Duration> ends_;  ///< per module, of the longest way up to its end
  std::vector<int> least_;
  std::vector<std::size_t> chosen_;
  std::optional<std::vector<std::size_t>> best_;
  Duration best_time_{0};
};

}  // namespace

Duration joined_time(const SizingProblem& problem, std::span<const std::size_t> chosen) {
  std::vector<Duration> ends(chosen.size());
  Duration longest{0};
  Duration slowest{0};
  for (std::size_t m = 0; m < chosen.size(); ++m) {
    const GroupOption& option = problem.options[m][chosen[m]];
    for (const ModuleId input : problem.inputs[m]) {
      ends[m] = std::max(ends[m], ends[input.row()]);
    }
    ends[m] += option.all;
    longest = std::max(longest, ends[m]);
    slowest = std::max(slowest, option.slowest);
  }
  return longest + (problem.steps - 1) * slowest;
}

std::optional<std::vector<std::size_t>> best_sizes(
    const SizingProblem& problem, const std::function<bool(std::span<const std::size_t>)>& fits) {
  return SizeSearch(problem, fits).run();
}

}  // namespace dipsim
