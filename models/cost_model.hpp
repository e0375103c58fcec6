// SPDX-License-Identifier: Apache-2.0
// From operators to seconds and bytes.
#pragma once

#include "models/operators.hpp"
#include "models/placed_module.hpp"
#include "models/work_shape.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/ids.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace dipsim {

/// Time of one operator on one GPU of a rank that this module is placed on.
double operator_seconds(const Operator& op, const Cluster& cluster, const PlacedModule& module);

/// Time and memory of one part of a layer on one GPU. Passes that don't exist cost nothing: w of a
/// frozen module; i, and what is kept for it, where nothing upstream is trained either.
struct PartCost {
  double f = 0.0;  ///< seconds, so are the next three
  double i = 0.0;
  double w = 0.0;
  double selective = 0.0;             ///< of what selective recomputation runs again
  std::int64_t kept = 0;              ///< bytes kept from F to I when nothing is recomputed
  std::int64_t cheap = 0;             ///< part of it that selective recomputation drops
  std::int64_t layer_input = 0;       ///< bytes that full recomputation keeps
  std::int64_t held_for_weights = 0;  ///< bytes held from I to W
  std::int64_t transient = 0;         ///< bytes while a pass runs
};

PartCost cost_of(const PlacedModule& module, Part part, const WorkShape& shape,
                 const Cluster& cluster, LayerKind kind = {});

/// The parts of a module.
struct ModuleCost {
  PartCost first;
  std::array<PartCost, kLayerKinds> blocks;  ///< by LayerKind::index(); zero where there are none
  PartCost last;

  [[nodiscard]] const PartCost& block(LayerKind kind) const { return blocks[kind.index()]; }
};

/// Remembers the costs of every (module, work shape). Thread-safe.
class CostTable {
 public:
  CostTable(std::vector<PlacedModule> modules, Cluster cluster);

  [[nodiscard]] const std::vector<PlacedModule>& modules() const { return modules_; }

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

  /// Valid as long as the table.
  [[nodiscard]] const ModuleCost& of(ModuleId module, const WorkShape& shape) const;

 private:
  std::vector<PlacedModule> modules_;
  Cluster cluster_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<ModuleId, WorkShape>, ModuleCost> known_;  ///< nodes never move
};

}  // namespace dipsim
