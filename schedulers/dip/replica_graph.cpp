// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/replica_graph.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/adjacency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace dipsim::dip {

namespace {

constexpr std::string_view kWhere = "dip";

/// Where a task of the graph went: a pass of one of the replicas.
struct Local {
  std::size_t replica = 0;
  Index pass = ReplicaGraph::kNone;
};

/// Group, then slice, then place in the flow: the natural order of pairs.
struct PairKey {
  MicrobatchId microbatch;
  ModuleId module;
  WorkId work;
  ChunkId chunk;
  friend auto operator<=>(const PairKey&, const PairKey&) = default;
};

PairKey key_of(const TaskGraph& graph, PairId id) {
  const Task& f = graph.task(graph.pair(id).f);
  const Work& work = graph.works[f.work.row()];
  const MicrobatchId first = work.portions.empty() ? MicrobatchId{} : work.portions[0].microbatch;
  return {.microbatch = first, .module = work.module, .work = f.work, .chunk = f.chunk};
}

/// The pass until which a pair holds what its forward keeps: B, or I where the backward is split,
/// or W where nothing upstream wants a gradient.
TaskId backward_of(const Pair& pair) {
  if (pair.b.valid()) {
    return pair.b;
  }
  return pair.i.valid() ? pair.i : pair.w;
}

/// Joins pairs that edges connect.
class Components {
 public:
  explicit Components(std::size_t pairs) : parent_(pairs) {
    std::iota(parent_.begin(), parent_.end(), Index{0});
  }

  Index root(Index pair) {
    while (parent_[pair] != pair) {
      parent_[pair] = parent_[parent_[pair]];
      pair = parent_[pair];
    }
    return pair;
  }

  void join(Index a, Index b) { parent_[root(a)] = root(b); }

 private:
  std::vector<Index> parent_;
};

class Builder {
 public:
  explicit Builder(const TaskGraph& graph)
      : graph_(graph), successors_(graph), local_(graph.tasks.size()) {}

  std::vector<ReplicaGraph> build() {
    check_cells();
    add_ranks();
    add_pairs();
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      add_hops(r);
      add_components(replicas_[r]);
    }
    check_edges();
    return std::move(replicas_);
  }

 private:
  /// What the options of a pair depend on: replica, strategies, speed, and the fixed times of F, of
  /// the backward, of W and of the copies.
  using OptionKey = std::tuple<int, StrategyId, std::int32_t, double, Duration, Duration, Duration,
                               Duration, Duration>;

  /// Where the options of a pair stand.
  struct OptionRows {
    Index first = 0;
    Index count = 0;
    Index first_offload = 0;
    Index offload_count = 0;
  };

  void check_cells() const {
    std::set<CellId> taken;
    for (std::size_t r = 0; r < graph_.placement.ranks.size(); ++r) {
      const std::vector<CellId>& cells = graph_.placement.ranks[r].cells;
      if (cells.size() != 1 || !taken.insert(cells.front()).second) {
        fail_input(std::string(kWhere),
                   fmt::format("rank {} has {} cells{}; dip plans for ranks with one cell each, "
                               "which no other rank shares",
                               r, cells.size(), cells.size() == 1 ? " and shares it" : ""));
      }
    }
  }

  void add_ranks() {
    std::map<int, std::size_t> numbers;
    for (const Rank& rank : graph_.placement.ranks) {
      numbers.emplace(rank.replica, 0);
    }
    for (auto& [replica, row] : numbers) {
      row = replicas_.size();
      replicas_.emplace_back().replica = replica;
    }
    const std::vector<Bytes> fixed = static_memory(graph_.placement);
    for (std::size_t r = 0; r < graph_.placement.ranks.size(); ++r) {
      const Rank& rank = graph_.placement.ranks[r];
      ReplicaGraph& replica = replicas_[numbers.at(rank.replica)];
      rank_replica_.push_back(numbers.at(rank.replica));
      rank_row_.push_back(static_cast<Index>(replica.ranks.size()));
      replica.ranks.emplace_back(r);
      replica.room.push_back((rank.memory_limit - fixed[r]).count);
    }
  }

