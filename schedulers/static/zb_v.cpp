// SPDX-License-Identifier: Apache-2.0
// ZB-V: two chunks per rank, the second one on the way back, so that every rank is first and last.
#include "schedulers/static/arrival_order.hpp"
#include "schedulers/static/order_builder.hpp"
#include "schedulers/static/pipeline_memory.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// Chunk 0 flows from rank 0 to rank p − 1, chunk 1 back.
int there_and_back(const PipelineShape& shape, int stage) {
  return stage < shape.ranks ? stage : 2 * shape.ranks - 1 - stage;
}

/// Whether W's that end too late fill a wait that is longer than its rank can afford.
struct Switches {
  bool before_forwards = false;
  bool before_backwards = false;  ///< of chunk 1; before those of chunk 0 they always do
};

/// One candidate, after the authors' scheduler (sail-sg/zero-bubble-pipeline-parallelism,
/// scheduler/zbv.py), which knows equal stages and microbatches only; docs/baselines.md says what
/// is different here.
class Candidate {
 public:
  /// `allowed`: per rank the idle time that it may take in any case.
  Candidate(OrderBuilder& order, Switches switches, const std::vector<Duration>& allowed)
      : order_(order),
        switches_(switches),
        allowed_(allowed),
        ranks_(order.instance().shape.ranks),
        microbatches_(order.instance().shape.microbatches) {}

  void build() {
    first_microbatch();
    level();
    while (!complete()) {
      const bool backwards = add_backwards();
      const bool forwards = add_forwards();
      DIPSIM_CHECK(backwards || forwards, "ZB-V found no pass to run");
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      order_.place_weights(rank);
    }
  }

 private:
  [[nodiscard]] int back(int rank) const { return 2 * ranks_ - 1 - rank; }

  [[nodiscard]] bool can_forward(int stage) const {
    return order_.forward_arrival(stage) != OrderBuilder::kNever && order_.admits_forwards(stage);
  }

  [[nodiscard]] bool can_backward(int stage) const {
    return order_.backward_arrival(stage) != OrderBuilder::kNever && order_.admits_backward(stage);
  }

  /// The first microbatch to the end of the V. While it is away, ranks above start further ones, as
  /// long as each can still hold what its place in the V will need: 2(p − i) forwards at the first
  /// F of chunk 1 on rank i.
  void first_microbatch() {
    for (int rank = 0; rank < ranks_; ++rank) {
      place_forward(rank);
    }
    for (int rank = ranks_; rank-- > 0;) {
      while (order_.forwards(rank) <= 2 * (ranks_ - rank - 1) &&
             order_.forwards(rank) < microbatches_ && starts_in_time(rank)) {
        for (int above = 0; above <= rank; ++above) {
          place_forward(above);
        }
      }
      place_forward(back(rank));
    }
  }

  /// Whether rank and all above can run one more F of chunk 0 before F of chunk 1 comes.
  [[nodiscard]] bool starts_in_time(int rank) const {
    const Duration forward = order_.instance().cost(rank, order_.forwards(rank)).forward;
    if (order_.now(rank) + forward > order_.forward_arrival(back(rank))) {
      return false;
    }
    for (int above = 0; above <= rank; ++above) {
      if (!order_.admits_forwards(above)) {
        return false;
      }
    }
    return true;
  }

  /// Forwards of both chunks in turn until every rank has as many as the rank above it.
  void level() {
    int chunk = 0;
    for (int rank = 1; rank < ranks_; ++rank) {
      int refused = 0;
      while (behind(rank) && refused < 2) {
        bool placed = false;
        for (int below = ranks_; below-- > rank;) {
          const int stage = chunk == 0 ? below : back(below);
          if (can_forward(stage)) {
            place_forward(stage);
            placed = true;
          }
        }
        refused = placed ? 0 : refused + 1;
        chunk = 1 - chunk;
      }
    }
  }

  [[nodiscard]] bool behind(int rank) const {
    const auto both = [&](int r) { return order_.forwards(r) + order_.forwards(back(r)); };
    return both(rank) < both(rank - 1) ||
           (order_.forwards(back(rank)) <= order_.forwards(back(rank - 1)) &&
            order_.forwards(back(rank - 1)) < microbatches_);
  }

  [[nodiscard]] bool complete() const {
    for (int stage = 0; stage < 2 * ranks_; ++stage) {
      if (order_.forwards(stage) < microbatches_ || order_.backwards(stage) < microbatches_) {
        return false;
      }
    }
    return true;
  }

