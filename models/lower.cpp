// SPDX-License-Identifier: Apache-2.0
#include "models/lower.hpp"

#include "models/epilogue.hpp"
#include "models/flows.hpp"
#include "models/weight_traffic.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int32_t kNone = -1;

/// First ids of the task blocks of one stop; a block has one task per work of the flow.
struct Blocks {
  std::int32_t pair = kNone;
  std::int32_t forward = kNone;
  std::int32_t backward = kNone;  ///< I or B
  std::int32_t weights = kNone;   ///< W
  std::int32_t sent = kNone;      ///< transfers of activations to the next stop
  std::int32_t returned = kNone;  ///< transfers of gradients to the previous stop that takes them
  std::int32_t out = kNone;       ///< copies to host memory
  std::int32_t in = kNone;        ///< and back
};

/// Strategies and transient memory of some layers on some work.
struct PassCost {
  std::int32_t first_strategy = kNone;
  std::int32_t strategy_count = 0;
  Bytes transient{};
  Bytes copied{};  ///< by a pair that offloads
};

/// The transfer last costed for a shape, and the hop that it was costed for.
struct HopCost {
  int hop = kNone;
  TransferCost cost;
};

std::int32_t size_of(const auto& container) { return static_cast<std::int32_t>(container.size()); }

class Lowerer {
 public:
  Lowerer(const Draft& draft, const Batch& batch, const CostSource& costs)
      : draft_(draft),
        batch_(batch),
        costs_(costs),
        flows_(find_flows(draft, batch, costs)),
        epilogue_(draft.placement, costs),
        pass_costs_(static_cast<std::size_t>(flows_.layer_sets) *
                    static_cast<std::size_t>(flows_.shapes)),
        hop_costs_(static_cast<std::size_t>(flows_.shapes)),
        shortest_last_(draft.placement.chunks.size(), Duration::max()),
        offloads_(draft.offload && costs.offloaded(Strategy{})) {}

  TaskGraph run() {
    graph_.placement = draft_.placement;
    graph_.works = draft_.works;
    for (const ModuleShape& module : costs_.problem().modules) {
      graph_.module_names.push_back(module.name);
    }
    graph_.model_flops = costs_.model_flops(batch_);
    graph_.peak_flops_per_s = costs_.peak_flops_per_s();

    lay_out_blocks();
    for (std::size_t f = 0; f < flows_.flows.size(); ++f) {
      lower_passes(flows_.flows[f], blocks_[f]);
      lower_hops(flows_.flows[f], blocks_[f]);
    }
    for (const Link& link : flows_.links) {
      lower_link(link);
    }
    epilogue_.append_to(graph_, shortest_last_);
    DIPSIM_CHECK(graph_.tasks.size() == expected_tasks_, "the lowering counted its tasks wrongly");
    DIPSIM_CHECK(graph_.edges.size() == expected_edges_, "the lowering counted its edges wrongly");
    return std::move(graph_);
  }

 private:
  // Counting first keeps the arrays exactly as large as they must be.

  void lay_out_blocks() {
    std::int32_t tasks = 0;
    std::int32_t pairs = 0;
    std::size_t edges = 0;
    for (const Flow& flow : flows_.flows) {
      const std::int32_t works = size_of(flow.works);
      const auto block = [&](bool exists, std::size_t edges_per_task) {
        if (!exists) {
          return kNone;
        }
        edges += static_cast<std::size_t>(works) * edges_per_task;
        return std::exchange(tasks, tasks + works);
      };
      std::vector<Blocks> blocks(flow.stops.size());
      const Stop* upstream = nullptr;  // the previous stop that takes a gradient
      for (std::size_t s = 0; s < flow.stops.size(); ++s) {
        const Stop& stop = flow.stops[s];
        const bool has_next = s + 1 < flow.stops.size();
        const bool sends = has_next && flow.stops[s + 1].rank != stop.rank;
        const bool takes = stop.backward && upstream != nullptr;
        Blocks& b = blocks[s];
        b.pair = std::exchange(pairs, pairs + works);
        b.forward = block(true, has_next && !sends ? 1 : 0);
        b.sent = block(sends, 2);
        b.backward = block(stop.backward, takes && upstream->rank == stop.rank ? 2 : 1);
        b.weights = block(splits_weights(stop), 1);
        b.returned = block(takes && upstream->rank != stop.rank, 2);
        b.out = block(offloads_ && stop.backward, 1);
        b.in = block(offloads_ && stop.backward, 1);
        edges += epilogue_.follower(stop.chunk, stop.rank) != kNone
                     ? static_cast<std::size_t>(works)
                     : 0;
        upstream = stop.backward ? &stop : upstream;
      }
      blocks_.push_back(std::move(blocks));
    }
    expected_tasks_ = static_cast<std::size_t>(tasks) + epilogue_.tasks();
    expected_edges_ = edges + epilogue_.edges();
    count_links();
    graph_.pairs.resize(static_cast<std::size_t>(pairs));
    graph_.tasks.reserve(expected_tasks_);
    graph_.tasks.resize(static_cast<std::size_t>(tasks));
    graph_.edges.reserve(expected_edges_);
  }

