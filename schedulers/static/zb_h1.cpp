// SPDX-License-Identifier: Apache-2.0
// ZB-H1: 1F1B whose weight gradients fill the bubble, at the memory of 1F1B.
#include "schedulers/static/static_planner.hpp"

namespace dipsim {

namespace {

// Zero Bubble (ICLR'24, arXiv 2401.10241) §2, in the form of its released schedule: step x of rank
// i is (F x, I x − (p − 1 − i), W x − (p − 1)), parts outside [0, m) left out. So p − 1 − i
// forwards come first, then i pairs (F, I), then the triples, then p − 1 − i pairs (I, W), then i
// times W. W of a microbatch comes p − 1 steps after its F, on every rank: p microbatches are held.
//
// With equal stages and m >= p every rank i idles i·F before its first pass, (p − 1 − i)·I before
// its first I, (p − 1 − i)·max(0, F − W) in its last pairs, and nowhere else. So the bubble is
// (p − 1)(F + I − min(F, I, W)), whatever the times.
std::vector<Step> steps(const PipelineShape& shape, int rank) {
  const int m = shape.microbatches;
  const int to_input = shape.ranks - 1 - rank;
  const int to_weight = shape.ranks - 1;
  std::vector<Step> steps;
  for (int x = 0; x < m + to_weight; ++x) {
    if (x < m) {
      steps.push_back({.op = Op::F, .microbatch = x});
    }
    if (x >= to_input && x - to_input < m) {
      steps.push_back({.op = Op::I, .microbatch = x - to_input});
    }
    if (x >= to_weight) {
      steps.push_back({.op = Op::W, .microbatch = x - to_weight});
    }
  }
  return steps;
}

constexpr StaticSchedule kSchedule{
    .name = "zb-h1", .split_backward = true, .rank_of = round_robin, .steps = steps};

}  // namespace

namespace schedules {

ScheduleInfo zb_h1() {
  return {
      .name = kSchedule.name,
      .summary = "1F1B with backward split: weight gradients fill the bubble; same pairs in flight",
      .source = "Zero Bubble Pipeline Parallelism (ICLR'24, arXiv 2401.10241) §2, ZB-H1",
      .split_backward = kSchedule.split_backward,
      .make = [](const PlannerOptions& options) {
        return make_static_planner(kSchedule, options);
      }};
}

}  // namespace schedules

}  // namespace dipsim
