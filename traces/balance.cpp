// SPDX-License-Identifier: Apache-2.0
#include "traces/balance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

namespace dipsim {

namespace {

constexpr double kLeastGain = 1e-9;  // of the mean work squared: above rounding errors
constexpr double kRounding = 1e-9;   // of deviations
// Exchanges that are tried: hundreds of microbatches end long before, and for a hundred thousand
// it keeps the search to a second.
constexpr std::int64_t kMostTrials = 50'000'000;

/// In place of an item.
constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

/// Bins that are filled step by step.
class Bins {
 public:
  explicit Bins(const DealProblem& problem)
      : problem_(problem),
        load_(problem.bins * problem.kinds, 0.0),
        used_(problem.bins, Sizes{}),
        members_(problem.bins) {}

  Bins(const DealProblem& problem, const Deal& deal) : Bins(problem) {
    for (std::size_t item = 0; item < deal.size(); ++item) {
      add(item, deal[item]);
    }
  }

  void add(std::size_t item, std::size_t bin) {
    change(item, bin, 1.0);
    members_[bin].push_back(item);
  }

  void remove(std::size_t item, std::size_t bin) {
    change(item, bin, -1.0);
    members_[bin].erase(std::ranges::find(members_[bin], item));
  }

  [[nodiscard]] std::span<const std::size_t> members(std::size_t bin) const {
    return members_[bin];
  }

  [[nodiscard]] std::span<const double> load(std::size_t bin) const {
    return std::span(load_).subspan(bin * problem_.kinds, problem_.kinds);
  }

  [[nodiscard]] double work(std::size_t item, std::size_t kind) const {
    return item == kNothing ? 0.0 : problem_.work[item * problem_.kinds + kind];
  }

  /// Whether the bin stays within its limits with `in` and without `out`.
  [[nodiscard]] bool fits(std::size_t bin, std::size_t in, std::size_t out) const {
    for (std::size_t i = 0; i < problem_.limits.size(); ++i) {
      if (used_[bin][i] + size(in, i) - size(out, i) > problem_.limits[i]) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::size_t empty() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(members_, [](const auto& bin) { return bin.empty(); }));
  }

  [[nodiscard]] Deal deal() const {
    Deal out(problem_.items());
    for (std::size_t bin = 0; bin < members_.size(); ++bin) {
      for (const std::size_t item : members_[bin]) {
        out[item] = bin;
      }
    }
    return out;
  }

 private:
  [[nodiscard]] double size(std::size_t item, std::size_t i) const {
    return item == kNothing ? 0.0 : problem_.sizes[item][i];
  }

  void change(std::size_t item, std::size_t bin, double sign) {
    for (std::size_t kind = 0; kind < problem_.kinds; ++kind) {
      load_[bin * problem_.kinds + kind] += sign * work(item, kind);
    }
    for (std::size_t i = 0; i < problem_.limits.size(); ++i) {
      used_[bin][i] += sign * size(item, i);
    }
  }

  const DealProblem& problem_;
  std::vector<double> load_;
  std::vector<Sizes> used_;
  std::vector<std::vector<std::size_t>> members_;
};

/// The longest-processing-time rule; none where an item fits nowhere.
std::optional<Deal> heaviest_first(const DealProblem& problem) {
  Bins bins(problem);
  std::vector<double> total(problem.items(), 0.0);
  for (std::size_t i = 0; i < problem.work.size(); ++i) {
    total[i / problem.kinds] += problem.work[i];
  }
  std::vector<std::size_t> order(problem.items());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t item) { return total[item]; });
  for (const std::size_t item : order) {
    std::size_t best = kNothing;
    double least = 0.0;
    for (std::size_t bin = 0; bin < problem.bins; ++bin) {
      double added = 0.0;  // to Σ work², halved, but for what is the same in every bin
      for (std::size_t kind = 0; kind < problem.kinds; ++kind) {
        added += bins.work(item, kind) * bins.load(bin)[kind];
      }
      if ((best == kNothing || added < least) && bins.fits(bin, item, kNothing)) {
        best = bin;
        least = added;
      }
    }
    if (best == kNothing) {
      return std::nullopt;
    }
    bins.add(item, best);
  }
  return bins.deal();
}