  /// One backward on every rank that has one: of chunk 0 bottom-up, then of chunk 1 top-down.
  bool add_backwards() {
    std::vector<std::uint8_t> ends(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      ends[static_cast<std::size_t>(rank)] = takes_chunk_0(rank) ? 1 : 0;
    }
    bool placed = false;
    for (int rank = ranks_; rank-- > 0;) {
      if (ends[static_cast<std::size_t>(rank)] != 0) {
        placed = place_backward(rank) || placed;
      }
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      if (ends[static_cast<std::size_t>(rank)] == 0) {
        placed = place_backward(back(rank)) || placed;
      }
    }
    return placed;
  }

  /// Whether a rank prefers the last leg, backward of chunk 0, to that of chunk 1.
  [[nodiscard]] bool takes_chunk_0(int rank) const {
    const int later = order_.backwards(back(rank));
    return order_.backwards(rank) < later &&
           (rank == ranks_ - 1 || later == microbatches_ ||
            order_.backward_arrival(rank) != OrderBuilder::kNever);
  }

  /// Whether the backward of a stage could be placed.
  bool place_backward(int stage) {
    if (!can_backward(stage)) {
      return false;
    }
    order_.make_room_for_backward(stage);
    fill(order_.instance().stage(stage).rank, order_.backward_arrival(stage),
         stage < ranks_ || switches_.before_backwards);
    order_.place_backward(stage);
    return true;
  }

  /// One forward on every rank that has one; of chunk 1 where it has come, else of chunk 0.
  bool add_forwards() {
    bool placed = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const int stage : {back(rank), rank}) {
        if (can_forward(stage)) {
          place_forward(stage);
          placed = true;
          break;
        }
      }
    }
    return placed;
  }

  void place_forward(int stage) {
    order_.make_room_for_forward(stage);
    fill(order_.instance().stage(stage).rank, order_.forward_arrival(stage),
         switches_.before_forwards);
    order_.place_forward(stage);
  }

  void fill(int rank, Duration arrival, bool long_waits) {
    const Duration affordable =
        std::max(order_.slack(rank), allowed_[static_cast<std::size_t>(rank)] - order_.idle(rank));
    order_.fill_wait(rank, arrival, long_waits ? affordable : OrderBuilder::kNever);
  }

  OrderBuilder& order_;
  Switches switches_;
  const std::vector<Duration>& allowed_;
  int ranks_;
  int microbatches_;
};

/// The idle time that each rank may take next: what it left to the rank that idled most.
std::vector<Duration> allowance_after(const OrderBuilder& order) {
  std::vector<Duration> allowed;
  allowed.reserve(static_cast<std::size_t>(order.instance().shape.ranks));
  for (int rank = 0; rank < order.instance().shape.ranks; ++rank) {
    allowed.push_back(order.slack(rank));
  }
  return allowed;
}

/// All settings of the switches, each again with the idle times of its last run as allowance while
/// that makes it shorter; and the orders of arrival_order.hpp.
std::vector<std::vector<Step>> search(const PipelineInstance& instance) {
  OrderBuilder order(instance, one_f_one_b_memory(instance, 1));
  ShortestOrder shortest;
  for (unsigned number = 0; number < 4; ++number) {
    const Switches switches{.before_forwards = (number & 1U) == 0,
                            .before_backwards = (number & 2U) == 0};
    std::vector<Duration> allowed(static_cast<std::size_t>(instance.shape.ranks), Duration{0});
    for (Duration last = OrderBuilder::kNever;;) {
      order.clear();
      Candidate(order, switches, allowed).build();
      shortest.offer(order);
      if (order.makespan() >= last) {
        break;
      }
      last = order.makespan();
      allowed = allowance_after(order);
    }
  }
  offer_arrival_orders(order, shortest);
  return std::move(shortest.steps);
}

constexpr StaticSchedule kSchedule{.name = "zb-v",
                                   .split_backward = true,
                                   .min_chunks = 2,
                                   .max_chunks = 2,
                                   .default_chunks = 2,
                                   .rank_of = there_and_back,
                                   .timed_steps = search};

}  // namespace

namespace schedules {

ScheduleInfo zb_v() {
  return {.name = kSchedule.name,
          .summary = "two chunks per rank in a V; F, I and W in greedy order at the memory of 1F1B",
          .source =
              "Pipeline Parallelism with Controllable Memory (arXiv 2405.15362) §3 and Zero Bubble "
              "(arXiv 2401.10241); the authors' scheduler/zbv.py",
          .split_backward = kSchedule.split_backward,
          .default_chunks = kSchedule.default_chunks,
          .make = [](const PlannerOptions& options) {
            return make_static_planner(kSchedule, options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
