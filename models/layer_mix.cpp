// SPDX-License-Identifier: Apache-2.0
#include "models/layer_mix.hpp"

#include "sim/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dipsim {

namespace {

/// By time, then by bytes saved, then by bytes rebuilt.
bool faster(const Recompute& a, const Recompute& b) {
  if (a.seconds != b.seconds) {
    return a.seconds < b.seconds;
  }
  return a.saved != b.saved ? a.saved > b.saved : a.rebuilt < b.rebuilt;
}

bool holds_less(const Recompute& a, const Recompute& b) {
  return a.saved != b.saved ? a.saved > b.saved : faster(a, b);
}

/// Every number of selective and full layers.
std::vector<Recompute> mixes_of(const LayerClass& layers) {
  const int most_full = layers.full.saved > 0 ? layers.layers : 0;
  std::vector<Recompute> mixes;
  const auto columns = static_cast<std::size_t>(layers.layers) + 1;
  mixes.reserve(most_full == 0 ? columns : columns * (columns + 1) / 2);
  for (int full = 0; full <= most_full; ++full) {
    const int most_selective = layers.selective.saved > 0 ? layers.layers - full : 0;
    for (int selective = 0; selective <= most_selective; ++selective) {
      mixes.push_back(repeated(layers.selective, selective) + repeated(layers.full, full));
    }
  }
  return mixes;
}

/// Leaves those that no other beats in both time and memory, fastest first.
void keep_front(std::vector<Recompute>& mixes) {
  std::ranges::sort(mixes, faster);
  std::size_t kept = 1;
  for (const Recompute& mix : mixes) {
    if (mix.saved > mixes[kept - 1].saved) {
      mixes[kept++] = mix;
    }
  }
  mixes.resize(kept);
}

std::vector<Recompute> sums(const std::vector<Recompute>& a, const std::vector<Recompute>& b) {
  std::vector<Recompute> all;
  all.reserve(a.size() * b.size());
  for (const Recompute& x : a) {
    for (const Recompute& y : b) {
      all.push_back(x + y);
    }
  }
  return all;
}

std::vector<Recompute> all_mixes(std::span<const LayerClass> classes) {
  std::vector<Recompute> mixes = mixes_of(classes.front());
  for (const LayerClass& next : classes.subspan(1)) {
    std::vector<Recompute> others = mixes_of(next);
    keep_front(mixes);
    keep_front(others);
    mixes = sums(mixes, others);
  }
  return mixes;
}

}  // namespace

Recompute repeated(const Recompute& layer, int layers) {
  return {.seconds = layers * layer.seconds,
          .saved = layers * layer.saved,
          .rebuilt = layers > 0 ? layer.rebuilt : 0};
}

Recompute operator+(const Recompute& a, const Recompute& b) {
  return {.seconds = a.seconds + b.seconds,
          .saved = a.saved + b.saved,
          .rebuilt = std::max(a.rebuilt, b.rebuilt)};
}

std::vector<Recompute> layer_mixes(std::span<const LayerClass> classes, int candidates) {
  DIPSIM_CHECK(candidates >= 2, "the fastest and the most saving mix are always candidates");
  std::vector<Recompute> chosen{{}};
  if (classes.empty()) {
    return chosen;
  }
  const std::vector<Recompute> mixes = all_mixes(classes);
  const Recompute least = *std::ranges::min_element(mixes, holds_less);
  if (least.saved == 0) {
    return chosen;
  }
  const auto buckets = static_cast<std::int64_t>(candidates - 2);
  std::vector<const Recompute*> best(static_cast<std::size_t>(buckets), nullptr);
  for (const Recompute& mix : mixes) {
    if (buckets > 0 && 0 < mix.saved && mix.saved < least.saved) {
      const std::int64_t held = least.saved - mix.saved;  // more than the least
      const Recompute*& known = best[static_cast<std::size_t>(held * buckets / least.saved)];
      known = known == nullptr || faster(mix, *known) ? &mix : known;
    }
  }
  for (const Recompute* mix : best) {
    if (mix != nullptr) {
      chosen.push_back(*mix);
    }
  }
  chosen.push_back(least);
  keep_front(chosen);
  return chosen;
}

}  // namespace dipsim
