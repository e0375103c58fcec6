// SPDX-License-Identifier: Apache-2.0
#include "models/layer_mix.hpp"

#include "sim/core/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// Every way to give each single layer a mode, by counting in base 3.
std::vector<Recompute> every_assignment(const std::vector<LayerClass>& classes) {
  std::vector<Recompute> all{{}};
  for (const LayerClass& layers : classes) {
    for (int layer = 0; layer < layers.layers; ++layer) {
      std::vector<Recompute> longer;
      for (const Recompute& mix : all) {
        longer.push_back(mix);
        longer.push_back(mix + layers.selective);
        longer.push_back(mix + layers.full);
      }
      all = std::move(longer);
    }
  }
  return all;
}

/// Whole seconds, so that sums are exact in any order.
std::vector<LayerClass> random_classes(RandomStream& random) {
  std::vector<LayerClass> classes(static_cast<std::size_t>(random.integer(1, 3)));
  for (LayerClass& layers : classes) {
    layers.layers = static_cast<int>(random.integer(1, 7 / static_cast<int>(classes.size())));
    const auto way = [&] {
      const std::int64_t saved = random.integer(0, 20);
      return Recompute{.seconds = static_cast<double>(random.integer(1, 30)),
                       .saved = saved,
                       .rebuilt = saved + random.integer(0, 5)};
    };
    layers.selective = way();
    layers.full = way();
  }
  return classes;
}

/// Least time of a mix that saves at least so much.
double fastest(std::span<const Recompute> mixes, double saved) {
  double best = std::numeric_limits<double>::infinity();
  for (const Recompute& mix : mixes) {
    if (static_cast<double>(mix.saved) >= saved) {
      best = std::min(best, mix.seconds);
    }
  }
  return best;
}

}  // namespace

TEST_CASE("layer mixes: within each bucket of memory nothing is faster") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "layer mixes");
    const std::vector<LayerClass> classes = random_classes(random);
    const auto candidates = static_cast<int>(random.integer(2, 12));
    const std::vector<Recompute> mixes = layer_mixes(classes, candidates);
    const std::vector<Recompute> all = every_assignment(classes);
    const Recompute most = *std::ranges::max_element(all, {}, &Recompute::saved);

    REQUIRE(static_cast<int>(mixes.size()) <= candidates);
    CHECK(mixes.front() == Recompute{});
    for (std::size_t i = 0; i < mixes.size(); ++i) {
      CHECK(std::ranges::find(all, mixes[i]) != all.end());
      if (i > 0) {
        CHECK(mixes[i].seconds > mixes[i - 1].seconds);
        CHECK(mixes[i].saved > mixes[i - 1].saved);
      }
    }
    // Nothing is faster within the memory below the upper edge of a bucket.
    const auto saved = static_cast<double>(most.saved);
    for (int bucket = 0; bucket < candidates - 2; ++bucket) {
      const double edge = saved - (bucket + 1) * saved / (candidates - 2) + 1e-6;
      CHECK(fastest(mixes, edge) == fastest(all, edge));
    }
    CHECK(fastest(mixes, saved) == fastest(all, saved));
  }
}

TEST_CASE("layer mixes: eight equal layers that can only recompute in full make nine mixes") {
  const LayerClass layers{
      .layers = 8, .selective = {}, .full = {.seconds = 2.0, .saved = 5, .rebuilt = 7}};
  const std::vector<Recompute> mixes = layer_mixes(std::span(&layers, 1), 10);
  REQUIRE(mixes.size() == 9);
  for (std::int64_t full = 0; full <= 8; ++full) {
    CHECK(mixes[static_cast<std::size_t>(full)] ==
          Recompute{.seconds = 2.0 * static_cast<double>(full),
                    .saved = 5 * full,
                    .rebuilt = full == 0 ? 0 : 7});
  }
}

TEST_CASE("layer mixes: of what layers bring back only the largest counts") {
  const std::vector<LayerClass> classes = {
      {.layers = 3, .selective = {}, .full = {.seconds = 1.0, .saved = 4, .rebuilt = 6}},
      {.layers = 2, .selective = {}, .full = {.seconds = 9.0, .saved = 4, .rebuilt = 11}}};
  const std::vector<Recompute> mixes = layer_mixes(classes, 20);
  REQUIRE(mixes.size() == 6);
  CHECK(mixes[3] == Recompute{.seconds = 3.0, .saved = 12, .rebuilt = 6});
  CHECK(mixes[4] == Recompute{.seconds = 12.0, .saved = 16, .rebuilt = 11});
}

TEST_CASE("layer mixes: where nothing can be saved, nothing recomputes") {
  const LayerClass layers{.layers = 4, .selective = {}, .full = {}};
  CHECK(layer_mixes(std::span(&layers, 1), 10) == std::vector<Recompute>{{}});
  CHECK(layer_mixes({}, 10) == std::vector<Recompute>{{}});
}

}  // namespace dipsim
