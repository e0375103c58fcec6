// SPDX-License-Identifier: Apache-2.0
#include "schedulers/partition.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace dipsim {

namespace {

/// Ways to cut a chain into runs whose sums lie between two limits, none longer than it may be.
class Cuts {
 public:
  Cuts(std::span<const std::int64_t> weights, std::size_t parts, const RunEnds* ends)
      : sums_(weights.size() + 1, 0), reachable_(parts + 1), ends_(ends) {
    std::partial_sum(weights.begin(), weights.end(), sums_.begin() + 1);
  }

  /// Whether all items can be cut into all parts with every sum in [low, high]. Linear in
  /// items × parts: which ends a run may have is an interval that only moves forward.
  bool exist(std::int64_t low, std::int64_t high) {
    low_ = low;
    high_ = high;
    const std::size_t items = sums_.size() - 1;
    reachable_[0].assign(items + 1, false);
    reachable_[0][items] = true;
    std::vector<std::size_t> ends_before(items + 2);
    for (std::size_t part = 1; part < reachable_.size(); ++part) {
      const std::vector<bool>& rest = reachable_[part - 1];
      for (std::size_t j = 0; j <= items; ++j) {
        ends_before[j + 1] = ends_before[j] + (rest[j] ? 1U : 0U);
      }
      reachable_[part].assign(items + 1, false);
      std::size_t first = 0;
      std::size_t last = 0;
      for (std::size_t i = 0; i < items; ++i) {
        first = std::max(first, i + 1);
        while (first <= items && sums_[first] - sums_[i] < low) {
          ++first;
        }
        last = std::max(last, first);
        while (last <= items && sums_[last] - sums_[i] <= high) {
          ++last;
        }
        const std::size_t end = std::min(last, furthest(part, i) + 1);
        reachable_[part][i] = first < end && ends_before[end] > ends_before[first];
      }
    }
    return reachable_.back()[0];
  }

  /// After exist() was true: the cut with the fewest items first. The first end from which the rest
  /// can be cut lies no further than another one that is known to be allowed.
  [[nodiscard]] std::vector<int> smallest_first() const {
    std::vector<int> sizes;
    std::size_t begin = 0;
    for (std::size_t left = reachable_.size() - 1; left > 0; --left) {
      std::size_t end = begin + 1;
      while (!within(begin, end) || !reachable_[left - 1][end]) {
        ++end;
      }
      sizes.push_back(static_cast<int>(end - begin));
      begin = end;
    }
    return sizes;
  }

  [[nodiscard]] std::int64_t total() const { return sums_.back(); }

 private:
  /// Where the run that begins with this item, and has `left - 1` runs after it, must end.
  [[nodiscard]] std::size_t furthest(std::size_t left, std::size_t begin) const {
    return ends_ == nullptr ? sums_.size() - 1 : (*ends_)[reachable_.size() - 1 - left][begin];
  }

  [[nodiscard]] bool within(std::size_t begin, std::size_t end) const {
    const std::int64_t sum = sums_[end] - sums_[begin];
    return low_ <= sum && sum <= high_;
  }

