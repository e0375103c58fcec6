// SPDX-License-Identifier: Apache-2.0
// How the copies of a module share the data of a step.
#pragma once

#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace dipsim {

/// Microbatches of one replica that its modules work on together.
using MicrobatchStep = std::vector<MicrobatchId>;

/// The microbatches of each replica in steps of `microbatches`; the last step may have fewer. Row:
/// replica.
std::vector<std::vector<MicrobatchStep>> steps_of(const Batch& batch, int replicas,
                                                  int microbatches);

/// What a single instance of each module takes, F and B of all its layers. Remembers what it has
/// costed, for one batch.
class InstanceTimes {
 public:
  /// `lowering` and `batch` must outlive it.
  InstanceTimes(const Lowering& lowering, const Batch& batch, RecomputeMode mode)
      : lowering_(lowering), batch_(batch), mode_(mode) {}

  std::int64_t of(MicrobatchId microbatch, ModuleId module, int instance);

 private:
  const Lowering& lowering_;
  const Batch& batch_;
  RecomputeMode mode_;
  std::map<std::vector<std::int64_t>, std::int64_t> known_;  ///< by module and sizes
};

/// Deals all instances of a module in a step to `copies`: the longest first, each to the copy with
/// least so far (longest processing time first, Graham 1969: at most 4/3 of the best largest sum).
/// Per copy its portions, ascending; equal instances keep their order.
std::vector<std::vector<Portion>> deal(const Batch& batch, const MicrobatchStep& step,
                                       ModuleId module, int copies, InstanceTimes& times);

}  // namespace dipsim
