// SPDX-License-Identifier: Apache-2.0
// Kernels bound by memory (norm_layers.csv, memory_bandwidth.csv).
#include "validate/kernel_rows.hpp"
#include "validate/sets.hpp"

#include <map>
#include <string>
#include <utility>

namespace dipsim {

namespace {

const Gpu& loaded(std::map<std::string, Gpu>& gpus, const std::string& name) {
  const auto found = gpus.find(name);
  return found != gpus.end() ? found->second : gpus.emplace(name, load_gpu(name)).first->second;
}

ValidationSet norm_set(const CsvTable& table, const std::string& name, const std::string& title) {
  ValidationSet set;
  set.name = name;
  set.title = title;
  set.quantity = "time of one kernel";
  set.unit = "us";
  set.table = table.file();
  set.source = "github:NVIDIA/cudnn-frontend@3929da2 benchmark/norms/results";
  set.notes = {
      "two tensors forward, three backward, at the bandwidth of long streams; small ones "
      "may sit in L2",
      "the table prints whole microseconds"};
  return set;
}

}  // namespace

std::vector<ValidationSet> norm_layers(const CsvTable& table) {
  ValidationSet fused = norm_set(table, "norm_layers", "norms of cuDNN on H200, GB200 and GB300");
  ValidationSet torch =
      norm_set(table, "norm_layers PyTorch", "norms of PyTorch, eager and compiled");
  torch.notes.emplace_back(
      "several kernels where cuDNN has one: the difference is what fusing saves");
  std::map<std::string, Gpu> gpus;
  for (const NormRow& row : norm_rows(table)) {
    constexpr double kMicro = 1e6;
    const ValidationRow out{.label = row.label,
                            .line = row.line,
                            .predicted = kMicro * memory_seconds(loaded(gpus, row.gpu), row.bytes),
                            .measured = kMicro * row.seconds,
                            .work = row.bytes,
                            .note = ""};
    ValidationSet& set = row.backend == "cudnn" ? fused : torch;
    (row.fitted ? set.fitted : set.rows).push_back(out);
  }
  return {std::move(fused), std::move(torch)};
}

std::vector<ValidationSet> memory_bandwidth(const CsvTable& table) {
  ValidationSet set;
  set.name = "memory_bandwidth";
  set.title = "streams through the memory of A100, H100 and H200";
  set.quantity = "bandwidth";
  set.unit = "GB/s";
  set.table = table.file();
  set.source =
      "github:Azure/AI-benchmarking-guide@8fd0c6e (BabelStream), HF Smol Training Playbook";
  set.notes = {"copy, mul, add and triad give the bandwidth; dot, which only reads, is faster"};
  std::map<std::string, Gpu> gpus;
  for (const BandwidthRow& row : bandwidth_rows(table)) {
    const Gpu& gpu = loaded(gpus, row.gpu);
    (row.fitted ? set.fitted : set.rows)
        .push_back({.label = row.label,
                    .line = row.line,
                    .predicted =
                        gpu.memory_gbytes_per_s.value * gpu.profile.memory.bandwidth_fraction.value,
                    .measured = row.gbytes_per_s,
                    .work = 0.0,
                    .note = ""});
  }
  return {std::move(set)};
}

}  // namespace dipsim
