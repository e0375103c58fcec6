// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// One thing that a module processes: an image, a clip, a packed sequence.
struct Instance {
  std::int32_t tokens = 0;          ///< tokens (patches) inside the module
  std::int32_t output_tokens = 0;   ///< tokens handed to the next module (after a merge)
  std::int32_t context_tokens = 0;  ///< tokens that cross attention looks at; 0: none
  std::int32_t first_group = 0;     ///< its attention groups in Batch::groups
  std::int32_t group_count = 0;
  friend bool operator==(const Instance&, const Instance&) = default;
};

/// One iteration's data after packing: for each microbatch and module the instances.
struct Batch {
  std::size_t modules = 0;
  std::vector<std::int32_t> replica;  ///< per microbatch: the replica that it belongs to
  Rows<Instance> instances;           ///< row microbatch * modules + module
  std::vector<std::int32_t> groups;   ///< lengths of the sequences that attend to themselves only

  [[nodiscard]] std::size_t microbatches() const { return replica.size(); }

  [[nodiscard]] std::span<const Instance> of(MicrobatchId microbatch, ModuleId module) const {
    return instances[microbatch.row() * modules + module.row()];
  }

  [[nodiscard]] std::span<const std::int32_t> groups_of(const Instance& instance) const {
    return std::span(groups).subspan(static_cast<std::size_t>(instance.first_group),
                                     static_cast<std::size_t>(instance.group_count));
  }

  friend bool operator==(const Batch&, const Batch&) = default;
};

}  // namespace dipsim
