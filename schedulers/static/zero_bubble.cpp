// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/zero_bubble.hpp"

#include "schedulers/static/arrival_order.hpp"
#include "schedulers/static/pipeline_memory.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dipsim {

namespace {

/// One candidate. Stage and rank are the same number. Rules after the authors' scheduler
/// (sail-sg/zero-bubble-pipeline-parallelism, scheduler/zb.py), which knows equal microbatches
/// only; docs/baselines.md says what is different here.
class Candidate {
 public:
  Candidate(OrderBuilder& order, const ZeroBubbleSwitches& switches)
      : order_(order),
        switches_(switches),
        stages_(order.instance().stage_count()),
        microbatches_(order.instance().shape.microbatches),
        goal_(static_cast<std::size_t>(stages_), 0),
        wanted_(static_cast<std::size_t>(stages_), 0) {
    while (first_backward_ < stages_ && !has_backward(first_backward_)) {
      ++first_backward_;
    }
  }

  void build() {
    warm_up();
    for (int m = 1; m < microbatches_; ++m) {
      add_forwards();
      add_backwards(m);
    }
    for (int stage = 0; stage < stages_; ++stage) {
      order_.place_weights(stage);
    }
  }

 private:
  /// Forwards that a stage should have placed by now.
  int& goal(int stage) { return goal_[static_cast<std::size_t>(stage)]; }

  [[nodiscard]] bool has_backward(int stage) const {
    return order_.instance().stage(stage).has_backward;
  }

  [[nodiscard]] const PairCost& cost(int stage, int microbatch) const {
    return order_.instance().cost(stage, microbatch);
  }

  /// The first forward on every stage, more of them as memory and the time before the first
  /// gradient allow, and the first backward.
  void warm_up() {
    for (int stage = 0; stage < stages_; ++stage) {
      place_forward(stage);
    }
    std::vector<int> extra = extra_forwards();
    for (int stage = 1; stage < stages_; ++stage) {
      // Deeper stages have fewer, so that none waits for one that waits itself.
      int& own = extra[static_cast<std::size_t>(stage)];
      const int above = extra[static_cast<std::size_t>(stage) - 1];
      if (own < microbatches_ - 1) {
        own = std::min(own, std::max(above - 1, 0));
      }
      own = std::min(own, above);
    }
    for (int stage = 0; stage < stages_; ++stage) {
      goal(stage) = 1 + extra[static_cast<std::size_t>(stage)];
      while (order_.forwards(stage) < goal(stage)) {
        place_forward(stage);
      }
    }
    for (int stage = stages_; stage-- > 0;) {
      if (has_backward(stage)) {
        order_.make_room_for_backward(stage);
        order_.place_backward(stage);
      }
    }
  }

  /// Per stage, from the last one up.
  [[nodiscard]] std::vector<int> extra_forwards() const {
    std::vector<int> extra(static_cast<std::size_t>(stages_), 0);
    Duration gradient{0};  // arrives at the present stage
    bool last = true;
    for (int stage = stages_; stage-- > 0;) {
      Duration time = order_.now(stage);
      int& count = extra[static_cast<std::size_t>(stage)];
      while (!last && order_.admits_forwards(stage, count + 1)) {
        const Duration forward = cost(stage, 1 + count).forward;
        if (switches_.gap_before_first_backward ? time + forward > gradient : time >= gradient) {
          break;
        }
        time += forward;
        ++count;
      }
      if (has_backward(stage)) {
        const PairCost& first = cost(stage, 0);
        gradient = std::max(time, gradient) + first.backward + first.returned.occupied +
                   first.returned.latency;
        last = false;
      }
    }
    return extra;
  }

  /// One forward more on every stage; top-down.
  void add_forwards() {
    for (int stage = stages_; stage-- > 0;) {
      const auto row = static_cast<std::size_t>(stage);
      const bool below = stage + 1 == stages_ || wanted_[row + 1] != 0;
      wanted_[row] =
          below && order_.forwards(stage) < microbatches_ && !backward_goes_first(stage) ? 1 : 0;
    }
    for (int stage = 0; stage < stages_; ++stage) {
      if (wanted_[static_cast<std::size_t>(stage)] != 0) {
        goal(stage) = std::min(goal(stage) + 1, microbatches_);
      }
      // More than one where memory has held the stage back before.
      while (order_.forwards(stage) < goal(stage) &&
             order_.forward_arrival(stage) != OrderBuilder::kNever &&
             order_.admits_forwards(stage)) {
        place_forward(stage);
      }
    }
  }

