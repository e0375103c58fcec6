// SPDX-License-Identifier: Apache-2.0
#include "validate/zero_bubble_cases.hpp"

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/kernel_time.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "validate/gpt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace dipsim {

namespace {

/// GPT-2's vocabulary as Megatron-LM pads it: assumed, for the constant-rate predictor only.
constexpr int kVocabulary = 50'304;

struct ScheduleName {
  std::string_view paper;
  std::string_view dipsim;  ///< "": not known
};

constexpr std::array kSchedules = {
    ScheduleName{"1F1B", "1f1b"},   ScheduleName{"1F1B-I", "interleaved"},
    ScheduleName{"ZB-H1", "zb-h1"}, ScheduleName{"ZB-1p", "zb-1p"},
    ScheduleName{"ZB-2p", "zb-2p"}, ScheduleName{"ZB-H2", ""},
};

/// A time in milliseconds, one value for all stages.
std::vector<Duration> pass_time(const CsvRow& row, std::string_view column, int chunks) {
  return {round_to_duration(row.number(column, 0.0, 1e5) * 1e-3 / chunks, column)};
}

SyntheticSpec pipeline_of(const CsvRow& row, int chunks) {
  constexpr int kMostRanks = 256;
  constexpr int kMostMicrobatches = 4096;
  SyntheticSpec spec;
  spec.ranks = static_cast<int>(row.whole("pp", 1, kMostRanks));
  spec.microbatches = static_cast<int>(row.whole("num_microbatches", 1, kMostMicrobatches));
  spec.chunks = chunks;
  spec.forward = pass_time(row, "t_f_ms", chunks);
  spec.backward_input = pass_time(row, "t_b_ms", chunks);
  spec.backward_weight = pass_time(row, "t_w_ms", chunks);
  spec.p2p_latency = pass_time(row, "t_comm_ms", 1).front();
  // Bytes per token and layer that the authors' scheduler plans with (zb.py): 34h + 5as from F on,
  // 32h of it for W. Only their ratio matters: the limits are p and 2p microbatches.
  const double hidden = count_of(row, "hidden");
  const double scores = 5.0 * count_of(row, "heads") * count_of(row, "seq_len");
  spec.activation = round_to_bytes(34.0 * hidden + scores, "activation");
  spec.activation_for_weight = round_to_bytes(32.0 * hidden, "activation");
  return spec;
}

MeasuredPipeline planned(const CsvRow& row, const SyntheticSpec& spec, std::string_view schedule) {
  try {
    return {spec, std::string(schedule)};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) {
      throw;
    }
    row.fail("schedule", fmt::format("{}: {}", error.where(), error.message()));
  }
}

ZeroBubbleCase case_of(const CsvRow& row, std::string_view schedule) {
  constexpr double kMostBubble = 0.99;
  const int layers = zero_bubble_stage_layers(row);
  const SyntheticSpec spec = pipeline_of(row, schedule == "interleaved" ? layers : 1);
  ZeroBubbleCase one{.row = row,
                     .label = fmt::format("{} {}, {} GPUs, m = {}", row.text("model"),
                                          row.text("schedule"), spec.ranks, spec.microbatches),
                     .pipeline = planned(row, spec, schedule)};
  one.engine_seconds = one.pipeline.longest_rank_seconds();
  one.compute_seconds = spec.microbatches *
                        (row.number("t_f_ms", 1e-3) + row.number("t_b_ms") + row.number("t_w_ms")) *
                        1e-3;
  one.ideal_seconds =
      one.compute_seconds / (1.0 - row.number("bubble_rate_theoretical", 0.0, kMostBubble));
  const ModuleSpec model = gpt_spec(row, kVocabulary);
  const double parameters = 12.0 * model.hidden * model.hidden * layers;
  one.optimizer_seconds =
      memory_seconds(load_cluster("a100-8").gpu, kMegatronFp16.step_traffic * parameters);
  one.samples = 1.0 * count_of(row, "microbatch_seq") * spec.microbatches;
  one.flops = gpt_flops(model, one.samples, count_of(row, "seq_len")) / spec.ranks;
  return one;
}

}  // namespace

int zero_bubble_stage_layers(const CsvRow& row) {
  const int layers = count_of(row, "layers") + 2;
  const int ranks = count_of(row, "pp");
  if (layers % ranks != 0) {
    row.fail("layers",
             fmt::format("{} layers and 2 do not share {} stages evenly", layers - 2, ranks));
  }
  return layers / ranks;
}

std::string zero_bubble_schedule(std::string_view paper) {
  const auto* const name = std::ranges::find(kSchedules, paper, &ScheduleName::paper);
  return name == kSchedules.end() ? "" : std::string(name->dipsim);
}

double ZeroBubbleCase::measured_seconds() const {
  return samples / (count_of(row, "gpus") * row.number("samples_per_gpu_per_s", 1e-6));
}

std::deque<ZeroBubbleCase> zero_bubble_cases(const CsvTable& table,
                                             std::vector<UnusableRow>& unusable) {
  std::deque<ZeroBubbleCase> cases;
  for (const CsvRow& row : table.rows()) {
    const std::string schedule = zero_bubble_schedule(row.text("schedule"));
    if (schedule.empty()) {
      unusable.push_back(
          {.line = row.line(),
           .reason = fmt::format("no schedule \"{}\"", shortened(row.text("schedule")))});
    } else if (row.whole("tp", 1) != 1 || row.whole("dp", 1) != 1) {
      unusable.push_back({.line = row.line(), .reason = "more than a pipeline"});
    } else {
      cases.push_back(case_of(row, schedule));
    }
  }
  return cases;
}

}  // namespace dipsim
