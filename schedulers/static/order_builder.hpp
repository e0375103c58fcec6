// SPDX-License-Identifier: Apache-2.0
// Builds an order pass by pass, with its times and its memory always at hand.
#pragma once

#include "schedulers/static/pipeline_instance.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// An order under construction. Every stage runs its forwards, and its backwards, in the order of
/// the microbatches; a W follows its I on the same rank, oldest first. Each pass that is placed is
/// timed at once, as the order evaluator would time it.
///
/// Memory: no rank ever exceeds its limit, and no placement can lead into a deadlock. Before a pass
/// that does not fit, W's are placed until it does. A forward is admitted only while, all W's done,
/// the rank could still finish its unfinished microbatches one after the other, oldest first
/// (the safe states of Dijkstra's banker, EWD 623, with that order of finishing fixed).
class OrderBuilder {
 public:
  /// Of an input that no placed pass sends.
  static constexpr Duration kNever = Duration::max();

  /// One limit per rank, in bytes on top of what it holds at all times. `instance` must outlive the
  /// builder. Throws Infeasible where one microbatch alone exceeds a limit.
  OrderBuilder(const PipelineInstance& instance, std::span<const Bytes> limits);

  /// Back to the empty order.
  void clear();

  [[nodiscard]] const PipelineInstance& instance() const { return instance_; }

  /// Forwards placed on a stage: also the microbatch of its next one.
  [[nodiscard]] int forwards(int stage) const { return stage_at(stage).forwards; }

  /// The same for backwards. A stage without a backward has done it with the forward.
  [[nodiscard]] int backwards(int stage) const {
    const StageState& state = stage_at(stage);
    return state.shape.has_backward ? state.backwards : state.forwards;
  }

  /// When the last pass of a rank ends.
  [[nodiscard]] Duration now(int rank) const { return rank_at(rank).now; }

  /// When the input of the next forward is there; kNever while nothing sends it, or none is left.
  [[nodiscard]] Duration forward_arrival(int stage) const;

  /// The same for the next backward, whose own forward must have been placed.
  [[nodiscard]] Duration backward_arrival(int stage) const;

  /// The stage that takes the gradient of a stage: the nearest before it that has a backward; -1
  /// where there is none.
  [[nodiscard]] int gradient_to(int stage) const { return stage_at(stage).gradient_to; }

  /// Whether memory allows the next `count` forwards of a stage, were all W's of its rank done.
  [[nodiscard]] bool admits_forwards(int stage, int count = 1) const;

  /// Whether memory allows the next backward. Always true for the oldest unfinished microbatch.
  [[nodiscard]] bool admits_backward(int stage) const;

  /// The time of the W's that must come before the next forward for it to fit.
  [[nodiscard]] Duration weights_before_forward(int stage) const;

  /// Place the W's without which the next pass does not fit.
  void make_room_for_forward(int stage);
  void make_room_for_backward(int stage);

  /// Place the next pass of a stage, which must be admitted and have an arrival, after its
  /// make_room.
  void place_forward(int stage);
  void place_backward(int stage);

  [[nodiscard]] bool weight_waits(int rank) const {
    return rank_at(rank).next_weight < rank_at(rank).weights.size();
  }

  /// Place the oldest W that waits.
  void place_weight(int rank);

  /// Place all W's that wait.
  void place_weights(int rank);

  /// Place W's in the wait for an input that comes at `arrival`: all that end by then, and one that
  /// does not where what remains of the wait is longer than `affordable`.
  void fill_wait(int rank, Duration arrival, Duration affordable);

  /// Idle time of a rank so far, since its first pass began.
  [[nodiscard]] Duration idle(int rank) const { return rank_at(rank).span - facts_at(rank).load; }

  /// How much longer a rank may idle before its span exceeds all others, as far as they are known.
  [[nodiscard]] Duration slack(int rank) const { return longest_span_ - rank_at(rank).span; }

  /// From the first start to the last end of what was placed.
  [[nodiscard]] Duration makespan() const;

  /// Per rank, in order.
  [[nodiscard]] const std::vector<std::vector<Step>>& steps() const { return steps_; }

 private:
  static constexpr int kNone = -1;

  struct StageState {
    StageShape shape;
    int forwards = 0;
    int backwards = 0;
    int gradient_to = kNone;    ///< nearest stage before that has a backward
    int forward_link = kNone;   ///< to the next stage; none on the same rank
    int backward_link = kNone;  ///< to gradient_to
  };

  struct Weight {
    int stage = 0;
    int microbatch = 0;
  };

  struct RankState {
    Duration now{0};
    bool started = false;
    Duration span{0};  ///< load of all its passes, and idle time so far since its first
    Bytes active{};    ///< held by microbatches between F and I
    Bytes kept{};      ///< by those between I and W
    int oldest = 0;    ///< microbatches before this one are finished but for their W
    std::vector<Weight> weights;
    std::size_t next_weight = 0;
  };

  /// What never changes about a rank.
  struct RankFacts {
    Bytes limit;
    Bytes most_needed;         ///< largest `needed` of any microbatch
    Bytes most_during_weight;  ///< of any W
    Duration load{0};
    std::vector<int> stages;  ///< in flow order
  };

  [[nodiscard]] const StageState& stage_at(int stage) const {
    return stages_[static_cast<std::size_t>(stage)];
  }

  StageState& stage_at(int stage) { return stages_[static_cast<std::size_t>(stage)]; }

  [[nodiscard]] const RankState& rank_at(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)];
  }

  RankState& rank_at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  [[nodiscard]] const RankFacts& facts_at(int rank) const {
    return facts_[static_cast<std::size_t>(rank)];
  }

  /// Index into tables with a row per rank and a column per microbatch.
  [[nodiscard]] std::size_t of_rank(int rank, int microbatch) const {
    return static_cast<std::size_t>(rank) * microbatches_ + static_cast<std::size_t>(microbatch);
  }

  [[nodiscard]] std::size_t passes_per_microbatch() const {
    return 2 * static_cast<std::size_t>(instance_.shape.chunks);
  }

  std::vector<Step>& steps_of(const StageState& stage) {
    return steps_[static_cast<std::size_t>(stage.shape.rank)];
  }

  void add_links();
  void add_facts(std::size_t rank);
  [[nodiscard]] Bytes needed(int rank, int microbatch) const;
  [[nodiscard]] bool forward_fits(const PairCost& cost, Bytes kept, Bytes during_weight,
                                  int rank) const;
  Duration run(RankState& rank, Duration arrival, Duration time);
  Duration send(int link, Duration end, const HopCost& hop);
  void finish_microbatches(int rank);

  const PipelineInstance& instance_;
  std::size_t microbatches_;
  int last_backward_ = kNone;  ///< the last stage that has one
  std::vector<RankFacts> facts_;
  std::vector<Bytes> needs_;  ///< per rank, microbatch and number of its passes that are done

  Duration longest_span_{0};
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
  std::vector<Duration> forward_arrivals_;   ///< row stage × microbatches + microbatch
  std::vector<Duration> backward_arrivals_;  ///< likewise
  std::vector<Bytes> active_;                ///< per rank and microbatch
  std::vector<std::int32_t> passes_done_;    ///< per rank and microbatch: F and I (or B)
  std::vector<Duration> link_free_;
  std::vector<std::vector<Step>> steps_;
};

}  // namespace dipsim
