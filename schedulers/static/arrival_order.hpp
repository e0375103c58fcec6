// SPDX-License-Identifier: Apache-2.0
// Orders that take passes as they can start: what schedules in rounds turn into where microbatches
// are unequal or memory is short.
#pragma once

#include "schedulers/static/order_builder.hpp"
#include "schedulers/static/shortest_order.hpp"

namespace dipsim {

/// Which of several passes that can start at the same time a rank takes.
struct ArrivalRules {
  bool alternate = true;         ///< the direction that is not the last one's; else backwards
  bool first_chunk_back = true;  ///< of several backwards that of the earliest chunk, else latest
  bool fill_small_gaps = false;  ///< W's fill waits that a rank can afford, too
};

/// Builds a whole order into an empty builder. Again and again the pass that can start first of all
/// that memory admits is placed; on one rank among equals by the rules, and of several forwards
/// that of the latest chunk; among ranks the lowest. W's fill waits that the rank can't afford.
void build_by_arrival(OrderBuilder& order, const ArrivalRules& rules);

/// Offers the orders of all rules that make a difference.
void offer_arrival_orders(OrderBuilder& order, ShortestOrder& shortest);

}  // namespace dipsim
