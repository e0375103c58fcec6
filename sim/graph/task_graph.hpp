// SPDX-License-Identifier: Apache-2.0
// The core types: what exists (ranks, chunks, works) and what must be done (tasks, pairs, edges).
// docs/model.md explains them with pictures; the vocabulary is in the README's glossary.
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/rows.hpp"
#include "sim/core/units.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// One pipeline rank: the group of tp × cp GPUs on which a chunk runs.
struct Rank {
  int replica = 0;            ///< data-parallel copy that it belongs to
  int position = 0;           ///< place along the pipeline inside its replica, from 0
  int tp = 1;                 ///< tensor-parallel GPUs
  int cp = 1;                 ///< context-parallel GPUs
  std::vector<CellId> cells;  ///< smallest GPU sets that it occupies while computing; plain case: 1
  Bytes memory_limit{};       ///< usable bytes of each of its GPUs
  Bytes reserved{};           ///< framework, communication and library buffers per GPU
  double speed = 1.0;         ///< times on its compute lane are divided by this
  friend bool operator==(const Rank&, const Rank&) = default;
};

/// Layers [first, first + count) of one module.
struct LayerRange {
  ModuleId module{};
  int first = 0;
  int count = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// Consecutive layers, possibly of several modules, whose weights live on one rank.
struct Chunk {
  std::vector<LayerRange> layers{};  ///< in flow order; several ranges make a mixed chunk
  RankId rank{};
  int weight_set = 0;  ///< chunks with equal weight_set on equal rank position share parameters
  int copy = 0;        ///< which of several placements of the same layers (bidirectional: 0 and 1)
  Bytes weights{};     ///< per GPU; so are the next two
  Bytes gradients{};
  Bytes optimizer{};
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// One fact behind a placement, for `describe`: ("K vit", "2: 24.1 ms over 11.0 ms").
struct Note {
  std::string name;
  std::string text;
  friend bool operator==(const Note&, const Note&) = default;
};

/// Where everything lives. Chunks stand in flow order: replica by replica, and inside a replica
/// module by module from the first layer to the last.
struct Placement {
  Rows<GpuId> cells;
  std::vector<Rank> ranks;
  std::vector<Chunk> chunks;
  Rows<RankId> groups;               ///< ranks that take part in a collective together
  std::vector<int> slice_instances;  ///< per module: instances per slice; 0: whole microbatches
  int step_microbatches = 1;         ///< of a replica that the copies of modules share at a time
  std::vector<Note> notes;           ///< the numbers behind the choices
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Instances [first, first + count) of a module in one microbatch.
struct Portion {
  MicrobatchId microbatch{};
  int first = 0;
  int count = 0;
  friend bool operator==(const Portion&, const Portion&) = default;
};

/// What one pass processes: a slice of a microbatch, a whole one, or portions of several.
struct Work {
  int iteration = 0;  ///< 1 for work of the next iteration that is done early
  int replica = 0;
  ModuleId module{};       ///< none: every module of the microbatch, as mixed chunks need it
  int sequence_piece = 0;  ///< position of this piece where one sequence is cut into several
  int copy = 0;            ///< flows through the chunks of this copy
  std::vector<Portion> portions;
  friend bool operator==(const Work&, const Work&) = default;
};

/// GPUs that a module has for itself in each replica: `copies` pipelines of `pp` ranks of `tp`
/// GPUs. The copies hold the same layers, share the data of their replica and add up their
/// gradients.
struct ModuleGroup {
  int tp = 1;
  int pp = 1;
  int copies = 1;

  [[nodiscard]] int ranks() const { return pp * copies; }

  [[nodiscard]] int gpus() const { return tp * pp * copies; }

