// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/dynapipe_orders.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

using Point = std::array<double, std::tuple_size_v<MicrobatchTimes>>;

Point point_of(const MicrobatchTimes& times) {
  Point point{};
  std::ranges::transform(times, point.begin(),
                         [](Duration time) { return static_cast<double>(time.count()); });
  return point;
}

double distance(const Point& a, const Point& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

std::size_t nearest(std::span<const Point> centres, const Point& point) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < centres.size(); ++c) {
    if (const double d = distance(centres[c], point); d < least) {
      least = d;
      best = c;
    }
  }
  return best;
}

std::vector<Point> first_centres(std::span<const MicrobatchTimes> times, std::size_t groups) {
  const auto total = [&](std::size_t m) {
    return std::accumulate(times[m].begin(), times[m].end(), Duration{0});
  };
  std::vector<std::size_t> by_time(times.size());
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  std::ranges::sort(by_time, {}, [&](std::size_t m) { return std::pair(total(m), m); });
  std::vector<Point> centres;
  centres.reserve(groups);
  for (std::size_t c = 0; c < groups; ++c) {
    centres.push_back(point_of(times[by_time[(2 * c + 1) * times.size() / (2 * groups)]]));
  }
  return centres;
}

/// Means of the members; a centre without members stays.
void move_centres(std::span<const Point> points, std::span<const std::size_t> centre_of,
                  std::span<Point> centres) {
  std::vector<Point> sums(centres.size(), Point{});
  std::vector<double> members(centres.size(), 0.0);
  for (std::size_t m = 0; m < points.size(); ++m) {
    members[centre_of[m]] += 1.0;
    for (std::size_t i = 0; i < points[m].size(); ++i) {
      sums[centre_of[m]][i] += points[m][i];
    }
  }
  for (std::size_t c = 0; c < centres.size(); ++c) {
    for (std::size_t i = 0; members[c] > 0.0 && i < centres[c].size(); ++i) {
      centres[c][i] = sums[c][i] / members[c];
    }
  }
}

/// All ways to put the groups one after the other.
void append_permutations(const std::vector<std::vector<int>>& groups,
                         std::vector<std::vector<int>>& orders) {
  std::vector<std::size_t> sequence(groups.size());
  std::iota(sequence.begin(), sequence.end(), std::size_t{0});
  do {
    std::vector<int> order;
    for (const std::size_t group : sequence) {
      order.insert(order.end(), groups[group].begin(), groups[group].end());
    }
    orders.push_back(std::move(order));
  } while (std::ranges::next_permutation(sequence).found);
}

}  // namespace

std::vector<std::vector<int>> group_microbatches(std::span<const MicrobatchTimes> times,
                                                 int groups) {
  std::vector<Point> points;
  for (const MicrobatchTimes& of_microbatch : times) {
    points.push_back(point_of(of_microbatch));
  }
  std::vector<Point> centres = first_centres(times, static_cast<std::size_t>(groups));
  std::vector<std::size_t> centre_of(points.size(), 0);
  constexpr int kMostRounds = 300;  // Lloyd's iteration ends; rounding might make it cycle
  for (int round = 0; round < kMostRounds; ++round) {
    bool moved = round == 0;
    for (std::size_t m = 0; m < points.size(); ++m) {
      const std::size_t centre = nearest(centres, points[m]);
      moved = moved || centre != centre_of[m];
      centre_of[m] = centre;
    }
    if (!moved) {
      break;
    }
    move_centres(points, centre_of, centres);
  }
  std::vector<std::vector<int>> found(centres.size());
  for (std::size_t m = 0; m < points.size(); ++m) {
    found[centre_of[m]].push_back(static_cast<int>(m));
  }
  std::erase_if(found, [](const std::vector<int>& group) { return group.empty(); });
  return found;
}

std::vector<std::vector<int>> microbatch_orders(const PipelineInstance& instance) {
  const int microbatches = instance.shape.microbatches;
  const int groups = microbatches > 20 ? 3 : 4;
  std::vector<int> given(static_cast<std::size_t>(microbatches));
  std::iota(given.begin(), given.end(), 0);
  std::vector<std::vector<int>> orders = {given};
  if (microbatches <= groups) {
    while (std::ranges::next_permutation(given).found) {
      orders.push_back(given);
    }
    return orders;
  }
  std::vector<MicrobatchTimes> times;
  for (const int m : given) {
    const PairCost& first = instance.cost(0, m);
    const PairCost& last = instance.cost(instance.stage_count() - 1, m);
    times.push_back({first.forward, last.forward, first.backward, last.backward});
  }
  append_permutations(group_microbatches(times, groups), orders);
  return orders;
}

}  // namespace dipsim
