// SPDX-License-Identifier: Apache-2.0
#include "validate/measured_pipeline.hpp"

#include "experiment/schedule_choice.hpp"
#include "experiment/synthetic_plan.hpp"
#include "sim/core/error.hpp"
#include "sim/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace dipsim {

MeasuredPipeline::MeasuredPipeline(const SyntheticSpec& spec, const std::string& schedule)
    : plan_(synthetic_plan(spec, parse_schedule(schedule, "schedule"))) {}

double MeasuredPipeline::longest_rank_seconds(const PassGaps& gaps) const {
  TaskGraph graph = plan_.graph;
  const Duration exchange = round_to_duration(gaps.exchange, "gap");
  const Duration weight = round_to_duration(gaps.weight, "gap");
  for (Strategy& strategy : graph.strategies) {
    strategy.f += exchange;
    strategy.i += exchange;
    strategy.b += exchange;
    strategy.w += weight;
  }
  const Timeline timeline = simulate(graph, plan_.schedule);
  std::vector<std::optional<Span>> ranks(graph.placement.ranks.size());
  for (std::size_t task = 0; task < graph.tasks.size(); ++task) {
    if (!is_pass(graph.tasks[task].op)) {
      continue;
    }
    const Span& span = timeline.spans[task];
    std::optional<Span>& rank = ranks[graph.tasks[task].rank.row()];
    rank = rank ? Span{.start = std::min(rank->start, span.start),
                       .end = std::max(rank->end, span.end)}
                : span;
  }
  Duration longest{0};
  for (const std::optional<Span>& rank : ranks) {
    longest = std::max(longest, rank ? rank->end - rank->start : Duration{0});
  }
  return to_seconds(longest);
}

namespace {

/// Error of an iteration as a linear function: value + per_gap[0] · exchange + per_gap[1] · weight.
struct Linear {
  double value = 0.0;
  std::array<double, 2> per_gap{};
};

/// Relative error near these gaps, as a function of the gaps themselves.
Linear relative_error(const MeasuredIteration& iteration, const PassGaps& gaps) {
  constexpr double kStep = 1e-4;
  const MeasuredPipeline& pipeline = *iteration.pipeline;
  const double here = pipeline.longest_rank_seconds(gaps);
  const auto slope = [&](double exchange, double weight) {
    const PassGaps there{.exchange = gaps.exchange + exchange, .weight = gaps.weight + weight};
    return (pipeline.longest_rank_seconds(there) - here) / kStep / iteration.seconds;
  };
  const std::array<double, 2> per_gap = {slope(kStep, 0.0), slope(0.0, kStep)};
  return {.value = here / iteration.seconds - 1.0 - per_gap[0] * gaps.exchange -
                   per_gap[1] * gaps.weight,
          .per_gap = per_gap};
}

double squares(std::span<const Linear> errors, const PassGaps& gaps) {
  double sum = 0.0;
  for (const Linear& error : errors) {
    const double here =
        error.value + error.per_gap[0] * gaps.exchange + error.per_gap[1] * gaps.weight;
    sum += here * here;
  }
  return sum;
}

/// The least squares: inside, on an edge or at the corner of the quadrant.
PassGaps least_squares(std::span<const Linear> errors) {
  std::array<std::array<double, 2>, 2> a{};
  std::array<double, 2> b{};
  for (const Linear& error : errors) {
    for (std::size_t j = 0; j < 2; ++j) {
      b[j] -= error.value * error.per_gap[j];
      for (std::size_t k = 0; k < 2; ++k) {
        a[j][k] += error.per_gap[j] * error.per_gap[k];
      }
    }
  }
  const auto ratio = [](double up, double down) { return down > 0.0 ? up / down : 0.0; };
  const double determinant = a[0][0] * a[1][1] - a[0][1] * a[1][0];
  const PassGaps inside{.exchange = ratio(b[0] * a[1][1] - b[1] * a[0][1], determinant),
                        .weight = ratio(b[1] * a[0][0] - b[0] * a[1][0], determinant)};
  if (inside.exchange >= 0.0 && inside.weight >= 0.0) {
    return inside;
  }
  const std::array<PassGaps, 2> edges = {
      PassGaps{.exchange = std::max(0.0, ratio(b[0], a[0][0])), .weight = 0.0},
      PassGaps{.exchange = 0.0, .weight = std::max(0.0, ratio(b[1], a[1][1]))}};
  return squares(errors, edges[0]) <= squares(errors, edges[1]) ? edges[0] : edges[1];
}

}  // namespace

PassGaps fit_gaps(std::span<const MeasuredIteration> iterations) {
  constexpr int kRounds = 4;
  PassGaps gaps;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Linear> errors;
    for (const MeasuredIteration& iteration : iterations) {
      DIPSIM_CHECK(iteration.seconds > 0.0, "a measured iteration takes no time");
      errors.push_back(relative_error(iteration, gaps));
    }
    gaps = least_squares(errors);
  }
  return gaps;
}

}  // namespace dipsim