  void count_links() {
    for (const Link& link : flows_.links) {
      const Stop& from = flow_of(link.from).stops.back();
      const Stop& to = flow_of(link.to).stops.front();
      const std::size_t directions = from.backward ? 2 : 1;
      const bool crosses = from.rank != to.rank;
      expected_tasks_ += crosses ? directions : 0;
      expected_edges_ += crosses ? 2 * directions : directions;
    }
  }

  [[nodiscard]] bool splits_weights(const Stop& stop) const {
    return draft_.split_backward && stop.backward && stop.weights;
  }

  [[nodiscard]] const Flow& flow_of(WorkId work) const {
    return flows_.flows[static_cast<std::size_t>(flows_.places[work.row()].flow)];
  }

  // Passes.

  const PassCost& pass_cost(const Stop& stop, WorkId work) {
    const std::int32_t shape = flows_.shape[work.row()];
    PassCost& cost = pass_costs_[static_cast<std::size_t>(stop.layer_set) *
                                     static_cast<std::size_t>(flows_.shapes) +
                                 static_cast<std::size_t>(shape)];
    if (cost.first_strategy == kNone) {
      const Work& w = draft_.works[work.row()];
      std::vector<Strategy> strategies = draft_.layer_mixes
                                             ? costs_.mixed_strategies(stop.layers, w, batch_)
                                             : costs_.strategies(stop.layers, w, batch_);
      const Bytes copied = offloads_ && stop.backward ? add_offloaded(strategies) : Bytes{};
      cost = share(draft_.weights_at_once && splits_weights(stop) ? with_weights_at_once(strategies)
                                                                  : strategies);
      cost.copied = copied;
      cost.transient = costs_.transient(stop.layers, w, batch_);
    }
    return cost;
  }

  /// Behind Keep the same with what it keeps copied to host memory; the bytes of a copy.
  [[nodiscard]] Bytes add_offloaded(std::vector<Strategy>& strategies) const {
    const auto keep = std::ranges::find(strategies, RecomputeMode::Keep, &Strategy::mode);
    if (keep == strategies.end() || keep->f_to_i.count == 0) {
      return {};
    }
    const Strategy offloaded = *costs_.offloaded(*keep);
    strategies.insert(keep + 1, offloaded);
    return offloaded.offload;
  }

  /// Behind each strategy the same with W done inside I, layer by layer: as long as B, and nothing
  /// to hold for a later W.
  static std::vector<Strategy> with_weights_at_once(const std::vector<Strategy>& strategies) {
    std::vector<Strategy> all;
    for (const Strategy& strategy : strategies) {
      all.push_back(strategy);
      Strategy& at_once = all.emplace_back(strategy);
      at_once.i = strategy.b;
      at_once.w = Duration{0};
      at_once.i_to_w = Bytes{};
    }
    return all;
  }

  /// Adds the strategies to the graph, unless equal ones are there already.
  PassCost share(const std::vector<Strategy>& strategies) {
    DIPSIM_CHECK(!strategies.empty(), "a cost source gave no strategy");
    std::vector<std::int64_t> key;
    for (const Strategy& s : strategies) {
      key.insert(key.end(), {static_cast<std::int64_t>(s.mode), s.f.count(), s.i.count(),
                             s.w.count(), s.b.count(), s.copy.count(), s.f_to_i.count,
                             s.i_to_w.count, s.rebuilt.count, s.offload.count});
    }
    const auto number = static_cast<std::size_t>(strategy_sets_.of(key));
    if (number == first_strategy_of_set_.size()) {
      first_strategy_of_set_.push_back(size_of(graph_.strategies));
      graph_.strategies.insert(graph_.strategies.end(), strategies.begin(), strategies.end());
    }
    return {.first_strategy = first_strategy_of_set_[number],
            .strategy_count = size_of(strategies)};
  }

