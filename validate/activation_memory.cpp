// SPDX-License-Identifier: Apache-2.0
// Analytic activation memory of GPT training (Korthikanti et al., arXiv 2205.05198).
#include "models/cost_model.hpp"
#include "sim/core/text.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

/// Table 3 of the paper; one replica.
struct GptSize {
  std::string_view name;
  int heads, hidden, layers, tp, pp, chunks, sequences;
};

constexpr std::array kSizes = {
    GptSize{"megatron-22B", 64, 6144, 48, 8, 1, 1, 4},
    GptSize{"gpt3-175B", 96, 12288, 96, 8, 8, 3, 1},
    GptSize{"turing-530B", 128, 20480, 105, 8, 35, 3, 1},
    GptSize{"megatron-1T", 160, 25600, 128, 8, 64, 1, 1},
};

struct Mode {
  std::string_view name;
  bool sequence_parallel;
  RecomputeMode recompute;
};

constexpr std::array kModes = {
    Mode{"none", false, RecomputeMode::Keep},     Mode{"seq", true, RecomputeMode::Keep},
    Mode{"sel", false, RecomputeMode::Selective}, Mode{"seqsel", true, RecomputeMode::Selective},
    Mode{"full", false, RecomputeMode::Full},
};

ModuleSpec spec_of(const GptSize& size) {
  return {.name = "gpt",
          .block = Block::Plain,
          .layers = size.layers,
          .hidden = size.hidden,
          .ffn = 4 * size.hidden,
          .heads = size.heads,
          .kv_groups = size.heads,
          .head_dim = size.hidden / size.heads,
          .attention = AttentionKernel::WrittenOut,
          .dropout = true,
          .vocabulary = 51'200};
}

TrainingRun run_of(const GptSize& size, const Mode& mode) {
  TrainingRun run;
  run.spec = spec_of(size);
  run.cluster = with_gpus(load_cluster("a100-64"), size.tp * size.pp);
  run.plan = {.tp = size.tp, .pp = size.pp, .sequence_parallel = mode.sequence_parallel, .zero = 0};
  run.recompute = mode.recompute;
  run.schedule = size.chunks > 1 ? "interleaved" : "1f1b";
  run.chunks_per_rank = size.chunks;
  run.sequence = 2048;
  run.sequences_per_microbatch = size.sequences;
  run.microbatches = 2 * size.pp;  // enough to fill the first rank
  return run;
}

/// Bytes that the blocks of the first rank hold at most: those of one block times blocks in flight.
double block_gib(const GptSize& size, const Mode& mode) {
  const TrainingRun run = run_of(size, mode);
  LmmModel model;
  model.modules.push_back(
      {.spec = run.spec, .inputs = {}, .mask = AttentionMask::Causal, .head = true});
  const std::int64_t tokens = std::int64_t{size.sequences} * run.sequence;
  const PartCost block = cost_of(place_modules(model, run.plan)[0], Part::Block,
                                 {.instances = size.sequences,
                                  .tokens = tokens,
                                  .output_tokens = tokens,
                                  .sequences = size.sequences,
                                  .squares = tokens * run.sequence},
                                 run.cluster);
  const std::int64_t bytes = mode.recompute == RecomputeMode::Full        ? block.layer_input
                             : mode.recompute == RecomputeMode::Selective ? block.kept - block.cheap
                                                                          : block.kept;
  const int blocks = size.layers / (size.pp * size.chunks) * predict(run).in_flight.front();
  return static_cast<double>(bytes) * blocks / (1024.0 * 1024.0 * 1024.0);
}

/// Weights, gradients and optimizer state of the blocks of a rank: 18 bytes per parameter.
double state_gib(const GptSize& size) {
  const TrainingState bytes;
  LmmModel model;
  model.modules.push_back({.spec = spec_of(size), .inputs = {}});
  const double parameters =
      parameters_of(place_modules(model, {})[0], Part::Block) * size.layers / (size.tp * size.pp);
  return parameters * (bytes.weights + bytes.gradients + bytes.optimizer) /
         (1024.0 * 1024.0 * 1024.0);
}

ValidationSet empty_set(const CsvTable& table, std::string name, std::string quantity,
                        std::string unit) {
  ValidationSet set;
  set.name = std::move(name);
  set.title = "GPT of 22B to 1T parameters on 8 to 512 A100, first pipeline rank";
  set.quantity = std::move(quantity);
  set.unit = std::move(unit);
  set.table = table.file();
  set.source = "arXiv:2205.05198 Figures 1 and 7, by their formulas";
  set.bar_percent = 3.0;
  set.claim_source = "Calculon (SC 2023), on these rows";
  set.notes = {
      "The paper's figures are formulas, not readings of an allocator. Blocks alone count."};
  return set;
}

}  // namespace

std::vector<ValidationSet> megatron_seqpar_memory(const CsvTable& table) {
  ValidationSet state = empty_set(table, "megatron_seqpar_memory state",
                                  "weights, gradients and optimizer state", "GiB");
  ValidationSet activations =
      empty_set(table, "megatron_seqpar_memory activations", "activations", "GiB");
  ValidationSet shares = empty_set(table, "megatron_seqpar_memory shares",
                                   "activations relative to no recomputation", "%");
  state.claim_percent = 8.49;
  activations.claim_percent = 2.08;
  shares.claim_percent = 6.69;
  for (const CsvRow& row : table.rows()) {
    const auto size = std::ranges::find(kSizes, row.text("model"), &GptSize::name);
    const auto mode = std::ranges::find(kModes, row.text("mode"), &Mode::name);
    if (size == kSizes.end() || mode == kModes.end()) {
      state.unusable.push_back({row.line(), "unknown model or mode"});
      continue;
    }
    ValidationRow out{.label = fmt::format("{}, {}", size->name, mode->name), .line = row.line()};
    if (const auto gib = row.number_if("params_plus_optimizer_gib", 1e-6)) {
      out.predicted = state_gib(*size);
      out.measured = *gib;
      state.rows.push_back(out);
    }
    if (const auto gib = row.number_if("activation_gib", 1e-6)) {
      out.predicted = block_gib(*size, *mode);
      out.measured = *gib;
      activations.rows.push_back(out);
    }
    if (const auto percent = row.number_if("activation_pct_of_none", 1e-6)) {
      out.predicted = 100.0 * block_gib(*size, *mode) / block_gib(*size, kModes.front());
      out.measured = *percent;
      shares.rows.push_back(out);
    }
  }
  return {std::move(state), std::move(activations), std::move(shares)};
}

}  // namespace dipsim
