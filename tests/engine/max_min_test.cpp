// SPDX-License-Identifier: Apache-2.0
// Fair shares against closed forms, against what defines them, and against plain water filling.
#include "sim/engine/max_min.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace dipsim {
namespace {

/// A flow by its full speed and the streams that it has on some resources.
struct Flow {
  std::int64_t speed = 0;
  std::vector<LinkUse> uses;
};

constexpr std::int32_t kOne = kStreamUnit;

FlowNetwork network_of(const std::vector<std::int64_t>& capacity, const std::vector<Flow>& flows) {
  FlowNetwork network;
  network.capacity = capacity;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    network.routes.add_row(flows[i].uses);
    network.route.push_back(static_cast<std::int32_t>(i));
    network.speed.push_back(flows[i].speed);
  }
  return network;
}

/// Rates of the flows after all changes so far.
struct Shares {
  FlowNetwork network;
  MaxMinShares shares;
  std::vector<double> rate;

  explicit Shares(FlowNetwork n)
      : network(std::move(n)), shares(network), rate(network.route.size(), 0.0) {}

  void settle() {
    shares.refill([&](TaskId flow, double r) { rate[flow.row()] = r; });
  }

  std::vector<double> with_all() {
    for (std::size_t i = 0; i < network.route.size(); ++i) {
      shares.start(TaskId(i));
    }
    settle();
    return rate;
  }
};

std::vector<double> rates(const std::vector<std::int64_t>& capacity,
                          const std::vector<Flow>& flows) {
  return Shares(network_of(capacity, flows)).with_all();
}

using Rates = std::vector<double>;

TEST_CASE("flows that find room go at full speed, to the last bit") {
  CHECK(rates({100}, {{100, {{0, kOne}}}}) == Rates{1.0});
  CHECK(rates({100}, {{60, {{0, kOne}}}, {40, {{0, kOne}}}}) == Rates{1.0, 1.0});
}

TEST_CASE("two flows on one link get half of it each") {
  CHECK(rates({100}, {{100, {{0, kOne}}}, {100, {{0, kOne}}}}) == Rates{0.5, 0.5});
}

TEST_CASE("what a slow flow leaves goes to the others") {
  // 20 to the first, 40 to each of the others.
  CHECK(rates({100}, {{20, {{0, kOne}}}, {80, {{0, kOne}}}, {100, {{0, kOne}}}}) ==
        Rates{1.0, 0.5, 0.4});
}

TEST_CASE("a flow of eight streams gets eight times the share of one of one stream") {
  // 9 streams: 10 each.
  CHECK(rates({90}, {{20, {{0, 8 * kOne}}}, {40, {{0, kOne}}}}) == Rates{0.5, 0.25});
}

TEST_CASE("a flow over two links is held by the fuller one, and the other link is filled") {
  // Link 0: A, B get 5 each. Link 1: B keeps 5, C gets 15.
  CHECK(rates({10, 20}, {{10, {{0, kOne}}}, {10, {{0, kOne}, {1, kOne}}}, {20, {{1, kOne}}}}) ==
        Rates{0.5, 0.5, 0.75});
}

TEST_CASE("a flow that ends gives its share back, to its neighbours and theirs") {
  Shares s(
      network_of({10, 10}, {{10, {{0, kOne}}}, {10, {{0, kOne}, {1, kOne}}}, {10, {{1, kOne}}}}));
  CHECK(s.with_all() == Rates{0.5, 0.5, 0.5});
  s.shares.finish(TaskId(0));
  s.settle();
  CHECK(s.rate[1] == 0.5);
  CHECK(s.rate[2] == 0.5);
  s.shares.finish(TaskId(1));
  s.settle();
  CHECK(s.rate[2] == 1.0);
}

TEST_CASE("what does not change is not told again") {
  Shares s(network_of({10, 10}, {{10, {{0, kOne}}}, {10, {{1, kOne}}}, {10, {{1, kOne}}}}));
  s.shares.start(TaskId(0));
  s.shares.start(TaskId(1));
  s.settle();
  s.shares.start(TaskId(2));
  std::set<std::int32_t> told;
  s.shares.refill([&](TaskId flow, double) { told.insert(flow.value); });
  CHECK(told == std::set<std::int32_t>{1, 2});
  CHECK_FALSE(s.shares.changed());
}

// Random networks.

struct Case {
  std::vector<std::int64_t> capacity;
  std::vector<Flow> flows;
};