  TaskId add_pass(Op op, std::int32_t block, std::int32_t work, PairId pair, const Stop& stop,
                  WorkId id, Bytes transient) {
    const TaskId task{block + work};
    graph_.tasks[task.row()] = {.op = op,
                                .lane = Lane::Compute,
                                .rank = stop.rank,
                                .chunk = stop.chunk,
                                .work = id,
                                .pair = pair,
                                .transient = transient};
    return task;
  }

  TaskId add_copy(Op op, std::int32_t task, PairId pair, const Stop& stop, WorkId work,
                  Bytes bytes) {
    graph_.tasks[static_cast<std::size_t>(task)] = {
        .op = op,
        .lane = op == Op::CopyOut ? Lane::DeviceToHost : Lane::HostToDevice,
        .rank = stop.rank,
        .chunk = stop.chunk,
        .work = work,
        .pair = pair,
        .bytes = bytes};
    return TaskId{task};
  }

  void lower_passes(const Flow& flow, const std::vector<Blocks>& blocks) {
    for (std::size_t s = 0; s < flow.stops.size(); ++s) {
      const Stop& stop = flow.stops[s];
      const Blocks& b = blocks[s];
      const std::int32_t follower = epilogue_.follower(stop.chunk, stop.rank);
      for (std::int32_t j = 0; j < size_of(flow.works); ++j) {
        const WorkId work = flow.works[static_cast<std::size_t>(j)];
        const PassCost& cost = pass_cost(stop, work);
        const PairId id{b.pair + j};
        Pair& pair = graph_.pairs[id.row()];
        pair.first_strategy = StrategyId{cost.first_strategy};
        pair.strategy_count = cost.strategy_count;
        pair.f = add_pass(Op::F, b.forward, j, id, stop, work, cost.transient);
        TaskId last = pair.f;
        if (stop.backward) {
          TaskId& backward = draft_.split_backward ? pair.i : pair.b;
          backward = add_pass(draft_.split_backward ? Op::I : Op::B, b.backward, j, id, stop, work,
                              cost.transient);
          if (offloads_) {
            pair.copy_out = add_copy(Op::CopyOut, b.out + j, id, stop, work, cost.copied);
            pair.copy_in = add_copy(Op::CopyIn, b.in + j, id, stop, work, cost.copied);
            add_edge(pair.f, pair.copy_out);
            add_edge(pair.copy_out, pair.copy_in);
            add_edge(pair.copy_in, backward);
          } else {
            add_edge(pair.f, backward);
          }
          last = backward;
        }
        if (splits_weights(stop)) {
          pair.w = add_pass(Op::W, b.weights, j, id, stop, work, Bytes{});
          add_edge(last, pair.w);
          last = pair.w;
        }
        if (follower != kNone) {
          Duration& shortest = shortest_last_[stop.chunk.row()];
          for (const Strategy& strategy : graph_.allowed(pair)) {
            const Task& task = graph_.task(last);
            shortest = std::min(shortest, at_speed(graph_, task, time_of(strategy, task.op)));
          }
          add_edge(last, TaskId{first_after_passes() + follower});
        }
      }
    }
  }

  [[nodiscard]] std::int32_t first_after_passes() const {
    return static_cast<std::int32_t>(expected_tasks_ - epilogue_.tasks());
  }

  void add_edge(TaskId from, TaskId to) { graph_.edges.push_back({from, to}); }

  // Ways between chunks.

  void lower_hops(const Flow& flow, const std::vector<Blocks>& blocks) {
    std::size_t upstream = flow.stops.size();
    for (std::size_t s = 0; s < flow.stops.size(); ++s) {
      if (s > 0) {
        lower_hop(flow, s - 1, s, blocks[s - 1].forward, blocks[s].forward, blocks[s - 1].sent);
      }
      if (flow.stops[s].backward) {
        if (upstream < s) {
          lower_hop(flow, s, upstream, blocks[s].backward, blocks[upstream].backward,
                    blocks[s].returned);
        }
        upstream = s;
      }
    }
  }

