// SPDX-License-Identifier: Apache-2.0
// Random memory choices of one rank, and what decides them by the definition.
#pragma once

#include "models/layer_mix.hpp"
#include "schedulers/dip/memory_problem.hpp"
#include "sim/core/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

namespace dipsim::test {

struct MemoryInstance {
  std::vector<dip::MemoryPair> pairs;
  std::vector<dip::PairOption> options;
  std::vector<dip::ByteCount> free;

  [[nodiscard]] dip::MemoryProblem problem() const {
    return {.pairs = pairs, .options = options, .free = free};
  }

  [[nodiscard]] std::span<const dip::PairOption> options_of(std::size_t pair) const {
    return std::span(options).subspan(pairs[pair].first_option, pairs[pair].option_count);
  }
};

/// Bytes that all pairs hold at each position, by the definition.
inline std::vector<dip::ByteCount> loads(const MemoryInstance& instance,
                                         std::span<const dip::Index> choice) {
  std::vector<dip::ByteCount> loads(instance.free.size(), 0);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const dip::PairPlace place = instance.pairs[i].place;
    const dip::PairOption& option = instance.options_of(i)[choice[i]];
    for (dip::Index p = place.first; p <= place.last; ++p) {
      loads[p] += p <= place.backward ? option.held : option.kept;
      loads[p] += p == place.backward ? option.rebuilt : 0;
    }
  }
  return loads;
}

inline bool choice_fits(const MemoryInstance& instance, std::span<const dip::Index> choice) {
  const std::vector<dip::ByteCount> used = loads(instance, choice);
  return std::ranges::equal(used, instance.free, std::less_equal{});
}

/// Per pair the option that holds least, the fastest of those.
inline std::vector<dip::Index> most_saving(const MemoryInstance& instance) {
  std::vector<dip::Index> choice;
  for (std::size_t i = 0; i < instance.pairs.size(); ++i) {
    const auto options = instance.options_of(i);
    const auto best = std::ranges::min_element(options, {}, [](const dip::PairOption& o) {
      return std::tuple(o.held, o.time(), o.rebuilt);
    });
    choice.push_back(static_cast<dip::Index>(best - options.begin()));
  }
  return choice;
}

inline std::vector<dip::Index> fastest(const MemoryInstance& instance) {
  std::vector<dip::Index> choice;
  for (std::size_t i = 0; i < instance.pairs.size(); ++i) {
    const auto options = instance.options_of(i);
    const auto best = std::ranges::min_element(options, {}, &dip::PairOption::time);
    choice.push_back(static_cast<dip::Index>(best - options.begin()));
  }
  return choice;
}

/// Gives every pair its positions in a random order of one rank: up to `in_flight` pairs between
/// forward and backward; with W, up to three of these wait. Returns the number of positions.
inline std::size_t place_pairs(std::vector<dip::MemoryPair>& pairs, std::int64_t in_flight,
                               bool with_weights, RandomStream& random) {
  std::vector<std::size_t> open;    // forward done
  std::vector<std::size_t> behind;  // backward done, W not
  dip::Index position = 0;
  std::size_t next = 0;
  const auto take = [&](std::vector<std::size_t>& from) {
    const auto last = static_cast<std::int64_t>(std::min<std::size_t>(from.size(), 3)) - 1;
    const std::int64_t place = random.integer(0, 3) == 0 ? random.integer(0, last) : 0;
    const std::size_t pair = from[static_cast<std::size_t>(place)];
    from.erase(from.begin() + place);
    return pair;
  };
  while (next < pairs.size() || !open.empty() || !behind.empty()) {
    const bool forward =
        next < pairs.size() &&
        (open.empty() || static_cast<std::int64_t>(open.size()) < random.integer(1, in_flight));
    if (!behind.empty() && (behind.size() > 3 || (open.empty() && !forward))) {
      pairs[take(behind)].place.last = position++;
    } else if (forward) {
      pairs[next].place.first = position++;
      open.push_back(next++);
    } else {
      const std::size_t pair = take(open);
      pairs[pair].place.backward = pairs[pair].place.last = position++;
      if (with_weights) {
        behind.push_back(pair);
      }
    }
  }
  return position;
}

