// SPDX-License-Identifier: Apache-2.0
// Matrix products (gemm.csv).
#include "hw/fit/kernel_fit.hpp"
#include "validate/kernel_rows.hpp"
#include "validate/sets.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

constexpr double kMicro = 1e6;

using Gpus = std::map<std::string, Gpu>;

Gpus gpus_of(const std::vector<GemmRow>& rows) {
  Gpus gpus;
  for (const GemmRow& row : rows) {
    if (!gpus.contains(row.gpu)) {
      gpus.emplace(row.gpu, load_gpu(row.gpu));
    }
  }
  return gpus;
}

ValidationRow validation_row(const GemmRow& row, double seconds) {
  return {.label = row.label,
          .line = row.line,
          .predicted = seconds * kMicro,
          .measured = row.seconds * kMicro,
          .work = row.shape.flops(),
          .note = ""};
}

/// H100 and H200 share their silicon and are fitted together.
bool same_architecture(const GemmRow& a, const GemmRow& b) {
  return (a.gpu == "a100-80gb") == (b.gpu == "a100-80gb");
}

bool same_shape(const GemmRow& a, const GemmRow& b) {
  return std::tuple(a.shape.m, a.shape.n, a.shape.k) == std::tuple(b.shape.m, b.shape.n, b.shape.k);
}

/// The product as predicted by a fit to all rows of its architecture but the unseen ones; nothing
/// where they are all that there is of its type.
std::optional<double> predicted_without(const Gpus& gpus, const std::vector<GemmRow>& pool,
                                        const GemmRow& row,
                                        bool (*unseen)(const GemmRow&, const GemmRow&)) {
  std::vector<GemmSample> samples;
  for (const GemmRow& other : pool) {
    if (same_architecture(row, other) && !unseen(row, other)) {
      samples.push_back({&gpus.at(other.gpu), other.shape, other.seconds});
    }
  }
  const GemmFit fit = samples.empty() ? GemmFit{} : fit_gemm(samples, "");
  if (!(bytes_of(row.shape.type) == 1 ? fit.fp8 : fit.wide)) {
    return std::nullopt;
  }
  Gpu gpu = gpus.at(row.gpu);
  gpu.profile.gemm = fit.wide.value_or(gpu.profile.gemm);
  gpu.profile.gemm_fp8 = fit.fp8;
  return row.predicted(gpu);
}

ValidationSet new_set(const CsvTable& table, std::string name, std::string title) {
  ValidationSet set;
  set.name = std::move(name);
  set.title = std::move(title);
  set.quantity = "time of one product";
  set.unit = "us";
  set.table = table.file();
  return set;
}

ValidationSet leave_one_out(const CsvTable& table, const std::vector<GemmRow>& rows,
                            const Gpus& gpus) {
  ValidationSet set = new_set(table, "gemm", "matrix products on A100, H100 and H200");
  set.source =
      "github:Azure/AI-benchmarking-guide@8fd0c6e (cuBLASLt), HF Smol Training Playbook (torch)";
  set.bar_percent = 8.0;
  set.notes = {
      "each row is predicted by a fit to all other rows of its architecture (A100; H100 and H200)",
      "the shipped curves are fitted to all of them",
      "rows are the best algorithm of a sweep (cuBLASLt) or what torch picks; frameworks reach "
      "less"};
  std::vector<GemmRow> pool;
  std::ranges::copy_if(rows, std::back_inserter(pool),
                       [](const GemmRow& row) { return row.library == GemmLibrary::Pool; });
  OtherPredictor shape_out{"fit without any row of this shape", {}};
  for (const GemmRow& row : pool) {
    const auto same_row = [](const GemmRow& x, const GemmRow& y) { return x.line == y.line; };
    const auto without_row = predicted_without(gpus, pool, row, same_row);
    const auto without_shape = predicted_without(gpus, pool, row, same_shape);
    if (!without_row || !without_shape) {
      set.unusable.push_back({row.line, "no other row of its architecture and type to fit to"});
      continue;
    }
    set.rows.push_back(validation_row(row, *without_row));
    shape_out.predicted.push_back(kMicro * *without_shape);
  }
  set.others.push_back(std::move(shape_out));
  return set;
}

ValidationSet reported(const CsvTable& table, const std::vector<GemmRow>& rows, const Gpus& gpus,
                       GemmLibrary library, ValidationSet set) {
  set.table = table.file();
  for (const GemmRow& row : rows) {
    if (row.library == library) {
      set.rows.push_back(validation_row(row, row.predicted(gpus.at(row.gpu))));
    }
  }
  return set;
}

}  // namespace

std::vector<ValidationSet> gemm(const CsvTable& table) {
  std::vector<UnusableRow> unusable;
  const std::vector<GemmRow> rows = gemm_rows(table, unusable);
  const Gpus gpus = gpus_of(rows);
  ValidationSet best = new_set(table, "gemm best-case", "the best of a search over shapes");
  best.source = "github:stas00/ml-engineering compute/accelerator (MAMF)";
  best.notes = {"no fit has seen these rows; the best shape of a search is faster than others"};
  best.unusable = std::move(unusable);
  ValidationSet deep =
      new_set(table, "gemm DeepGEMM", "block-scaled fp8 on H800, dense and grouped");
  deep.source = "github:deepseek-ai/DeepGEMM@a6d97a1 README.md";
  deep.notes = {"no fit has seen these rows: the curve is that of cuBLASLt on H100 and H200",
                "DeepGEMM scales blocks of 128 columns: shallow products pay for it, which the "
                "curve of another library does not show"};
  ValidationSet batched = new_set(table, "gemm batched", "torch.bmm on A100");
  batched.source = "pytorch/pytorch issue #83272";
  batched.notes = {"no fit has seen these rows",
                   "k = 140 is no multiple of 8: unaligned rows take a slow path that is not "
                   "modelled"};
  return {leave_one_out(table, rows, gpus),
          reported(table, rows, gpus, GemmLibrary::BestCase, std::move(best)),
          reported(table, rows, gpus, GemmLibrary::DeepGemm, std::move(deep)),
          reported(table, rows, gpus, GemmLibrary::Batched, std::move(batched))};
}

}  // namespace dipsim