  /// Edges from block `out` at one stop to block `in` at another, through a block of transfers
  /// where there is one.
  void lower_hop(const Flow& flow, std::size_t from, std::size_t to, std::int32_t out,
                 std::int32_t in, std::int32_t transfers) {
    ++hop_;
    for (std::int32_t j = 0; j < size_of(flow.works); ++j) {
      if (transfers == kNone) {
        add_edge(TaskId{out + j}, TaskId{in + j});
        continue;
      }
      const WorkId work = flow.works[static_cast<std::size_t>(j)];
      HopCost& memo = hop_costs_[static_cast<std::size_t>(flows_.shape[work.row()])];
      if (memo.hop != hop_) {
        // The cost is asked for in the direction of the forward.
        const Stop& first = flow.stops[std::min(from, to)];
        const Stop& second = flow.stops[std::max(from, to)];
        const Work& w = draft_.works[work.row()];
        memo.hop = hop_;
        memo.cost = costs_.transfer(chunk(first), chunk(second), w, w, batch_);
      }
      const TaskId transfer{transfers + j};
      graph_.tasks[transfer.row()] =
          transfer_task(flow.stops[from], flow.stops[to], work, memo.cost);
      add_edge(TaskId{out + j}, transfer);
      add_edge(transfer, TaskId{in + j});
    }
  }

  /// The output of one module's work becomes the input of another's; the gradient comes back.
  void lower_link(const Link& link) {
    const Place from_place = flows_.places[link.from.row()];
    const Place to_place = flows_.places[link.to.row()];
    const Stop& from = flow_of(link.from).stops.back();
    const Stop& to = flow_of(link.to).stops.front();
    const Blocks& out = blocks_[static_cast<std::size_t>(from_place.flow)].back();
    const Blocks& in = blocks_[static_cast<std::size_t>(to_place.flow)].front();
    TransferCost cost;
    if (from.rank != to.rank) {
      cost = costs_.transfer(chunk(from), chunk(to), draft_.works[link.from.row()],
                             draft_.works[link.to.row()], batch_);
    }
    connect(TaskId{out.forward + from_place.position}, TaskId{in.forward + to_place.position},
            transfer_task(from, to, link.from, cost));
    if (from.backward) {
      connect(TaskId{in.backward + to_place.position}, TaskId{out.backward + from_place.position},
              transfer_task(to, from, link.to, cost));
    }
  }

  void connect(TaskId out, TaskId in, const Task& transfer) {
    if (transfer.rank == transfer.peer) {
      add_edge(out, in);
      return;
    }
    const TaskId id{graph_.tasks.size()};
    graph_.tasks.push_back(transfer);
    add_edge(out, id);
    add_edge(id, in);
  }

  [[nodiscard]] const Chunk& chunk(const Stop& stop) const {
    return draft_.placement.chunks[stop.chunk.row()];
  }

  static Task transfer_task(const Stop& from, const Stop& to, WorkId work,
                            const TransferCost& cost) {
    return {.op = Op::Transfer,
            .lane = Lane::Comm,
            .rank = from.rank,
            .peer = to.rank,
            .chunk = from.chunk,
            .work = work,
            .fixed = cost.occupied,
            .latency = cost.latency,
            .bytes = cost.bytes};
  }

  const Draft& draft_;
  const Batch& batch_;
  const CostSource& costs_;
  Flows flows_;
  Epilogue epilogue_;
  std::vector<std::vector<Blocks>> blocks_;  ///< per flow and stop
  std::vector<PassCost> pass_costs_;         ///< row layer set, column shape
  Numbering strategy_sets_;
  std::vector<std::int32_t> first_strategy_of_set_;
  std::vector<HopCost> hop_costs_;  ///< per shape
  int hop_ = 0;
  std::vector<Duration>
      shortest_last_;  ///< per chunk, of its last passes under any strategy; max: none
  bool offloads_;      ///< pairs with a backward have copies
  std::size_t expected_tasks_ = 0;
  std::size_t expected_edges_ = 0;
  TaskGraph graph_;
};

}  // namespace

TaskGraph lower_draft(const Draft& draft, const Batch& batch, const CostSource& costs) {
  TaskGraph graph = Lowerer(draft, batch, costs).run();
  if (draft.gather_weights) {
    add_weight_traffic(graph, costs, costs.reshards());
  }
  return graph;
}

}  // namespace dipsim
