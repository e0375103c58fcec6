// SPDX-License-Identifier: Apache-2.0
// The search for the optimum: partial orders, layer by layer.
#pragma once

#include "schedulers/exact/layer.hpp"
#include "schedulers/exact/memory_states.hpp"
#include "schedulers/exact/node.hpp"
#include "schedulers/exact/node_bound.hpp"
#include "schedulers/exact/problem.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dipsim::exact {

/// One pass of a complete order, and the fillers that its rank runs just before it.
struct Step {
  Index pass = 0;
  Mask fillers = 0;
};

struct SearchLimits {
  std::uint64_t nodes = 0;
  std::optional<std::chrono::steady_clock::time_point> until{};
};

/// Bounded dynamic programming (as in Bautista and Pereira, EJOR 194(3), 2009, for assembly lines)
/// over the sets of passes that are done.
///
/// **Tree.** A node stands for the beginning of an order: which passes and fillers are done, and
/// the times that follow from it. A child runs some of the released fillers of a rank, one after
/// the other, and then one more pass of that rank, as early as they can, but the pass no earlier
/// than the last pass started (`now`). What fillers a leaf has left run at the end.
///
/// **Complete.** With the order of every rank fixed, the earliest starts are the evaluator's times,
/// and starting anything later helps nobody: transfers leave in the order of the sender's passes in
/// any case. Take any such timetable and sort its passes by start, equal starts so that everything
/// comes after what it waits for: appending them in this order, each with the fillers that stand
/// between it and the pass before it on its rank, is a path of the tree in which `now` delays
/// nothing, and it leads to that timetable. Fillers need no place in this sequence because only
/// their own rank notices them. A rank is left idle while it could run something where a later pass
/// is appended to it. Nothing here assumes that moving a pass forward into a gap helps, which fails
/// for forwards under a memory limit and where transfers queue. Memory is a function of what a rank
/// has done, so it is checked pass by pass; fillers only free it.
///
/// **Pruned** is a child
///  1. whose bound reaches the best makespan known;
///  2. that a node of the same layer dominates (Dominance);
///  3. that no order completes within memory (MemoryStates);
///  4. that leaves a released filler undone which would end before the pass starts. The child of
///     the same node with that filler run as well dominates it: nothing else changes;
///  5. that runs a filler last although the pass was ready before it, on a rank where memory no
///     longer matters. The child without that filler dominates it: the filler may run right after
///     the pass, and the rank is as far at the same time.
/// (To dominate means that every completion can be followed with no start later, which is
/// transitive; Dominance tests a sufficient condition.) Rules 4 and 5 cannot go round in circles: 5
/// makes the start of the pass earlier, and 4 keeps it and runs more fillers. So, layer by layer,
/// for every node from which a better makespan than the best known can be reached there is a kept
/// one that dominates it: the kept node that dominates its parent has a child that dominates it,
/// which is kept or is in turn dominated as in 2, 4 or 5. A pass over all layers in which no layer
/// was narrowed has therefore found the optimum.
class Search {
 public:
  /// Complete orders that do not take less than `best` are not searched for.
  Search(const Problem& problem, MemoryStates& memory, Nanoseconds least, Nanoseconds best);

  /// Goes through all layers, keeping at most `width` nodes of each: those with the least bound.
  /// Returns false, having learned nothing but perhaps the nodes counted, at one of the limits.
  bool run(std::size_t width, const SearchLimits& limits);

  [[nodiscard]] Nanoseconds best() const { return best_; }

  /// No order takes less.
  [[nodiscard]] Nanoseconds least() const { return least_; }

  /// The order that takes best(); empty where none has been found that takes less than what the
  /// search began with.
  [[nodiscard]] std::span<const Step> steps() const { return steps_; }

  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

 private:
  /// How a node of a layer came about.
  struct Trace {
    Index parent = 0;
    Index pass = 0;
    Mask fillers = 0;  ///< all that are done
  };

  /// Fillers that a rank runs one after the other.
  struct Run {
    Mask fillers = 0;
    Nanoseconds time = 0;
    ByteCount frees = 0;
  };

  /// The pass that is being appended to a node.
  struct Turn {
    Index pass = 0;
    Index parent = 0;       ///< number of the node
    Nanoseconds free = 0;   ///< the rank is, before any filler
    Nanoseconds ready = 0;  ///< least start of the pass, were its rank free
    Mask fillers = 0;       ///< that the rank can run
    bool tight = false;     ///< its rank may become full
    ByteCount held = 0;     ///< by its rank, where it is tight
  };

  void start();
  [[nodiscard]] bool stopped(bool look_at_clock) const;
  bool next_layer(std::size_t width);
  void shorten(std::size_t width);
  void open_set(Mask done);
  void unpack(const Node& node);
  void append(Index pass, Index number);
  void add_children(Mask candidates, const Run& run);
  void add_child(const Run& run);
  void apply(const Run& run, Nanoseconds start);
  void keep_child(Node node);
  void finish();

  const Problem& problem_;
  MemoryStates& memory_;
  NodeBound bound_;
  Dominance dominance_;
  Nanoseconds least_;
  Nanoseconds best_;
  std::vector<Step> steps_;
  std::uint64_t nodes_ = 0;
  SearchLimits limits_;

  Layer layer_;
  Layer next_;
  Nanoseconds dropped_ = 0;  ///< least bound of a node that was dropped for the width
  std::vector<std::vector<Trace>> traces_;  ///< per layer and node

  // The set at hand, which consecutive nodes share.
  Mask waiting_ = 0;                       ///< passes with a remote input that is done
  Mask ready_ = 0;                         ///< passes all of whose inputs are done
  Mask tight_ = 0;                         ///< ranks that may become full
  std::vector<ByteCount> held_by_passes_;  ///< per rank

  State parent_;
  Turn turn_;
  State child_;
  std::vector<Nanoseconds> packed_;
};

}  // namespace dipsim::exact
