// SPDX-License-Identifier: Apache-2.0
// Published measurements of single kernels against the shipped curves.
#include "tests/support/environment.hpp"
#include "validate/kernel_profiles.hpp"
#include "validate/kernel_rows.hpp"
#include "validate/published_data.hpp"
#include "validate/sets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace dipsim;

/// The tables of kernels; nothing, and the test reported as skipped, where they are not there.
std::optional<KernelTables> published_kernels() {
  std::optional<KernelTables> tables;
  if (const auto folder = test::shared_data()) {
    tables = kernel_tables(PublishedData(*folder / "published"));
  }
  if (!tables) {
    test::report_skipped("the published tables of kernels are not there");
  }
  return tables;
}

const ValidationSet& named(const std::vector<ValidationSet>& sets, const std::string& name) {
  const auto found = std::ranges::find(sets, name, &ValidationSet::name);
  REQUIRE(found != sets.end());
  return *found;
}

std::set<int> lines_of(const std::vector<ValidationRow>& rows) {
  std::set<int> lines;
  for (const ValidationRow& row : rows) {
    lines.insert(row.line);
  }
  return lines;
}

/// What tells one attention kernel from another, its determinism aside.
auto shape_of(const AttentionRow& row) {
  const AttentionShape& s = row.shape;
  return std::tuple(row.gpu, s.type, s.backward, s.causal, s.window, s.tokens, s.sequences, s.heads,
                    s.kv_heads, s.head_dim, s.value_dim);
}

}  // namespace

TEST_CASE("matrix products that the fit has not seen are predicted within 8 % on average") {
  const auto tables = published_kernels();
  if (!tables) {
    return;
  }
  const std::vector<ValidationSet> sets = gemm(tables->gemm);
  const ValidationSet& pool = named(sets, "gemm");
  const ErrorSummary summary = summarize(pool);
  MESSAGE(summary.rows << " products, mean error " << summary.mape_percent << " %, "
                       << summary.others_mape_percent.at(0) << " % without rows of the same shape");
  CHECK(summary.rows == 46);
  CHECK(summary.mape_percent <= 8.0);
  CHECK(summary.others_mape_percent.at(0) <= 8.0);
  CHECK(summary.mape_percent < summary.constant_mape_percent.value_or(0.0));
  for (const std::string name : {"gemm best-case", "gemm DeepGEMM", "gemm batched"}) {
    CHECK(!named(sets, name).rows.empty());
    CHECK(!named(sets, name).bar_percent);
  }
}

TEST_CASE("every row of the product table stands in one set or is unusable for a reason") {
  const auto tables = published_kernels();
  if (!tables) {
    return;
  }
  const CsvTable& table = tables->gemm;
  std::multiset<int> lines;
  for (const ValidationSet& set : gemm(table)) {
    for (const ValidationRow& row : set.rows) {
      lines.insert(row.line);
    }
    for (const UnusableRow& row : set.unusable) {
      lines.insert(row.line);
      CHECK(!row.reason.empty());
    }
  }
  std::multiset<int> wanted;
  for (const CsvRow& row : table.rows()) {
    wanted.insert(row.line());
  }
  CHECK(lines == wanted);
}

TEST_CASE("attention that the fit has not seen is predicted within 6 % on average") {
  const auto tables = published_kernels();
  if (!tables) {
    return;
  }
  const ErrorSummary summary = summarize(attention_cudnn(tables->attention_cudnn).front());
  MESSAGE(summary.rows << " kernels, mean error " << summary.mape_percent << " %");
  CHECK(summary.rows >= 370);
  CHECK(summary.mape_percent <= 6.0);
  CHECK(summary.mape_percent < summary.constant_mape_percent.value_or(0.0));
}

TEST_CASE("no attention shape is both fitted and tested, and the halves are even") {
  const auto tables = published_kernels();
  if (!tables) {
    return;
  }
  const std::vector<AttentionRow> rows = attention_cudnn_rows(tables->attention_cudnn);
  std::map<decltype(shape_of(rows[0])), std::set<bool>> sides;
  int fitted = 0;
  for (const AttentionRow& row : rows) {
    sides[shape_of(row)].insert(row.fitted);
    fitted += row.fitted ? 1 : 0;
  }
  for (const auto& [shape, side] : sides) {
    CHECK(side.size() == 1);
  }
  CHECK(fitted == doctest::Approx(0.5 * static_cast<double>(rows.size())).epsilon(0.02));
}

TEST_CASE("sets keep fitted rows apart from those that count") {
  const auto tables = published_kernels();
  if (!tables) {
    return;
  }
  std::vector<ValidationSet> sets = attention_cudnn(tables->attention_cudnn);
  std::ranges::move(attention(tables->attention), std::back_inserter(sets));
  std::ranges::move(memory_bandwidth(tables->memory_bandwidth), std::back_inserter(sets));
  for (const ValidationSet& set : sets) {
    CAPTURE(set.name);
    CHECK(!set.rows.empty());
    CHECK(!set.fitted.empty());
    const std::set<int> fitted = lines_of(set.fitted);
    for (const int line : lines_of(set.rows)) {
      CHECK(!fitted.contains(line));
    }
  }
}