  /// Whether the next forward of a stage would delay its next backward by more than it is worth.
  [[nodiscard]] bool backward_goes_first(int stage) const {
    const int below = stage + 1;
    if (!switches_.backward_first || below == stages_ ||
        order_.forwards(stage) < order_.forwards(below) + 2) {
      return false;
    }
    const PairCost& next_forward = cost(below, order_.forwards(below));
    const PairCost& next_backward = cost(below, order_.backwards(below));
    const Duration gradient = order_.now(below) + next_forward.forward + next_backward.backward +
                              next_backward.returned.occupied + next_backward.returned.latency;
    const Duration now = order_.now(stage);
    if (now >= gradient) {
      return true;
    }
    const Duration end =
        now + order_.weights_before_forward(stage) + cost(stage, order_.forwards(stage)).forward;
    return end > gradient && gradient - now <= order_.slack(stage);
  }

  /// The backward of a microbatch on every stage; bottom-up.
  void add_backwards(int microbatch) {
    for (int stage = stages_; stage-- > 0;) {
      DIPSIM_CHECK(order_.forwards(stage) > microbatch, "a stage has no forward to go back over");
      if (!has_backward(stage)) {
        continue;
      }
      order_.make_room_for_backward(stage);
      fill(stage, order_.backward_arrival(stage));
      if (stage == first_backward_ && order_.forwards(stage) == microbatches_) {
        order_.place_weights(stage);  // nothing waits for this backward
      }
      order_.place_backward(stage);
    }
  }

  void place_forward(int stage) {
    order_.make_room_for_forward(stage);
    if (stage > 0) {
      fill(stage, order_.forward_arrival(stage));
    }
    order_.place_forward(stage);
  }

  void fill(int rank, Duration arrival) {
    order_.fill_wait(rank, arrival, switches_.fill_small_gaps ? Duration{0} : order_.slack(rank));
  }

  OrderBuilder& order_;
  ZeroBubbleSwitches switches_;
  int stages_;
  int microbatches_;
  int first_backward_ = 0;  ///< the first stage that has one
  std::vector<int> goal_;
  std::vector<std::uint8_t> wanted_;  ///< per stage: a forward in this round
};

std::vector<std::vector<Step>> once(const PipelineInstance& instance) {
  return search_zero_bubble(instance, one_f_one_b_memory(instance, 1));
}

std::vector<std::vector<Step>> twice(const PipelineInstance& instance) {
  return search_zero_bubble(instance, one_f_one_b_memory(instance, 2));
}

constexpr StaticSchedule kOnce{
    .name = "zb-1p", .split_backward = true, .rank_of = round_robin, .timed_steps = once};
constexpr StaticSchedule kTwice{
    .name = "zb-2p", .split_backward = true, .rank_of = round_robin, .timed_steps = twice};

}  // namespace

void build_zero_bubble(OrderBuilder& order, const ZeroBubbleSwitches& switches) {
  Candidate(order, switches).build();
}

std::vector<std::vector<Step>> search_zero_bubble(const PipelineInstance& instance,
                                                  const std::vector<Bytes>& limits) {
  OrderBuilder order(instance, limits);
  ShortestOrder shortest;
  for (unsigned number = 0; number < 8; ++number) {
    order.clear();
    build_zero_bubble(order, {.gap_before_first_backward = (number & 4U) == 0,
                              .backward_first = (number & 2U) == 0,
                              .fill_small_gaps = (number & 1U) == 0});
    shortest.offer(order);
  }
  offer_arrival_orders(order, shortest);
  return std::move(shortest.steps);
}

namespace schedules {

ScheduleInfo zb_1p() {
  return {
      .name = kOnce.name,
      .summary = "shortest of 12 heuristic orders of F, I and W at the memory of 1F1B",
      .source =
          "Zero Bubble Pipeline Parallelism (ICLR'24, arXiv 2401.10241) §3.1; the authors' "
          "scheduler/zb.py",
      .split_backward = kOnce.split_backward,
      .alternatives = cuts_that_fit,
      .make = [](const PlannerOptions& options) { return make_static_planner(kOnce, options); }};
}

ScheduleInfo zb_2p() {
  return {
      .name = kTwice.name,
      .summary = "shortest of 12 heuristic orders of F, I and W at twice the memory of 1F1B",
      .source =
          "Zero Bubble Pipeline Parallelism (ICLR'24, arXiv 2401.10241) §3.1; the authors' "
          "scheduler/zb.py",
      .split_backward = kTwice.split_backward,
      .alternatives = cuts_that_fit,
      .make = [](const PlannerOptions& options) { return make_static_planner(kTwice, options); }};
}

}  // namespace schedules

}  // namespace dipsim