/// Moves and swaps between two bins at a time.
class Exchanger {
 public:
  Exchanger(const DealProblem& problem, const Deal& start)
      : problem_(problem), bins_(problem, start) {
    std::vector<double> total(problem.kinds, 0.0);
    for (std::size_t i = 0; i < problem.work.size(); ++i) {
      total[i % problem.kinds] += problem.work[i];
    }
    for (const double work : total) {
      const double mean = work / static_cast<double>(problem.bins);
      least_gain_ += kLeastGain * mean * mean;
    }
  }

  Deal run() {
    bool improved = true;
    while (improved) {
      improved = false;
      // By distance, so that a search that is cut off has treated all bins alike.
      for (std::size_t distance = 1; distance < problem_.bins; ++distance) {
        for (std::size_t bin = 0; bin + distance < problem_.bins; ++bin) {
          while (trials_ < kMostTrials && exchange(bin, bin + distance)) {
            improved = true;
          }
        }
      }
    }
    return bins_.deal();
  }

 private:
  /// The items of a bin that may leave it, kNothing among them.
  [[nodiscard]] std::vector<std::size_t> candidates(std::size_t bin) const {
    std::vector<std::size_t> out(bins_.members(bin).begin(), bins_.members(bin).end());
    out.push_back(kNothing);
    return out;
  }

  /// Makes the best exchange between two bins, if one helps.
  bool exchange(std::size_t first, std::size_t second) {
    const std::vector<std::size_t> from_first = candidates(first);
    const std::vector<std::size_t> from_second = candidates(second);
    std::size_t best_a = kNothing;  // leaves the first bin
    std::size_t best_b = kNothing;  // leaves the second
    double most = least_gain_;
    for (const std::size_t a : from_first) {
      for (const std::size_t b : from_second) {
        const double gain = gain_of(a, b, first, second);
        if (gain > most && bins_.fits(first, b, a) && bins_.fits(second, a, b)) {
          best_a = a;
          best_b = b;
          most = gain;
        }
      }
    }
    trials_ += static_cast<std::int64_t>(from_first.size() * from_second.size());
    move(best_a, first, second);
    move(best_b, second, first);
    return best_a != kNothing || best_b != kNothing;
  }

  void move(std::size_t item, std::size_t from, std::size_t to) {
    if (item != kNothing) {
      bins_.remove(item, from);
      bins_.add(item, to);
    }
  }

  /// How much Σ work² falls, halved. Not above 0 for a move that empties its bin.
  [[nodiscard]] double gain_of(std::size_t a, std::size_t b, std::size_t first,
                               std::size_t second) const {
    double gain = 0.0;
    for (std::size_t kind = 0; kind < problem_.kinds; ++kind) {
      const double moved = bins_.work(a, kind) - bins_.work(b, kind);
      gain += moved * (bins_.load(first)[kind] - bins_.load(second)[kind] - moved);
    }
    return gain;
  }

  const DealProblem& problem_;
  Bins bins_;
  double least_gain_ = 0.0;
  std::int64_t trials_ = 0;
};

}  // namespace

Unevenness unevenness(const DealProblem& problem, const Deal& deal) {
  const Bins bins(problem, deal);
  const auto count = static_cast<double>(problem.bins);
  std::vector<double> mean(problem.kinds, 0.0);
  for (std::size_t i = 0; i < problem.work.size(); ++i) {
    mean[i % problem.kinds] += problem.work[i] / count;
  }
  double squares = 0.0;
  double peak = 0.0;
  for (std::size_t bin = 0; bin < problem.bins; ++bin) {
    const std::span<const double> load = bins.load(bin);
    for (std::size_t kind = 0; kind < problem.kinds; ++kind) {
      squares += (load[kind] - mean[kind]) * (load[kind] - mean[kind]);
    }
    peak = std::max(peak, std::accumulate(load.begin(), load.end(), 0.0));
  }
  const double all = std::accumulate(mean.begin(), mean.end(), 0.0);
  return all > 0.0 ? Unevenness{.deviation = std::sqrt(squares / count) / all, .peak = peak / all}
                   : Unevenness{};
}

Deal improve_deal(const DealProblem& problem, const Deal& start) {
  const std::optional<Deal> greedy = heaviest_first(problem);
  const bool better =
      greedy && Bins(problem, *greedy).empty() <= Bins(problem, start).empty() &&
      unevenness(problem, *greedy).deviation + kRounding < unevenness(problem, start).deviation;
  return Exchanger(problem, better ? *greedy : start).run();
}

}  // namespace dipsim
