// SPDX-License-Identifier: Apache-2.0
// What people read on a pass: its microbatch, its module, its rank.
#pragma once

#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dipsim {

class TaskNames {
 public:
  /// `graph` must outlive the names.
  explicit TaskNames(const TaskGraph& graph);

  /// The microbatch of a work: "3"; "3b" for its second slice, "3+5" for several ones, "3'" in the
  /// next iteration.
  [[nodiscard]] const std::string& microbatch(WorkId work) const { return works_[work.row()]; }

  /// Modules of a chunk: "vit", or "vit+llm" where it is mixed.
  [[nodiscard]] const std::string& modules(ChunkId chunk) const {
    return module_sets_[module_set(chunk)];
  }

  /// Number of the chunk's set of modules: its colour. Sets of one module have the module's own.
  [[nodiscard]] std::size_t module_set(ChunkId chunk) const { return set_of_chunk_[chunk.row()]; }

  /// Name of every set of modules.
  [[nodiscard]] const std::vector<std::string>& module_sets() const { return module_sets_; }

  /// "F mb3b vit", "transfer mb3b vit to rank 2", "collective".
  [[nodiscard]] std::string task(TaskId id) const;

  [[nodiscard]] std::size_t ranks() const { return graph_.placement.ranks.size(); }

  /// "rank 5", and its replica where there are several.
  [[nodiscard]] std::string rank(RankId id) const;

 private:
  void name_works();
  void name_module_sets();

  const TaskGraph& graph_;
  bool several_replicas_;
  std::vector<std::string> works_;
  std::vector<std::string> module_sets_;
  std::vector<std::size_t> set_of_chunk_;
};

}  // namespace dipsim