  friend bool operator==(const ModuleGroup&, const ModuleGroup&) = default;
};

/// Which work exists on which placement: what a planner asks a Lowering to turn into tasks.
struct Draft {
  Placement placement;
  std::vector<Work> works;
  std::vector<ModuleGroup> groups{};  ///< per module, where modules have GPUs of their own
  bool split_backward = false;        ///< backward as I and W instead of B
  /// With split_backward: for each strategy another one that does W inside I, which holds nothing
  /// for it and leaves W no time.
  bool weights_at_once = false;
  bool gather_weights = false;  ///< weights are sharded over the replicas and gathered per pass
  bool layer_mixes = false;     ///< strategies in which the layers of a chunk recompute differently
  /// For every pair with a backward its two copies, and a strategy that offloads what it keeps,
  /// where the cost source has a link to host memory.
  bool offload = false;
};

/// What a task does. F forward, I backward for inputs, W backward for weights, B = I and W fused
/// (PyTorch's letters; the zero-bubble papers write B for I).
enum class Op : std::uint8_t {
  F,
  I,
  W,
  B,
  Transfer,    ///< `rank` sends `bytes` to `peer`
  Reshard,     ///< changes the layout of a tensor between two groups
  Collective,  ///< reduction or exchange over `group`
  Gather,      ///< parameters gathered over `group` before use
  Scatter,     ///< gradients reduced and scattered over `group`
  CopyOut,     ///< activations to host memory
  CopyIn,      ///< and back
  Optimizer,   ///< parameter update of `rank`
};

inline constexpr std::size_t kOpCount = 12;

std::string_view name_of(Op op);

/// F, I, W and B: the tasks whose order per cell is the schedule.
constexpr bool is_pass(Op op) { return op <= Op::B; }

/// The hardware queue of a rank that a task occupies.
enum class Lane : std::uint8_t { Compute, Comm, Gradient, DeviceToHost, HostToDevice };

inline constexpr std::size_t kLaneCount = 5;

/// One unit of execution. A pass takes the time that the chosen strategy of its pair gives it;
/// every other task takes `fixed`.
struct Task {
  Op op = Op::F;
  Lane lane = Lane::Compute;
  RankId rank{};
  RankId peer{};        ///< Transfer: the receiver
  ChunkId chunk{};      ///< passes and what belongs to one chunk
  WorkId work{};        ///< passes and transfers
  PairId pair{};        ///< passes and copies
  GroupId group{};      ///< collectives: one task per group; starts when all members are ready
  Duration fixed{0};    ///< time for which its lane (Transfer: its link) is occupied
  Duration latency{0};  ///< Transfer: from the end of the occupation to arrival
  Duration fillable_idle{0};  ///< communication gaps inside that other work may use
  Bytes bytes{};              ///< sent by a Transfer, reduced by a Collective, copied by a copy
  Bytes transient{};          ///< extra memory while it runs
  friend bool operator==(const Task&, const Task&) = default;
};

/// How a pair keeps its activations, from fastest to most saving.
enum class RecomputeMode : std::uint8_t { Keep, Selective, Full, Offload, Mixed };

std::string_view name_of(RecomputeMode mode);

/// What a pair costs and holds, per GPU of its rank.
struct Strategy {
  RecomputeMode mode = RecomputeMode::Keep;
  Duration f{0}, i{0}, w{0}, b{0};  ///< pass times, recomputation included
  Duration copy{0};                 ///< of each copy, out and in
  Bytes f_to_i{};                   ///< held from the start of F to the end of I (or B)
  Bytes i_to_w{};                   ///< held from the end of I to the end of W
  Bytes rebuilt{};                  ///< held during I (or B) only: what recomputation brings back
  Bytes offload{};  ///< part of f_to_i that is in host memory between the two copies
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// An F task and its own backward. Either `b`, or `i` and `w`, or none of them (frozen, nothing
/// to train upstream) is valid. Its allowed strategies are the `strategy_count` ones that start at
/// `first_strategy`, fastest first; pairs of equal cost share them.
struct Pair {
  TaskId f{}, i{}, w{}, b{};
  TaskId copy_out{}, copy_in{};
  StrategyId first_strategy{};
  std::int32_t strategy_count = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};

/// `to` starts after `from` has ended. All precedence is in edges: F → Transfer → next F, F → B …
struct Edge {
  TaskId from{}, to{};
  friend bool operator==(const Edge&, const Edge&) = default;
};

/// A forward and a backward that may run as one slot taking `together` (DualPipe).
struct Overlap {
  TaskId f{}, b{};
  Duration together{0};
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// Everything that one iteration must do. Complete in itself: neither the model nor the dataset
/// is needed to run it.
struct TaskGraph {
  Placement placement;
  std::vector<std::string> module_names;
  std::vector<Work> works;
  std::vector<Task> tasks;
  std::vector<Edge> edges;
  std::vector<Pair> pairs;
  std::vector<Strategy> strategies;
  std::vector<Overlap> overlaps;
  double model_flops = 0.0;       ///< useful FLOPs of all replicas: no recomputation; 0 unknown
  double peak_flops_per_s = 0.0;  ///< of all GPUs together; 0 unknown
  friend bool operator==(const TaskGraph&, const TaskGraph&) = default;

  [[nodiscard]] const Task& task(TaskId id) const { return tasks[id.row()]; }

  [[nodiscard]] const Pair& pair(PairId id) const { return pairs[id.row()]; }

  [[nodiscard]] const Strategy& strategy(StrategyId id) const { return strategies[id.row()]; }

  [[nodiscard]] const Rank& rank(RankId id) const { return placement.ranks[id.row()]; }

  [[nodiscard]] const Chunk& chunk(ChunkId id) const { return placement.chunks[id.row()]; }

  /// The allowed strategies of a pair, fastest first.
  [[nodiscard]] std::span<const Strategy> allowed(const Pair& pair) const {
    return {strategies.data() + pair.first_strategy.row(),
            static_cast<std::size_t>(pair.strategy_count)};
  }
};

/// What a strategy adds to Task::fixed: the pass or copy time of this op; zero for other ops.
Duration time_of(const Strategy& strategy, Op op);

/// `nominal` time of a task on its rank: the compute lane runs at the speed of the rank, links and
/// copies do not.
Duration at_speed(const TaskGraph& graph, const Task& task, Duration nominal);

/// Time of a task under the strategies chosen per pair, at the speed of its rank; of a transfer,
/// the time for which it occupies its link.
Duration duration_of(const TaskGraph& graph, TaskId task, std::span<const StrategyId> chosen);

/// Bytes on each GPU before the first pass, per rank: weights (one per weight set), gradients,
/// optimizer state and the reserve.
std::vector<Bytes> static_memory(const Placement& placement);

/// "F chunk 3 work 12 on rank 1", for messages.
std::string describe(const TaskGraph& graph, TaskId task);

/// Throws Input naming the first broken rule: ids out of range, a pass without pair, a transfer
/// without a peer or whose predecessors are not exactly one pass on its own rank, negative times or
/// sizes, sums that overflow 64 bits. Readers of files call it; lowerings are tested with it.
void validate(const TaskGraph& graph);

}  // namespace dipsim
