// SPDX-License-Identifier: Apache-2.0
// Oracles for the exact solver: every order of a tiny graph, and random graphs that are tiny.
#pragma once

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "tests/support/graph_builder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dipsim::test {

/// Tries every order of the passes of every rank with the order evaluator and the memory curves.
class AllOrders {
 public:
  AllOrders(const TaskGraph& graph, std::span<const StrategyId> chosen)
      : graph_(graph), needs_(graph.tasks.size(), std::vector<bool>(graph.tasks.size())) {
    schedule_.chosen.assign(chosen.begin(), chosen.end());
    // Transitively: task i needs task k. Tasks are few, and so are the rounds until nothing
    // changes.
    for (bool changed = true; changed;) {
      changed = false;
      for (const Edge& edge : graph.edges) {
        for (std::size_t k = 0; k < graph.tasks.size(); ++k) {
          const bool needed = k == edge.from.row() || needs_[edge.from.row()][k];
          if (needed && !needs_[edge.to.row()][k]) {
            needs_[edge.to.row()][k] = true;
            changed = true;
          }
        }
      }
    }
    orders_.resize(graph.placement.cells.size());
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      if (is_pass(graph.tasks[i].op)) {
        orders_[graph.rank(graph.tasks[i].rank).cells.front().row()].passes.emplace_back(i);
      }
    }
  }

  /// The number of combinations, deadlocks included; more than `most` are not counted on.
  std::size_t count(std::size_t most) {
    std::size_t product = 1;
    for (CellOrders& cell : orders_) {
      cell.found.clear();
      std::vector<TaskId> order;
      list(cell, order, most);
      product *= std::max<std::size_t>(1, cell.found.size());
      if (product > most) {
        break;
      }
    }
    return product;
  }

  /// The least makespan of those that fit in memory; none: no order fits. After count().
  std::optional<Duration> best() {
    best_.reset();
    OrderEvaluator evaluator(graph_);
    combine(0, evaluator);
    return best_;
  }

 private:
  struct CellOrders {
    std::vector<TaskId> passes;
    std::vector<std::vector<TaskId>> found;
  };

  void list(CellOrders& cell, std::vector<TaskId>& order, std::size_t most) {
    if (order.size() == cell.passes.size()) {
      cell.found.push_back(order);
      return;
    }
    for (const TaskId pass : cell.passes) {
      const bool placed = std::ranges::count(order, pass) > 0;
      const bool waits = std::ranges::any_of(cell.passes, [&](TaskId other) {
        return needs_[pass.row()][other.row()] && std::ranges::count(order, other) == 0;
      });
      if (!placed && !waits && cell.found.size() <= most) {
        order.push_back(pass);
        list(cell, order, most);
        order.pop_back();
      }
    }
  }

  void combine(std::size_t cell, OrderEvaluator& evaluator) {
    if (cell == orders_.size()) {
      try_order(evaluator);
      return;
    }
    for (const std::vector<TaskId>& order : orders_[cell].found) {
      current_.push_back(&order);
      combine(cell + 1, evaluator);
      current_.pop_back();
    }
  }

  void try_order(OrderEvaluator& evaluator) {
    schedule_.compute.clear();
    for (const std::vector<TaskId>* order : current_) {
      schedule_.compute.add_row();
      for (const TaskId task : *order) {
        schedule_.compute.push_back({.task = task, .together = {}});
      }
    }
    try {
      const std::span<const Span> spans = evaluator.time(schedule_);
      const Duration makespan = summarize(graph_, spans).makespan;
      if (!best_ || makespan < *best_) {
        const std::vector<MemoryCurve> curves = memory_curves(graph_, schedule_, spans);
        for (std::size_t r = 0; r < curves.size(); ++r) {
          if (curves[r].peak > graph_.placement.ranks[r].memory_limit) {
            return;
          }
        }
        best_ = makespan;
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Input) {  // not a deadlock
        throw;
      }
    }
  }

  const TaskGraph& graph_;
  std::vector<std::vector<bool>> needs_;  ///< [task][task it needs]
  std::vector<CellOrders> orders_;
  std::vector<const std::vector<TaskId>*> current_;
  Schedule schedule_;
  std::optional<Duration> best_;
};

/// What a random tiny pipeline may contain.
struct TinyShape {
  bool limited = false;      ///< memory limits that often bind, and then passes of at least 1 ns
  bool split_only = false;   ///< no fused backward
  bool mixed_pairs = false;  ///< some pairs without backward, some fused, some split
};

/// Microbatches that flow once or twice through one to three ranks.
class TinyPipeline {
 public:
  TinyPipeline(const TinyShape& shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed, "tiny pipeline"),
        builder_(static_cast<std::size_t>(random_.integer(1, 3))) {}

