// SPDX-License-Identifier: Apache-2.0
// What the user asks for: a model on a cluster, fed with a trace, under some schedules.
#pragma once

#include "sim/cluster/slow_gpus.hpp"
#include "sim/graph/engine_options.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

struct ExperimentSpec {
  std::string model = "vlm-s";
  std::string cluster = "h800-64";
  std::string trace = "dip-images";
  std::string profile;  ///< file that replaces the profile of the cluster's GPU; "": as shipped
  std::vector<std::string> schedules = {"1f1b", "interleaved", "dip"};
  int iterations = 40;
  int microbatches = 64;  ///< per replica and iteration
  std::uint64_t seed = 1;
  bool compose = false;                          ///< samples are dealt anew to the microbatches
  std::optional<int> tp, pp, dp, cp, ep;         ///< none: the model's own
  std::optional<double> usable_memory_fraction;  ///< none: the cluster's own
  std::vector<SpeedEntry> slow_gpus;             ///< go before the cluster's own
  EngineOptions engine = {.contention = true};
};

/// Limits that keep a typing error from filling the memory.
inline constexpr int kMaxIterations = 100'000;
inline constexpr int kMaxMicrobatches = 65'536;
inline constexpr int kMaxParallel = 65'536;

/// The steps of the ablation of the DIP paper (ASPLOS'26, arXiv 2504.14145, evaluation), each with
/// one more part of DIP: Megatron's interleaved schedule; DIP's slices and segments in Megatron's
/// order; the dual-queue interleaver; the ordering search; and the memory choice in place of full
/// recomputation.
std::vector<std::string> ablation_schedules();

/// Reads an experiment file (docs/config.md). Throws Input.
ExperimentSpec read_experiment(const std::filesystem::path& path);

/// Throws Input on numbers out of range, an empty list of schedules or one named twice.
void check(const ExperimentSpec& spec);

/// The engine's options as inputs to print: how a run is repeated.
std::vector<Note> engine_notes(const EngineOptions& engine);

}  // namespace dipsim
