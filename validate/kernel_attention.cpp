// SPDX-License-Identifier: Apache-2.0
// Fused attention (attention_cudnn.csv, attention.csv).
#include "validate/kernel_rows.hpp"
#include "validate/sets.hpp"

#include <map>
#include <string>
#include <utility>

namespace dipsim {

namespace {

/// Fills `rows` and `fitted` with the shipped curves' predictions.
void predict_all(ValidationSet& set, const std::vector<AttentionRow>& rows) {
  std::map<std::string, Gpu> gpus;
  for (const AttentionRow& row : rows) {
    if (!gpus.contains(row.gpu)) {
      gpus.emplace(row.gpu, load_gpu(row.gpu));
    }
    constexpr double kMilli = 1e3;
    (row.fitted ? set.fitted : set.rows)
        .push_back({.label = row.label,
                    .line = row.line,
                    .predicted = kMilli * attention_seconds(gpus.at(row.gpu), row.shape),
                    .measured = kMilli * row.seconds,
                    .work = row.shape.flops(),
                    .note = row.note});
  }
}

}  // namespace

std::vector<ValidationSet> attention_cudnn(const CsvTable& table) {
  ValidationSet set;
  set.name = "attention_cudnn";
  set.title = "cuDNN attention on H200, GB200 and GB300, the half that no fit has seen";
  set.quantity = "time of one kernel";
  set.unit = "ms";
  set.table = table.file();
  set.source = "github:NVIDIA/cudnn-frontend@3929da2 benchmark/sdpa_benchmark_training/results";
  set.bar_percent = 6.0;
  set.notes = {
      "every second shape is fitted; deterministic and other kernels of one shape stay "
      "in one half",
      "FLOPs: half of the pairs under a causal mask, backward 2.5 times forward",
      "long sequences on GB200 and GB300 slow down by up to 10 % (power), which the "
      "curves do not show",
      "the causal fp8 backward of cuDNN 9.19 on H200 gets slower with the sequence"};
  predict_all(set, attention_cudnn_rows(table));
  return {std::move(set)};
}

std::vector<ValidationSet> attention(const CsvTable& table) {
  ValidationSet set;
  set.name = "attention";
  set.title = "single attention kernels from many sources";
  set.quantity = "time of one kernel";
  set.unit = "ms";
  set.table = table.file();
  set.source = "named in the rows";
  set.notes = {"reported only: figure labels and forum posts, older versions of the libraries",
               "the curves of H100 are those of cuDNN 9.19 on H200"};
  predict_all(set, attention_rows(table, set.unusable));
  return {std::move(set)};
}

}  // namespace dipsim