/// Speeds never exceed what a route allows alone, as in a network that was built.
Case random_case() {
  Case out;
  const auto resources = *rc::gen::inRange<std::size_t>(1, 8);
  for (std::size_t r = 0; r < resources; ++r) {
    out.capacity.push_back(*rc::gen::inRange<std::int64_t>(1'000'000, 1'000'000'000));
  }
  const auto flows = *rc::gen::inRange<std::size_t>(1, 12);
  for (std::size_t f = 0; f < flows; ++f) {
    Flow flow{.speed = *rc::gen::inRange<std::int64_t>(100'000, 2'000'000'000), .uses = {}};
    for (std::size_t r = 0; r < resources; ++r) {
      if (*rc::gen::inRange(0, 3) == 0) {
        const auto streams = *rc::gen::element(kOne / 8, kOne / 2, kOne, kOne, 8 * kOne);
        flow.uses.push_back({static_cast<std::int32_t>(r), streams});
        flow.speed = std::min(flow.speed, out.capacity[r] * kOne / streams);
      }
    }
    out.flows.push_back(std::move(flow));
  }
  return out;
}

double streams_of(const LinkUse& use) { return static_cast<double>(use.streams) / kOne; }

/// Water filling in the plainest way: raise all speeds to the next event, again and again.
Rates water_filled(const Case& one, const std::vector<bool>& active) {
  const std::size_t n = one.flows.size();
  Rates speed(n, 0.0);
  std::vector<bool> rises = active;
  while (std::ranges::find(rises, true) != rises.end()) {
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < n; ++f) {
      if (rises[f]) {
        step = std::min(step, static_cast<double>(one.flows[f].speed) - speed[f]);
      }
    }
    std::vector<double> left(one.capacity.begin(), one.capacity.end());
    std::vector<double> wanted(one.capacity.size(), 0.0);
    for (std::size_t f = 0; f < n; ++f) {
      for (const LinkUse& use : one.flows[f].uses) {
        const auto r = static_cast<std::size_t>(use.resource);
        left[r] -= active[f] ? speed[f] * streams_of(use) : 0.0;
        wanted[r] += rises[f] ? streams_of(use) : 0.0;
      }
    }
    for (std::size_t r = 0; r < left.size(); ++r) {
      step = wanted[r] > 0.0 ? std::min(step, left[r] / wanted[r]) : step;
    }
    for (std::size_t f = 0; f < n; ++f) {
      speed[f] += rises[f] ? step : 0.0;
    }
    for (std::size_t f = 0; f < n; ++f) {
      bool full = speed[f] >= static_cast<double>(one.flows[f].speed) * (1.0 - 1e-12);
      for (const LinkUse& use : one.flows[f].uses) {
        const auto r = static_cast<std::size_t>(use.resource);
        full = full || left[r] - step * wanted[r] <= static_cast<double>(one.capacity[r]) * 1e-12;
      }
      rises[f] = rises[f] && !full;
    }
  }
  for (std::size_t f = 0; f < n; ++f) {
    speed[f] /= static_cast<double>(one.flows[f].speed);
  }
  return speed;
}

TEST_CASE("shares equal plain water filling after any flows have come and gone") {
  CHECK(rc::check("water filling", [] {
    const Case one = random_case();
    Shares s(network_of(one.capacity, one.flows));
    std::vector<bool> active(one.flows.size(), false);
    const auto changes = *rc::gen::inRange(1, 30);
    for (int change = 0; change < changes; ++change) {
      const auto f = *rc::gen::inRange<std::size_t>(0, one.flows.size());
      active[f] ? s.shares.finish(TaskId(f)) : s.shares.start(TaskId(f));
      active[f] = !active[f];
      s.settle();
    }
    const Rates expected = water_filled(one, active);
    for (std::size_t f = 0; f < one.flows.size(); ++f) {
      if (active[f]) {
        RC_ASSERT(std::abs(s.rate[f] - expected[f]) <= 1e-5 * expected[f]);
      }
    }
  }));
}

TEST_CASE(
    "no link carries more than it can, and each flow is at full speed or held by a full link") {
  CHECK(rc::check("max-min", [] {
    const Case one = random_case();
    const Rates rate = rates(one.capacity, one.flows);
    std::vector<double> load(one.capacity.size(), 0.0);
    std::vector<double> fastest(one.capacity.size(), 0.0);
    const auto speed = [&](std::size_t f) {
      return rate[f] * static_cast<double>(one.flows[f].speed);
    };
    for (std::size_t f = 0; f < one.flows.size(); ++f) {
      for (const LinkUse& use : one.flows[f].uses) {
        const auto r = static_cast<std::size_t>(use.resource);
        load[r] += speed(f) * streams_of(use);
        fastest[r] = std::max(fastest[r], speed(f));
      }
    }
    for (std::size_t r = 0; r < load.size(); ++r) {
      RC_ASSERT(load[r] <= static_cast<double>(one.capacity[r]) * (1.0 + 1e-6) + 100.0);
    }
    for (std::size_t f = 0; f < one.flows.size(); ++f) {
      RC_ASSERT(rate[f] > 0.0);
      RC_ASSERT(rate[f] <= 1.0);
      const bool held = std::ranges::any_of(one.flows[f].uses, [&](const LinkUse& use) {
        const auto r = static_cast<std::size_t>(use.resource);
        return load[r] >= static_cast<double>(one.capacity[r]) * (1.0 - 1e-4) &&
               speed(f) >= fastest[r] * (1.0 - 1e-6);
      });
      RC_ASSERT(rate[f] == 1.0 || held);
    }
  }));
}

TEST_CASE("numbering flows and links differently changes no bit of a rate") {
  CHECK(rc::check("renumbered", [] {
    const Case one = random_case();
    const std::size_t n = one.flows.size();
    const std::size_t m = one.capacity.size();
    Case other{.capacity = {one.capacity.rbegin(), one.capacity.rend()},
               .flows = {one.flows.rbegin(), one.flows.rend()}};
    for (Flow& flow : other.flows) {
      for (LinkUse& use : flow.uses) {
        use.resource = static_cast<std::int32_t>(m) - 1 - use.resource;
      }
    }
    const Rates a = rates(one.capacity, one.flows);
    const Rates b = rates(other.capacity, other.flows);
    for (std::size_t f = 0; f < n; ++f) {
      RC_ASSERT(a[f] == b[n - 1 - f]);
    }
  }));
}

}  // namespace
}  // namespace dipsim