  void add_pairs() {
    std::vector<std::vector<PairId>> of_replica(replicas_.size());
    for (std::size_t i = 0; i < graph_.pairs.size(); ++i) {
      of_replica[rank_replica_[graph_.task(graph_.pairs[i].f).rank.row()]].emplace_back(i);
    }
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      std::ranges::sort(of_replica[r], {},
                        [&](PairId id) { return std::pair(key_of(graph_, id), id); });
      replicas_[r].pairs = std::move(of_replica[r]);
      add_passes(r);
    }
  }

  void add_passes(std::size_t replica) {
    ReplicaGraph& out = replicas_[replica];
    const auto pairs = static_cast<Index>(out.pairs.size());
    out.backward.assign(pairs, ReplicaGraph::kNone);
    for (Index pair = 0; pair < pairs; ++pair) {
      add_pass(replica, pair, graph_.pair(out.pairs[pair]).f);
      add_options(out, pair);
      out.chunk.push_back(graph_.task(graph_.pair(out.pairs[pair]).f).chunk);
    }
    for (Index first = 0; first < pairs;) {
      const Index last = end_of_run(out, first, /*same_work=*/false);
      const PairKey key = key_of(graph_, out.pairs[first]);
      Group group{.microbatch = key.microbatch,
                  .module = key.module,
                  .first_forward = first,
                  .last_forward = last};
      group.first_backward = static_cast<Index>(out.tasks.size());
      add_backwards(replica, first, last);
      group.last_backward = static_cast<Index>(out.tasks.size());
      out.groups.push_back(group);
      first = last;
    }
    add_weights(replica);
  }

  /// The W of all pairs, in the order of their backwards.
  void add_weights(std::size_t replica) {
    ReplicaGraph& out = replicas_[replica];
    out.first_weight = out.passes.size();
    out.weight.assign(out.pairs.size(), ReplicaGraph::kNone);
    for (std::size_t backward = out.pairs.size(); backward < out.first_weight; ++backward) {
      const Index pair = out.passes[backward].pair;
      const Pair& of_graph = graph_.pair(out.pairs[pair]);
      if (of_graph.i.valid() && of_graph.w.valid()) {
        out.weight[pair] = static_cast<Index>(out.passes.size());
        add_pass(replica, pair, of_graph.w);
      }
    }
  }

  /// End of the run of pairs that belong to the group (or even the work) of `first`.
  [[nodiscard]] Index end_of_run(const ReplicaGraph& replica, Index first, bool same_work) const {
    const PairKey key = key_of(graph_, replica.pairs[first]);
    Index last = first;
    while (last < replica.pairs.size()) {
      const PairKey other = key_of(graph_, replica.pairs[last]);
      if (other.microbatch != key.microbatch || other.module != key.module ||
          (same_work && other.work != key.work)) {
        break;
      }
      ++last;
    }
    return last;
  }

  /// Backwards of the pairs [first, last) of one group: work by work, each against the flow.
  void add_backwards(std::size_t replica, Index first, Index last) {
    ReplicaGraph& out = replicas_[replica];
    while (first < last) {
      const Index next = end_of_run(out, first, /*same_work=*/true);
      for (Index pair = next; pair-- > first;) {
        if (const TaskId b = backward_of(graph_.pair(out.pairs[pair])); b.valid()) {
          out.backward[pair] = static_cast<Index>(out.tasks.size());
          add_pass(replica, pair, b);
        }
      }
      first = next;
    }
  }

  void add_pass(std::size_t replica, Index pair, TaskId id) {
    ReplicaGraph& out = replicas_[replica];
    const Task& task = graph_.task(id);
    local_[id.row()] = {.replica = replica, .pass = static_cast<Index>(out.tasks.size())};
    out.tasks.push_back(id);
    out.passes.push_back({.rank = rank_row_[task.rank.row()], .pair = pair});
    out.transient.push_back(task.transient.count);
  }

  void add_options(ReplicaGraph& out, Index row) {
    const Pair& pair = graph_.pair(out.pairs[row]);
    const Task& f = graph_.task(pair.f);
    const Task* b = backward_of(pair).valid() ? &graph_.task(backward_of(pair)) : nullptr;
    const Task* w = pair.i.valid() && pair.w.valid() ? &graph_.task(pair.w) : nullptr;
    const Task* copy_out = pair.copy_out.valid() ? &graph_.task(pair.copy_out) : nullptr;
    const Task* copy_in = pair.copy_in.valid() ? &graph_.task(pair.copy_in) : nullptr;
    const auto fixed_of = [](const Task* task) {
      return task == nullptr ? Duration{-1} : task->fixed;
    };
    const OptionKey key(out.replica, pair.first_strategy, pair.strategy_count,
                        graph_.rank(f.rank).speed, f.fixed, fixed_of(b), fixed_of(w),
                        fixed_of(copy_out), fixed_of(copy_in));
    const auto [known, fresh] = option_rows_.try_emplace(key);
    OptionRows& rows = known->second;
    if (fresh) {
      rows.first = static_cast<Index>(out.options.size());
      rows.first_offload = static_cast<Index>(out.offload_options.size());
      for (const Strategy& s : graph_.allowed(pair)) {
        PairOption option{.forward = at_speed(graph_, f, f.fixed + s.f).count(),
                          .mode = s.mode,
                          .strategy = static_cast<Index>(&s - graph_.allowed(pair).data()),
                          .held = s.f_to_i.count};
        if (b != nullptr) {
          option.backward = at_speed(graph_, *b, b->fixed + time_of(s, b->op)).count();
          option.rebuilt = b->op == Op::W ? 0 : s.rebuilt.count;
        }
        if (w != nullptr) {
          option.weight = at_speed(graph_, *w, w->fixed + s.w).count();
          option.kept = s.i_to_w.count;
        }
        if (s.mode != RecomputeMode::Offload) {
          out.options.push_back(option);
        } else if (copy_out != nullptr && b != nullptr) {
          out.offload_options.push_back({.option = option,
                                         .out = (copy_out->fixed + s.copy).count(),
                                         .in = (copy_in->fixed + s.copy).count(),
                                         .away = s.offload.count});
        }
      }
      rows.count = static_cast<Index>(out.options.size()) - rows.first;
      rows.offload_count = static_cast<Index>(out.offload_options.size()) - rows.first_offload;
      if (rows.count == 0) {
        fail_input(std::string(kWhere),
                   describe(graph_, pair.f) + " can only offload; dip needs another strategy");
      }
    }
    out.first_option.push_back(rows.first);
    out.option_count.push_back(rows.count);
    out.first_offload.push_back(rows.first_offload);
    out.offload_count.push_back(rows.offload_count);
  }

  void add_hops(std::size_t replica) {
    ReplicaGraph& out = replicas_[replica];
    std::map<std::pair<RankId, RankId>, Index> links;
    for (std::size_t p = 0; p < out.tasks.size(); ++p) {
      out.passes[p].first_hop = static_cast<Index>(out.hops.size());
      for (const TaskId next : successors_.of(out.tasks[p])) {
        const Task& task = graph_.task(next);
        if (task.op == Op::CopyOut) {
          add_hops_behind_copies(replica, next);
          continue;
        }
        if (task.op != Op::Transfer) {
          add_hop(replica, next, {});
          continue;
        }
        const auto fresh = static_cast<Index>(links.size());
        Hop hop{.link = links.try_emplace({task.rank, task.peer}, fresh).first->second,
                .occupied = task.fixed.count(),
                .latency = task.latency.count()};
        for (const TaskId target : successors_.of(next)) {
          if (add_hop(replica, target, hop)) {
            hop.link = Hop::kShared;
          }
        }
        if (hop.link != Hop::kShared) {
          fail_input(std::string(kWhere),
                     describe(graph_, next) + " carries nothing to a pass; dip can't time it");
        }
      }
      out.passes[p].last_hop = static_cast<Index>(out.hops.size());
    }
    out.links = links.size();
  }

  /// While a pair does not offload its copies take no time: what waits for them waits for its F.
  void add_hops_behind_copies(std::size_t replica, TaskId copy_out) {
    for (const TaskId copy_in : successors_.of(copy_out)) {
      for (const TaskId target : successors_.of(copy_in)) {
        add_hop(replica, target, {});
      }
    }
  }

  /// Whether `target` is a pass; what follows the passes does not matter to their order.
  bool add_hop(std::size_t replica, TaskId target, Hop hop) {
    if (!is_pass(graph_.task(target).op)) {
      return false;
    }
    const Local& local = local_[target.row()];
    if (local.replica != replica) {
      fail_input(std::string(kWhere), describe(graph_, target) +
                                          " waits for another replica; dip plans each on its own");
    }
    hop.to = local.pass;
    ++replicas_[replica].passes[local.pass].predecessors;
    replicas_[replica].hops.push_back(hop);
    return true;
  }

  static void add_components(ReplicaGraph& out) {
    Components sets(out.pairs.size());
    for (const Pass& pass : out.passes) {
      for (Index h = pass.first_hop; h < pass.last_hop; ++h) {
        sets.join(pass.pair, out.passes[out.hops[h].to].pair);
      }
    }
    std::vector<Index> number(out.pairs.size(), ReplicaGraph::kNone);
    for (Index pair = 0; pair < out.pairs.size(); ++pair) {
      Index& known = number[sets.root(pair)];
      if (known == ReplicaGraph::kNone) {
        known = static_cast<Index>(out.components++);
      }
      out.component.push_back(known);
    }
  }

  void check_edges() const {
    for (const Edge& edge : graph_.edges) {
      const Op from = graph_.task(edge.from).op;
      const bool own_copy =
          from == Op::CopyIn && graph_.task(edge.from).pair == graph_.task(edge.to).pair;
      if (is_pass(graph_.task(edge.to).op) && !is_pass(from) && from != Op::Transfer && !own_copy) {
        fail_input(std::string(kWhere), describe(graph_, edge.from) +
                                            " comes before a pass; dip orders graphs in "
                                            "which only transfers do");
      }
    }
  }

  const TaskGraph& graph_;
  Successors successors_;
  std::vector<ReplicaGraph> replicas_;
  std::vector<std::size_t> rank_replica_;
  std::vector<Index> rank_row_;
  std::vector<Local> local_;
  std::map<OptionKey, OptionRows> option_rows_;
};

}  // namespace

std::vector<ReplicaGraph> replica_graphs(const TaskGraph& graph) { return Builder(graph).build(); }

}  // namespace dipsim::dip
