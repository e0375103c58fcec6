// SPDX-License-Identifier: Apache-2.0
// What memory holds, by name: docs/metrics.md, "Memory by contents".
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dipsim {

/// Bytes on each GPU of a rank at one instant.
struct MemoryContents {
  Bytes weights{};  ///< one per weight set
  Bytes gradients{};
  Bytes optimizer{};    ///< state of the optimizer
  Bytes activations{};  ///< kept from F to B (or I), less what is in host memory
  Bytes kept_for_w{};   ///< kept from I to W
  Bytes rebuilt{};      ///< brought back by recomputation during B (or I)
  Bytes scratch{};      ///< of the running pass: gathered tokens, logits
  Bytes gathered{};     ///< sharded weights gathered for passes, and whole gradients
  Bytes reserved{};     ///< Rank::reserved
  friend bool operator==(const MemoryContents&, const MemoryContents&) = default;

  [[nodiscard]] Bytes total() const;
};

/// The parts of MemoryContents, in its order: as keys, and as people read them.
struct MemoryPart {
  std::string_view key;
  std::string_view title;
  std::string_view meaning;
  Bytes MemoryContents::* member;
};

inline constexpr std::array<MemoryPart, 9> kMemoryParts = {{
    {"weights", "weights", "parameters of the rank's layers", &MemoryContents::weights},
    {"gradients", "gradients", "buffers of gradients", &MemoryContents::gradients},
    {"optimizer", "optimizer", "optimizer state", &MemoryContents::optimizer},
    {"activations", "activations", "kept from F to the backward", &MemoryContents::activations},
    {"kept_for_w", "kept for W", "inputs and output gradients of products, from I to W",
     &MemoryContents::kept_for_w},
    {"rebuilt", "rebuilt", "brought back by recomputation during the backward",
     &MemoryContents::rebuilt},
    {"scratch", "scratch", "of the running pass: gathered tokens, logits",
     &MemoryContents::scratch},
    {"gathered", "gathered", "sharded weights gathered for passes, and whole gradients",
     &MemoryContents::gathered},
    {"reserved", "reserved",
     "context, communication buffers, library workspaces, fragmentation (the cluster's "
     "reserved_gib)",
     &MemoryContents::reserved},
}};

/// What each rank holds at its instant: `at` has one per rank. Sums exactly to the curve that
/// memory_curves() gives.
std::vector<MemoryContents> memory_contents(const TaskGraph& graph, const Schedule& schedule,
                                            std::span<const Span> spans, std::span<const Time> at);

/// The pass that each rank runs at its instant; none where it idles.
std::vector<TaskId> passes_at(const TaskGraph& graph, std::span<const Span> spans,
                              std::span<const Time> at);

/// Stretches of a rank's iteration. Warm-up: from its first pass to its first backward. Steady:
/// from there to the end of its last forward. Cool-down: from there, or from its first backward
/// where that is later, to the end of its last pass. A rank without backwards warms up throughout.
enum class MemoryPhase : std::uint8_t { Static, WarmUp, Steady, CoolDown, Optimizer };

inline constexpr std::array<std::string_view, 5> kMemoryPhases = {"static", "warm_up", "steady",
                                                                  "cool_down", "optimizer"};

/// The first instant of the most that each rank holds in the phase; none where the phase is empty.
std::vector<std::optional<Time>> phase_peaks(const TaskGraph& graph, const Timeline& timeline,
                                             MemoryPhase phase);

/// What each rank holds at its peak in the phase; nothing where the phase is empty.
std::vector<std::optional<MemoryContents>> phase_contents(const TaskGraph& graph,
                                                          const Schedule& schedule,
                                                          const Timeline& timeline,
                                                          MemoryPhase phase);

}  // namespace dipsim
