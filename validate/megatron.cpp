// SPDX-License-Identifier: Apache-2.0
// Megatron-LM with sequence parallelism on A100 (Korthikanti et al., arXiv 2205.05198).
#include "models/cost_model.hpp"
#include "models/model.hpp"
#include "models/placed_module.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/text.hpp"
#include "validate/sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxSize = 1'000'000;

/// One GPT layer without fused attention, as in 2022.
PlacedModule gpt_layer(const CsvRow& row, bool sequence_parallel) {
  const auto whole = [&](std::string_view column) {
    return static_cast<int>(row.whole(column, 1, kMaxSize));
  };
  const int hidden = whole("hidden");
  const int heads = whole("heads");
  const int tp = whole("tp");
  if (hidden % heads != 0 || heads % tp != 0) {
    row.fail("heads", fmt::format("{} heads do not share hidden {} evenly, or {} GPUs not them",
                                  heads, hidden, tp));
  }
  LmmModel model;
  model.modules.push_back({.spec = {.name = "gpt",
                                    .block = Block::Plain,
                                    .layers = whole("layers"),
                                    .hidden = hidden,
                                    .ffn = 4 * hidden,
                                    .heads = heads,
                                    .kv_groups = heads,
                                    .head_dim = hidden / heads,
                                    .attention = AttentionKernel::WrittenOut,
                                    .dropout = true},
                           .inputs = {},
                           .mask = AttentionMask::Causal});
  return place_modules(model, {.tp = tp, .sequence_parallel = sequence_parallel})[0];
}

/// How the rows run, as Table 4 names it.
struct Mode {
  std::string_view name;
  bool sequence_parallel;
  RecomputeMode recompute;
};

constexpr std::array kModes = {
    Mode{"baseline_no_recompute", false, RecomputeMode::Keep},
    Mode{"sequence_parallel", true, RecomputeMode::Keep},
    Mode{"full_recompute", false, RecomputeMode::Full},
    Mode{"selective_recompute", false, RecomputeMode::Selective},
    Mode{"selective_plus_sequence", true, RecomputeMode::Selective},
};

double backward_seconds(const PartCost& cost, RecomputeMode recompute) {
  double again = 0.0;
  if (recompute == RecomputeMode::Full) {
    again = cost.f;
  } else if (recompute == RecomputeMode::Selective) {
    again = cost.selective;
  }
  return cost.i + cost.w + again;
}

WorkShape shape_of_row(const CsvRow& row) {
  const std::int64_t count = row.whole("microbatch_seq", 1, kMaxSize);
  const std::int64_t length = row.whole("seq_len", 1, kMaxSize);
  return {.instances = count,
          .tokens = count * length,
          .output_tokens = count * length,
          .sequences = count,
          .squares = count * length * length};
}

}  // namespace

std::vector<ValidationSet> megatron_layer_times(const CsvTable& table) {
  ValidationSet set{.name = "megatron_seqpar_layer_times",
                    .title = "One layer of GPT 22B on 8 A100, by recompute mode",
                    .quantity = "time of a layer",
                    .unit = "ms",
                    .table = table.file(),
                    .source = "arXiv:2205.05198 Table 4",
                    .rows = {},
                    .fitted = {},
                    .unusable = {},
                    .others = {},
                    .claim_percent = {},
                    .claim_source = {},
                    .bar_percent = {},
                    .notes = {"No row is used in any fit."}};
  const Cluster cluster = load_cluster("a100-8");
  for (const CsvRow& row : table.rows()) {
    const auto* const mode = std::ranges::find(kModes, row.text("mode"), &Mode::name);
    if (mode == kModes.end()) {
      set.unusable.push_back(
          {.line = row.line(),
           .reason = fmt::format("mode \"{}\" is unknown", shortened(row.text("mode")))});
      continue;
    }
    const PartCost cost =
        cost_of(gpt_layer(row, mode->sequence_parallel), Part::Block, shape_of_row(row), cluster);
    const double tokens = static_cast<double>(shape_of_row(row).tokens);
    set.rows.push_back({.label = fmt::format("{}, forward", mode->name),
                        .line = row.line(),
                        .predicted = cost.f * 1e3,
                        .measured = row.number("fwd_ms", 1e-6),
                        .work = tokens,
                        .note = {}});
    set.rows.push_back({.label = fmt::format("{}, backward", mode->name),
                        .line = row.line(),
                        .predicted = backward_seconds(cost, mode->recompute) * 1e3,
                        .measured = row.number("bwd_ms", 1e-6),
                        .work = 2.0 * tokens,
                        .note = {}});
  }
  return {std::move(set)};
}

}  // namespace dipsim