TEST_CASE("rows that no fit may see do not move any shipped parameter") {
  auto tables = published_kernels();
  if (!tables) {
    return;
  }
  const std::vector<Gpu> before = refitted_gpus(*tables);
  std::string text;
  const CsvTable& table = tables->attention_cudnn;
  const std::vector<AttentionRow> rows = attention_cudnn_rows(table);
  const std::vector<std::string> columns = {
      "gpu",        "model",      "dtype",          "direction",         "batch",
      "seq_len_q",  "seq_len_kv", "heads_q",        "heads_kv",          "head_dim_qk",
      "head_dim_v", "mask",       "sliding_window", "deterministic_bwd", "time_ms"};
  for (const std::string& column : columns) {
    text += column + (column == "time_ms" ? "\n" : ",");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& column : columns) {
      if (column != "time_ms") {
        text += std::string(table[i].text(column)) + ",";
      } else {  // held-out kernels ten times as slow
        text += (rows[i].fitted ? "" : "9") + std::string(table[i].text(column)) + "\n";
      }
    }
  }
  tables->attention_cudnn = CsvTable(text, "changed.csv");
  CHECK(refitted_gpus(*tables) == before);
}

TEST_CASE("the shipped kernel curves are what a fit to the published tables gives") {
  const auto tables = published_kernels();
  if (!tables) {
    return;
  }
  for (const Gpu& refitted : refitted_gpus(*tables)) {
    const std::vector<NamedParameter> shipped = parameters(load_gpu(refitted.name).profile);
    const std::vector<NamedParameter> fresh = parameters(refitted.profile);
    REQUIRE(shipped.size() == fresh.size());
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      CAPTURE(refitted.name);
      CAPTURE(fresh[i].name);
      CHECK(shipped[i].name == fresh[i].name);
      // A digit of the third place: libraries of mathematics differ in the last bit.
      CHECK(shipped[i].parameter.value == doctest::Approx(fresh[i].parameter.value).epsilon(0.02));
      CHECK(shipped[i].parameter.evidence == fresh[i].parameter.evidence);
      CHECK(shipped[i].parameter.source == fresh[i].parameter.source);
    }
  }
}

TEST_CASE("a row without a shape and a GPU without a profile are named as unusable") {
  const CsvTable table(
      "gpu,dtype,library,batch_or_groups,m,n,k,time_us_derived\n"
      "H100-SXM5-80GB,bf16,torch,1,4096,4096,4096,200\n"
      "B300,fp8,torch matmul,1,,,,\n"
      "MI300X,bf16,torch matmul,1,4096,4096,4096,250\n",
      "gemm.csv");
  std::vector<UnusableRow> unusable;
  const std::vector<GemmRow> rows = gemm_rows(table, unusable);
  CHECK(rows.size() == 1);
  REQUIRE(unusable.size() == 2);
  CHECK(unusable[0].line == 3);
  CHECK(unusable[0].reason == "the shape is not given");
  CHECK(unusable[1].reason == "no profile of MI300X is shipped");
}

TEST_CASE("a product that is alone of its type cannot be left out and is said to be unusable") {
  const CsvTable table(
      "gpu,dtype,library,batch_or_groups,m,n,k,time_us_derived\n"
      "H100-SXM5-80GB,bf16,torch,1,4096,4096,4096,200\n"
      "H100-SXM5-80GB,fp8,torch,1,4096,4096,4096,110\n",
      "gemm.csv");
  const std::vector<ValidationSet> sets = gemm(table);
  CHECK(sets[0].rows.empty());
  CHECK(sets[0].unusable.size() == 2);
}

TEST_CASE("heads that a table does not print follow from time and rate") {
  const CsvTable table(
      "gpu,kernel,direction,causal,batch,heads,seq_len_q,seq_len_kv,head_dim_qk,head_dim_v,dtype,"
      "time_ms,achieved_tflops\n"
      "H20,cuDNN,fwd,0,2,,2048,2048,64,64,bf16/fp16,0.545,126.1\n"
      "H100,FA3,fwd,0,2,,2048,2048,64,64,bf16/fp16,0.545,\n",
      "attention.csv");
  std::vector<UnusableRow> unusable;
  const std::vector<AttentionRow> rows = attention_rows(table, unusable);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].shape.heads == 32);
  CHECK(rows[0].fitted);
  REQUIRE(unusable.size() == 1);
  CHECK(unusable[0].reason == "batch, heads or sequence are not given");
}
