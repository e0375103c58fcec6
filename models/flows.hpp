// SPDX-License-Identifier: Apache-2.0
// Which chunks each work of a draft passes, and which works feed which: the skeleton of a lowering.
#pragma once

#include "models/lower.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace dipsim {

/// Numbers equal keys equally, from 0, in the order in which they first appear.
class Numbering {
 public:
  std::int32_t of(const std::vector<std::int64_t>& key) {
    return numbers_.try_emplace(key, size()).first->second;
  }

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(numbers_.size()); }

 private:
  std::map<std::vector<std::int64_t>, std::int32_t> numbers_;
};

/// One chunk on the way of a work.
struct Stop {
  ChunkId chunk;
  RankId rank;
  std::vector<LayerRange> layers;  ///< the part of the chunk that the work runs through
  std::int32_t layer_set = 0;      ///< equal layers, equal number
  bool backward = false;           ///< I (or B) exists
  bool weights = false;            ///< W exists where backward is split
};

/// Works that pass the same chunks.
struct Flow {
  std::vector<Stop> stops;    ///< in the order of the forward
  std::vector<WorkId> works;  ///< ascending
};

/// The output of `from` is an input of `to`.
struct Link {
  WorkId from, to;
};

/// A work's place in its flow.
struct Place {
  std::int32_t flow = 0;
  std::int32_t position = 0;  ///< in Flow::works
};

struct Flows {
  std::vector<Flow> flows;
  std::vector<Place> places;        ///< per work
  std::vector<std::int32_t> shape;  ///< per work: equal module and instances, equal number
  std::vector<Link> links;          ///< by `to`, then by `from`
  std::int32_t layer_sets = 0;
  std::int32_t shapes = 0;
};

/// Throws Input where a work finds a layer of its modules on no chunk, or on several.
Flows find_flows(const Draft& draft, const Batch& batch, const CostSource& costs);

}  // namespace dipsim
