// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_case.hpp"

#include "sim/core/random.hpp"
#include "tests/support/graph_builder.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

namespace dipsim::test {

namespace {

class CaseMaker {
 public:
  CaseMaker(const CaseShape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed, "random case"), builder_(0) {}

  RandomCase make() {
    add_ranks();
    for (std::size_t p = 0; p < shape_.pairs; ++p) {
      add_pair();
    }
    connect_pairs();
    if (shape_.only_engine) {
      add_gathers();
    }
    if (shape_.epilogue) {
      add_epilogue();
    }
    RandomCase made;
    made.order = random_order();
    made.schedule = schedule_along(made.order);
    made.graph = builder_.graph;
    return made;
  }

 private:
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(count) - 1));
  }

  bool chance(double probability) { return random_.uniform() < probability; }

  Duration some_time() { return chance(0.3) ? ns(0) : ns(random_.integer(1, 12)); }

  Bytes some_bytes() { return chance(0.3) ? Bytes{0} : Bytes{random_.integer(1, 100)}; }

  void add_ranks() {
    const std::size_t cells = shape_.shared_cells ? 1 + below(shape_.ranks + 1) : shape_.ranks;
    for (std::size_t r = 0; r < shape_.ranks; ++r) {
      std::vector<CellId> own = {CellId(r)};
      if (shape_.shared_cells) {
        std::vector<CellId> all;
        for (std::size_t c = 0; c < cells; ++c) {
          all.emplace_back(c);
        }
        random_.shuffle(std::span(all));
        own.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(
                                                  1 + below(std::min(cells, std::size_t{3}))));
      }
      constexpr std::array kSpeeds = {0.5, 0.8, 1.0, 1.25, 2.0};
      const RankId id = builder_.add_rank(own, shape_.speeds ? kSpeeds[below(5)] : 1.0);
      Chunk& chunk = builder_.graph.placement.chunks[id.row()];
      chunk.weights = some_bytes();
      chunk.optimizer = some_bytes();
      builder_.graph.placement.ranks[id.row()].replica =
          static_cast<int>(below(id.row() == 0 ? 1 : 2));
    }
  }

  void add_pair() {
    const bool offloads = shape_.offloads && chance(0.5);
    const auto passes = static_cast<Passes>(below(3));
    std::vector<Strategy> strategies(1 + below(3));
    for (Strategy& s : strategies) {
      s.f = some_time();
      s.i = some_time();
      s.w = some_time();
      s.b = some_time();
      s.f_to_i = some_bytes();
      s.i_to_w = some_bytes();
      s.rebuilt = some_bytes();
      if (offloads && passes != Passes::ForwardOnly && &s != &strategies.front()) {
        s.mode = RecomputeMode::Offload;
        s.copy = some_time();
        s.offload = Bytes{random_.integer(0, s.f_to_i.count)};
      }
    }
    const PairId pair = builder_.add_pair(RankId(below(shape_.ranks)), passes, strategies);
    builder_.add_pair_edges(pair);
    if (offloads && passes != Passes::ForwardOnly) {
      builder_.add_offload(pair);
    }
    builder_.graph.tasks[builder_.f(pair).row()].transient = some_bytes();
  }

  /// Data flow from one pass to another: nothing but an edge, a transfer of its own, or one that
  /// an earlier receiver on the same rank has got already.
  void connect(TaskId from, TaskId to) {
    TaskGraph& graph = builder_.graph;
    const RankId target = graph.task(to).rank;
    if (graph.task(from).rank == target || chance(0.2)) {
      builder_.add_edge(from, to);
      return;
    }
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const Edge edge = graph.edges[e];
      if (edge.from == from && graph.task(edge.to).op == Op::Transfer &&
          graph.task(edge.to).peer == target && chance(0.5)) {
        builder_.add_edge(edge.to, to);
        return;
      }
    }
    builder_.add_transfer(from, to, some_time(), some_time());
    if (chance(0.1)) {
      builder_.graph.edges.pop_back();  // sent, but nobody waits for it
    }
  }

  /// Forwards need earlier forwards; the backwards need each other the other way round.
  void connect_pairs() {
    const auto backward = [&](std::size_t pair) {
      const PairId id(pair);
      return builder_.b(id).valid() ? builder_.b(id) : builder_.i(id);
    };
    for (std::size_t to = 1; to < shape_.pairs; ++to) {
      for (std::size_t k = below(4); k > 0; --k) {
        const std::size_t from = below(to);
        connect(builder_.f(PairId(from)), builder_.f(PairId(to)));
        if (backward(from).valid() && backward(to).valid()) {
          connect(backward(to), backward(from));
        }
      }
    }
  }

  void add_gathers() {
    for (std::size_t k = below(5); k > 0; --k) {
      const RankId rank(below(shape_.ranks));
      const GroupId group = chance(0.5) ? builder_.add_group(some_ranks()) : GroupId{};
      const TaskId gather = builder_.add_task(Op::Gather, Lane::Comm, rank, some_time(), group);
      builder_.graph.tasks[gather.row()].transient = some_bytes();
      const std::size_t later = below(shape_.pairs);
      builder_.add_edge(gather, builder_.f(PairId(later)));
      if (later > 0 && chance(0.5)) {
        builder_.add_edge(builder_.f(PairId(below(later))), gather);
      }
    }
  }

  std::vector<RankId> some_ranks() {
    std::vector<RankId> ranks;
    for (std::size_t r = 0; r < shape_.ranks; ++r) {
      if (chance(0.6)) {
        ranks.emplace_back(r);
      }
    }
    return ranks;
  }

  void add_epilogue() {
    constexpr std::array kLanes = {Lane::Comm, Lane::Gradient, Lane::Compute};
    constexpr std::array kOps = {Op::Collective, Op::Scatter, Op::Optimizer};
    for (std::size_t k = below(8); k > 0; --k) {
      const GroupId group = chance(0.5) ? builder_.add_group(some_ranks()) : GroupId{};
      const RankId rank(below(shape_.ranks));
      const TaskId task =
          builder_.add_task(kOps[below(3)], kLanes[below(3)], rank, some_time(), group);
      const Pair& pair = builder_.graph.pairs[below(shape_.pairs)];
      builder_.add_edge(pair.w.valid() ? pair.w : pair.f, task);
      for (std::size_t e = below(3); e > 0; --e) {
        const TaskId other(below(task.row()));
        const Task& before = builder_.graph.task(other);
        const bool copy = before.op == Op::CopyOut || before.op == Op::CopyIn;
        if (!copy && (before.op != Op::Transfer || before.peer == rank)) {
          builder_.add_edge(other, task);
        }
      }
    }
  }

  std::vector<TaskId> random_order() {
    const TaskGraph& graph = builder_.graph;
    std::vector<int> waits(graph.tasks.size(), 0);
    for (const Edge& edge : graph.edges) {
      ++waits[edge.to.row()];
    }
    std::vector<TaskId> ready;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i] == 0) {
        ready.emplace_back(i);
      }
    }
    std::vector<TaskId> order;
    while (!ready.empty()) {
      std::swap(ready[below(ready.size())], ready.back());
      const TaskId next = ready.back();
      ready.pop_back();
      order.push_back(next);
      for (const Edge& edge : graph.edges) {
        if (edge.from == next && --waits[edge.to.row()] == 0) {
          ready.push_back(edge.to);
        }
      }
    }
    return order;
  }

  /// Neighbours in an order of all passes can run as one slot unless one needs the other.
  [[nodiscard]] bool can_overlap(TaskId first, TaskId second) const {
    const TaskGraph& graph = builder_.graph;
    const auto is_backward = [&](TaskId id) {
      return graph.task(id).op == Op::B || graph.task(id).op == Op::I;
    };
    return graph.task(first).rank == graph.task(second).rank &&
           (graph.task(first).op == Op::F) != (graph.task(second).op == Op::F) &&
           (is_backward(first) || is_backward(second)) &&
           std::ranges::none_of(graph.edges, [&](const Edge& edge) {
             return edge.from == first && edge.to == second;
           });
  }

  Schedule schedule_along(const std::vector<TaskId>& order) {
    TaskGraph& graph = builder_.graph;
    std::vector<TaskId> passes;
    std::ranges::copy_if(order, std::back_inserter(passes),
                         [&](TaskId id) { return is_pass(graph.task(id).op); });
    std::vector<std::vector<Slot>> slots(graph.placement.cells.size());
    for (std::size_t at = 0; at < passes.size(); ++at) {
      Slot slot{passes[at], {}};
      // Between neighbours of `passes` no path leads over other passes; with gathers and copies
      // one might lead over those.
      if (shape_.overlaps && !shape_.only_engine && at + 1 < passes.size() && chance(0.5) &&
          can_overlap(passes[at], passes[at + 1])) {
        ++at;
        const bool forward_first = graph.task(slot.task).op == Op::F;
        slot = forward_first ? Slot{slot.task, passes[at]} : Slot{passes[at], slot.task};
        graph.overlaps.push_back({slot.task, slot.together, some_time()});
      }
      for (const CellId cell : graph.rank(graph.task(slot.task).rank).cells) {
        slots[cell.row()].push_back(slot);
      }
    }
    Schedule schedule;
    for (const std::vector<Slot>& row : slots) {
      schedule.compute.add_row(row);
    }
    for (const Pair& pair : graph.pairs) {
      schedule.chosen.emplace_back(pair.first_strategy.row() +
                                   below(static_cast<std::size_t>(pair.strategy_count)));
    }
    add_windows(schedule);
    return schedule;
  }

  /// Pairs that offload get two passes between F and their backward; where there is none, another
  /// strategy.
  void add_windows(Schedule& schedule) {
    const TaskGraph& graph = builder_.graph;
    for (std::size_t p = 0; p < graph.pairs.size(); ++p) {
      const Pair& pair = graph.pairs[p];
      if (graph.strategy(schedule.chosen[p]).mode != RecomputeMode::Offload) {
        continue;
      }
      const TaskId backward = pair.b.valid() ? pair.b : pair.i;
      const auto order = schedule.compute[graph.rank(graph.task(pair.f).rank).cells.front().row()];
      const auto place = [&](TaskId task) {
        const auto found = std::ranges::find_if(
            order, [&](const Slot& slot) { return slot.task == task || slot.together == task; });
        return static_cast<std::size_t>(found - order.begin());
      };
      std::vector<TaskId> between;
      for (std::size_t at = place(pair.f) + 1; at < place(backward); ++at) {
        for (const TaskId task : {order[at].task, order[at].together}) {
          if (task.valid() && graph.task(task).rank == graph.task(pair.f).rank) {
            between.push_back(task);
          }
        }
      }
      if (between.empty()) {
        schedule.chosen[p] = pair.first_strategy;
        continue;
      }
      const std::size_t freed = below(between.size());
      const std::size_t fetched = freed + below(between.size() - freed);
      schedule.offloads.push_back({PairId(p), between[freed], between[fetched]});
    }
    random_.shuffle(std::span(schedule.offloads));
  }

  CaseShape shape_;
  RandomStream random_;
  GraphBuilder builder_;
};

}  // namespace

RandomCase random_case(const CaseShape& shape, std::uint64_t seed) {
  return CaseMaker(shape, seed).make();
}

}  // namespace dipsim::test
