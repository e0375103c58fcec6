// SPDX-License-Identifier: Apache-2.0
// Improves the order of the passes of every rank, outside the space that priorities can express.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/pass_order.hpp"
#include "schedulers/dip/rearrange.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/random.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

namespace dipsim::dip {

struct RefineOptions {
  std::size_t steps = 1'000;  ///< moves looked at
  std::uint64_t seed = 1;
  std::stop_token stop{};  ///< where it is requested, refine() throws Stopped
};

/// Simulated annealing over pass orders at fixed strategies, in several rounds of cooling that each
/// start from the best order so far. A move takes one pass along its rank: most often a pass of a
/// longest path, to its neighbour's place or to an end of its block, the passes that follow each
/// other on the rank without idle time (only that can shorten the path: Grabowski et al. 1986;
/// Balas and Vazacopoulos 1998); at times any pass by a few places, since a gain often needs two
/// moves of which the first changes nothing. PassOrder::estimate() rejects most moves without
/// timing them. At times two microbatches change places as a whole, or a group of passes moves
/// next to another one on every rank, most often with all W placed anew (Rearranger). Orders may
/// break the memory limit on the way, at a price per byte that rises while they do and falls while
/// they don't (strategic oscillation: Gendreau, Hertz and Laporte, Management Science 40(10), 1994,
/// §3): at tight memory few orders that fit are one move apart. What is kept fits. Reproducible
/// from the seed. Not thread-safe.
class Refiner {
 public:
  /// `replica` must outlive the refiner.
  explicit Refiner(const ReplicaGraph& replica);

  /// Replaces the order of `composition` by the best one found that fits; its strategies stay.
  /// Never worse; an order that does not fit stays where none is found.
  void refine(Composition& composition, const RefineOptions& options);

 private:
  [[nodiscard]] double average_pass_time() const;
  [[nodiscard]] double average_held() const;
  [[nodiscard]] double cost_of_order() const;
  void adapt_price();
  void find_path();
  [[nodiscard]] std::optional<Move> draw();
  [[nodiscard]] std::optional<Move> draw_critical();
  [[nodiscard]] std::optional<Move> draw_any();
  bool try_move(const std::optional<Move>& move, double limit);
  bool try_rearranged(double limit);
  std::span<const Index> draw_rearranged();
  std::span<const Index> draw_exchange();
  std::span<const Index> draw_group_move();
  [[nodiscard]] Index draw_near(Index pass);
  [[nodiscard]] std::size_t pick(std::size_t count);

  const ReplicaGraph* graph_;
  PassOrder order_;
  RandomStream random_;
  std::vector<Index> group_of_;  ///< per pass; of W none
  Rearranger rearranger_;
  PassClock clock_;                 ///< of an order before it is taken over
  std::vector<Index> before_;       ///< sequence, while another one is tried
  std::vector<Index> path_;         ///< longest, from its first pass to its last
  std::vector<std::size_t> block_;  ///< per place in path_: first place of its block, and the end
  std::vector<Index> best_;         ///< sequence
  double price_ = 0.0;              ///< nanoseconds per byte of PassOrder::excess()
  double usual_price_ = 0.0;        ///< that each round of cooling begins with
};

}  // namespace dipsim::dip