  std::vector<std::int64_t> sums_;            ///< of the first i items
  std::vector<std::vector<bool>> reachable_;  ///< [parts left][first item left]
  const RunEnds* ends_ = nullptr;             ///< null: anywhere
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
};

/// Smallest value in [low, high] that holds; `holds` is monotone and true at high.
template <class Holds>
std::int64_t least(std::int64_t low, std::int64_t high, Holds holds) {
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

void require_items(std::size_t items, int parts) {
  if (parts < 1 || items < static_cast<std::size_t>(parts)) {
    fail_input("partition", fmt::format("{} layers can't make {} stages of at least one layer; "
                                        "allowed: 1 to {} stages (ranks × chunks per rank)",
                                        items, parts, items));
  }
}

/// The best of `cuts`; none where there is no cut at all.
std::optional<std::vector<int>> best_of(Cuts& cuts, int parts) {
  const std::int64_t total = cuts.total();
  if (!cuts.exist(0, total)) {
    return std::nullopt;
  }
  const std::int64_t high =
      least(total / parts, total, [&](std::int64_t limit) { return cuts.exist(0, limit); });
  // The largest smallest sum, by searching for how far it must lie below its upper bound.
  const std::int64_t bound = total / parts;
  const std::int64_t below =
      least(0, bound, [&](std::int64_t gap) { return cuts.exist(bound - gap, high); });
  DIPSIM_CHECK(cuts.exist(bound - below, high), "the partition that was found is gone");
  return cuts.smallest_first();
}

}  // namespace

int count_layers(const Problem& problem) {
  int layers = 0;
  for (const ModuleShape& module : problem.modules) {
    layers += module.layers;
  }
  return layers;
}

std::string_view name_of(PartitionRule rule) {
  constexpr std::array<std::string_view, 3> kNames = {"parameters", "time", "given"};
  return kNames[static_cast<std::size_t>(rule)];
}

std::vector<int> balanced_partition(std::span<const std::int64_t> weights, int parts) {
  require_items(weights.size(), parts);
  if (weights.size() == static_cast<std::size_t>(parts)) {
    return std::vector<int>(weights.size(), 1);  // the only way; the search below is quadratic
  }
  Cuts cuts(weights, static_cast<std::size_t>(parts), nullptr);
  const std::optional<std::vector<int>> best = best_of(cuts, parts);
  DIPSIM_CHECK(best.has_value(), "enough items can always be cut");
  return *best;
}

std::optional<std::vector<int>> balanced_partition(std::span<const std::int64_t> weights,
                                                   const RunEnds& ends) {
  const int parts = static_cast<int>(ends.size());
  require_items(weights.size(), parts);
  Cuts cuts(weights, ends.size(), &ends);
  return best_of(cuts, parts);
}

std::vector<std::int64_t> layer_times(const Lowering& lowering, const Batch& batch,
                                      RecomputeMode mode) {
  const Problem& problem = lowering.problem();
  std::vector<std::int64_t> times;
  for (std::size_t module = 0; module < problem.modules.size(); ++module) {
    for (int layer = 0; layer < problem.modules[module].layers; ++layer) {
      const LayerRange range{.module = ModuleId{module}, .first = layer, .count = 1};
      std::int64_t time = 0;
      for (std::size_t m = 0; m < batch.microbatches(); ++m) {
        const Work work{.replica = batch.replica[m], .portions = {{.microbatch = MicrobatchId{m}}}};
        const auto strategies = lowering.costs(std::span(&range, 1), work, batch);
        const Strategy& strategy = strategies[uniform_strategy(strategies, mode)];
        time += (strategy.f + strategy.b).count();
      }
      times.push_back(time);
    }
  }
  return times;
}

std::vector<std::int64_t> layer_parameters(const Problem& problem) {
  std::vector<std::int64_t> parameters;
  for (const ModuleShape& module : problem.modules) {
    for (const double count : module.layer_parameters) {
      parameters.push_back(std::llround(count));
    }
  }
  return parameters;
}

std::vector<std::vector<LayerRange>> stage_layers(const Problem& problem,
                                                  std::span<const int> counts, int stages) {
  const int layers = count_layers(problem);
  if (counts.size() != static_cast<std::size_t>(stages)) {
    fail_input("layers per stage", fmt::format("{} counts; allowed: {} (ranks × chunks per rank)",
                                               counts.size(), stages));
  }
  int sum = 0;
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    if (counts[stage] < 1 || counts[stage] > layers) {
      fail_input(fmt::format("layers per stage: stage {}", stage),
                 fmt::format("{} layers; allowed: 1 to {}", counts[stage], layers));
    }
    sum += counts[stage];
  }
  if (sum != layers) {
    fail_input("layers per stage",
               fmt::format("the counts add up to {}, but the model has {} layers: {} {}", sum,
                           layers, sum < layers ? "add" : "remove", std::abs(layers - sum)));
  }

  std::vector<std::vector<LayerRange>> ranges(counts.size());
  std::size_t module = 0;
  int next = 0;  // layer of that module
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    for (int left = counts[stage]; left > 0;) {
      const int available = problem.modules[module].layers - next;
      const int taken = std::min(left, available);
      if (taken > 0) {
        ranges[stage].push_back({.module = ModuleId{module}, .first = next, .count = taken});
      }
      left -= taken;
      next += taken;
      if (taken == available) {
        ++module;
        next = 0;
      }
    }
  }
  return ranges;
}

}  // namespace dipsim