/// Limits between the most saving choice (tightness 1: just fits) and the fastest one (0: fits).
inline void set_limits(MemoryInstance& instance, std::size_t positions, double tightness,
                       RandomStream& random) {
  instance.free.assign(positions, 0);
  const dip::ByteCount least = std::ranges::max(loads(instance, most_saving(instance)));
  const dip::ByteCount most = std::ranges::max(loads(instance, fastest(instance)));
  const auto room = static_cast<double>(std::max<dip::ByteCount>(most - least, 0));
  const dip::ByteCount limit = least + std::llround((1.0 - tightness) * room);
  for (dip::ByteCount& free : instance.free) {
    free = limit + (random.integer(0, 3) == 0 ? random.integer(0, 1 + least / 10) : 0);
  }
}

/// Any numbers: options in no order, that cost or hold whatever they like.
inline MemoryInstance arbitrary_instance(std::size_t pairs, std::int64_t most_options,
                                         RandomStream& random) {
  MemoryInstance instance;
  const bool with_weights = random.integer(0, 1) == 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    dip::MemoryPair pair{.place = {},
                         .first_option = static_cast<dip::Index>(instance.options.size())};
    pair.option_count = static_cast<dip::Index>(random.integer(1, most_options));
    for (dip::Index o = 0; o < pair.option_count; ++o) {
      instance.options.push_back({.forward = random.integer(1, 50),
                                  .backward = random.integer(1, 100),
                                  .held = random.integer(0, 40),
                                  .rebuilt = random.integer(0, 20),
                                  .kept = with_weights ? random.integer(0, 30) : 0});
    }
    instance.pairs.push_back(pair);
  }
  const std::size_t positions = place_pairs(instance.pairs, 6, with_weights, random);
  set_limits(instance, positions, random.uniform(), random);
  return instance;
}

/// Layer mixes of a vision and a language module: ten options per pair, times in nanoseconds and
/// bytes as on an 80 GB GPU.
inline MemoryInstance layered_instance(std::size_t pairs, bool with_weights, double tightness,
                                       RandomStream& random) {
  MemoryInstance instance;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool vision = i % 3 != 0;
    const double size = vision ? static_cast<double>(random.integer(2, 12)) / 8.0
                               : static_cast<double>(random.integer(90, 110)) / 100.0;
    const int layers = vision ? 6 : 10;
    const double forward = size * 4e-3;  // seconds of a layer
    const auto keep = static_cast<std::int64_t>(size * 6e8);
    const LayerClass cost{
        .layers = layers,
        .selective = {.seconds = 0.06 * forward,
                      .saved = keep * 45 / 100,
                      .rebuilt = keep * 45 / 100},
        .full = {.seconds = forward, .saved = keep * 94 / 100, .rebuilt = keep * 94 / 100}};
    dip::MemoryPair pair{.place = {},
                         .first_option = static_cast<dip::Index>(instance.options.size())};
    for (const Recompute& mix : layer_mixes(std::span(&cost, 1), 10)) {
      instance.options.push_back(
          {.forward = std::llround(1e9 * layers * forward),
           .backward = std::llround(1e9 * (2.0 * layers * forward + mix.seconds)),
           .held = layers * keep - mix.saved,
           .rebuilt = mix.rebuilt,
           .kept = with_weights ? layers * keep * 6 / 10 : 0});
      ++pair.option_count;
    }
    instance.pairs.push_back(pair);
  }
  const std::size_t positions =
      place_pairs(instance.pairs, random.integer(8, 30), with_weights, random);
  set_limits(instance, positions, tightness, random);
  return instance;
}

}  // namespace dipsim::test
