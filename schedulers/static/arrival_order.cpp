// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/arrival_order.hpp"

#include "schedulers/static/pipeline_memory.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dipsim {

namespace {

/// The pass that a rank would take next.
struct Next {
  Duration start = OrderBuilder::kNever;
  int stage = -1;
  bool backward = false;
};

class ByArrival {
 public:
  ByArrival(OrderBuilder& order, const ArrivalRules& rules)
      : order_(order),
        rules_(rules),
        stages_(stages_of_ranks(order.instance())),
        next_(stages_.size()),
        went_back_(stages_.size(), 0) {}

  void build() {
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      look(static_cast<int>(rank));
    }
    while (true) {
      const auto first = std::ranges::min_element(next_, {}, &Next::start);
      if (first->stage < 0) {
        break;
      }
      place(static_cast<int>(first - next_.begin()), *first);
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      order_.place_weights(static_cast<int>(rank));
    }
    for (int stage = 0; stage < order_.instance().stage_count(); ++stage) {
      DIPSIM_CHECK(order_.backwards(stage) == order_.instance().shape.microbatches,
                   "no pass was admitted, though some are left");
    }
  }

 private:
  Next& next(int rank) { return next_[static_cast<std::size_t>(rank)]; }

  /// The earlier of two passes, the first where they start together.
  static void improve(Next& best, const Next& other) {
    if (other.start < best.start) {
      best = other;
    }
  }

  [[nodiscard]] Next forward_of(int rank, int stage) const {
    const Duration arrival = order_.forward_arrival(stage);
    if (arrival == OrderBuilder::kNever || !order_.admits_forwards(stage)) {
      return {};
    }
    return {.start = std::max(arrival, order_.now(rank)), .stage = stage, .backward = false};
  }

  [[nodiscard]] Next backward_of(int rank, int stage) const {
    const Duration arrival = order_.backward_arrival(stage);
    if (arrival == OrderBuilder::kNever || !order_.admits_backward(stage)) {
      return {};
    }
    return {.start = std::max(arrival, order_.now(rank)), .stage = stage, .backward = true};
  }

  /// Finds what a rank would take next.
  void look(int rank) {
    const std::vector<int>& stages = stages_[static_cast<std::size_t>(rank)];
    Next forward;
    Next backward;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const int from_last = stages[stages.size() - 1 - i];
      improve(forward, forward_of(rank, from_last));
      improve(backward, backward_of(rank, rules_.first_chunk_back ? stages[i] : from_last));
    }
    const bool prefers_backward =
        !rules_.alternate || went_back_[static_cast<std::size_t>(rank)] == 0;
    Next& best = next(rank);
    best = prefers_backward ? backward : forward;
    improve(best, prefers_backward ? forward : backward);
  }

  void place(int rank, const Next chosen) {
    const int stage = chosen.stage;
    const Duration affordable = rules_.fill_small_gaps ? Duration{0} : order_.slack(rank);
    int receiver = -1;
    if (chosen.backward) {
      order_.make_room_for_backward(stage);
      order_.fill_wait(rank, order_.backward_arrival(stage), affordable);
      order_.place_backward(stage);
      receiver = order_.gradient_to(stage);
    } else {
      order_.make_room_for_forward(stage);
      order_.fill_wait(rank, order_.forward_arrival(stage), affordable);
      order_.place_forward(stage);
      receiver = stage + 1 < order_.instance().stage_count() ? stage + 1 : -1;
    }
    went_back_[static_cast<std::size_t>(rank)] = chosen.backward ? 1 : 0;
    look(rank);
    if (receiver >= 0 && order_.instance().stage(receiver).rank != rank) {
      look(order_.instance().stage(receiver).rank);
    }
  }

  OrderBuilder& order_;
  ArrivalRules rules_;
  std::vector<std::vector<int>> stages_;  ///< per rank
  std::vector<Next> next_;                ///< per rank
  std::vector<std::uint8_t> went_back_;   ///< per rank: its last pass was a backward
};

}  // namespace

void build_by_arrival(OrderBuilder& order, const ArrivalRules& rules) {
  ByArrival(order, rules).build();
}

void offer_arrival_orders(OrderBuilder& order, ShortestOrder& shortest) {
  const unsigned settings = order.instance().shape.chunks == 1 ? 4 : 8;
  for (unsigned number = 0; number < settings; ++number) {
    order.clear();
    build_by_arrival(order, {.alternate = (number & 1U) == 0,
                             .first_chunk_back = (number & 4U) == 0,
                             .fill_small_gaps = (number & 2U) != 0});
    shortest.offer(order);
  }
}

}  // namespace dipsim