  TaskGraph make() {
    const std::size_t ranks = builder_.graph.placement.ranks.size();
    const std::int64_t sweeps = random_.integer(1, 2);
    const std::int64_t microbatches = random_.integer(1, sweeps == 2 ? 2 : 3);
    split_ = shape_.split_only || random_.integer(0, 1) == 1;
    transfers_ = random_.integer(0, 2);
    for (std::int64_t b = 0; b < microbatches; ++b) {
      PairId before;
      // Some microbatches skip the first sweep, as one without images skips the encoder.
      for (std::int64_t s = random_.integer(0, 3) == 0 ? sweeps - 1 : 0; s < sweeps; ++s) {
        for (std::size_t r = 0; r < ranks; ++r) {
          const PairId pair = add_pair(RankId(r));
          if (before.valid()) {
            connect(builder_.f(before), builder_.f(pair));
            if (backward(before).valid() && backward(pair).valid()) {
              connect(backward(pair), backward(before));
            }
          }
          before = pair;
        }
      }
    }
    set_limits();
    return builder_.graph;
  }

 private:
  Duration time() { return Duration{random_.integer(shape_.limited ? 1 : 0, 9)}; }

  Bytes bytes(std::int64_t most) { return Bytes{random_.integer(0, most)}; }

  PairId add_pair(RankId rank) {
    Strategy strategy;
    strategy.f = time();
    strategy.b = time();
    strategy.i = time();
    strategy.w = time();
    strategy.f_to_i = bytes(9);
    strategy.i_to_w = bytes(9);
    strategy.rebuilt = bytes(3);
    const bool split = shape_.mixed_pairs ? random_.integer(0, 1) == 1 : split_;
    Passes passes = split ? Passes::Split : Passes::Fused;
    if (shape_.mixed_pairs && random_.integer(0, 5) == 0) {
      passes = Passes::ForwardOnly;
    }
    const PairId pair = builder_.add_pair(rank, passes, strategy);
    builder_.add_pair_edges(pair);
    for (const TaskId task : {builder_.f(pair), builder_.b(pair), builder_.i(pair)}) {
      if (task.valid()) {
        builder_.graph.tasks[task.row()].transient = bytes(2);
      }
    }
    if (builder_.w(pair).valid() && random_.integer(0, 3) == 0) {
      builder_.graph.tasks[builder_.w(pair).row()].transient = bytes(2);
    }
    return pair;
  }

  [[nodiscard]] TaskId backward(PairId pair) const {
    return builder_.b(pair).valid() ? builder_.b(pair) : builder_.i(pair);
  }

  void connect(TaskId from, TaskId to) {
    if (builder_.graph.task(from).rank == builder_.graph.task(to).rank) {
      builder_.add_edge(from, to);
      return;
    }
    const Duration occupied{transfers_ == 2 ? random_.integer(0, 6) : 0};
    const Duration latency{transfers_ >= 1 ? random_.integer(0, 4) : 0};
    builder_.add_transfer(from, to, occupied, latency);
  }

  /// All that the pairs of a rank ever hold together, twice; or 0.3 to 0.9 of it once.
  void set_limits() {
    TaskGraph& graph = builder_.graph;
    std::vector<std::int64_t> all(graph.placement.ranks.size());
    for (const Pair& pair : graph.pairs) {
      const Strategy& s = graph.strategy(pair.first_strategy);
      all[graph.task(pair.f).rank.row()] += (s.f_to_i + s.i_to_w + s.rebuilt).count + 2;
    }
    for (std::size_t r = 0; r < all.size(); ++r) {
      Rank& rank = graph.placement.ranks[r];
      rank.reserved = Bytes{5};
      rank.memory_limit =
          rank.reserved + Bytes{shape_.limited ? all[r] * random_.integer(3, 9) / 10 : 2 * all[r]};
    }
  }

  TinyShape shape_;
  RandomStream random_;
  GraphBuilder builder_;
  bool split_ = false;
  std::int64_t transfers_ = 0;
};

/// The first strategy of every pair.
inline std::vector<StrategyId> first_strategies(const TaskGraph& graph) {
  std::vector<StrategyId> chosen;
  chosen.reserve(graph.pairs.size());
  for (const Pair& pair : graph.pairs) {
    chosen.push_back(pair.first_strategy);
  }
  return chosen;
}

/// `microbatches` that flow once through all ranks at this cost, every transfer taking `latency`.
inline GraphBuilder equal_stages(std::size_t ranks, std::size_t microbatches, Passes passes,
                                 const Strategy& cost, Duration latency = Duration{0}) {
  GraphBuilder g(ranks);
  for (std::size_t b = 0; b < microbatches; ++b) {
    PairId before;
    for (std::size_t r = 0; r < ranks; ++r) {
      const PairId pair = g.add_pair(RankId(r), passes, cost);
      g.add_pair_edges(pair);
      if (before.valid()) {
        const auto back = [&](PairId p) { return passes == Passes::Split ? g.i(p) : g.b(p); };
        g.add_transfer(g.f(before), g.f(pair), ns(0), latency);
        g.add_transfer(back(pair), back(before), ns(0), latency);
      }
      before = pair;
    }
  }
  return g;
}

/// The same limit for every rank.
inline void set_limits(TaskGraph& graph, std::int64_t bytes) {
  for (Rank& rank : graph.placement.ranks) {
    rank.memory_limit = Bytes{bytes};
  }
}

}  // namespace dipsim::test
