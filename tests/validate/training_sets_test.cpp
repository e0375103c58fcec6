// SPDX-License-Identifier: Apache-2.0
// Step times and memory against published tables: bars that are met must stay met, and nothing that
// is tested may have entered a fit.
#include "sim/cluster/cluster.hpp"
#include "sim/core/error.hpp"
#include "tests/support/environment.hpp"
#include "validate/published_data.hpp"
#include "validate/registry.hpp"
#include "validate/sets.hpp"
#include "validate/validation_set.hpp"
#include "validate/vtrain.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// A table of the reference data, else a shipped one; nothing, and the test reported as skipped,
/// where it is in neither.
std::optional<CsvTable> table(const std::string& name) {
  const auto shared = test::shared_data();
  const PublishedData data = shared ? PublishedData(*shared / "published") : PublishedData();
  std::optional<CsvTable> found = data.table(name);
  if (!found) {
    test::report_skipped(name + ".csv is not there");
  }
  return found;
}

std::map<std::string, ErrorSummary> summaries(const std::vector<ValidationSet>& sets) {
  std::map<std::string, ErrorSummary> all;
  for (const ValidationSet& set : sets) {
    all[set.name] = summarize(set);
  }
  return all;
}

}  // namespace

TEST_CASE("times of a 22B layer are within 5 % in all five recompute modes") {
  if (const auto rows = table("megatron_seqpar_layer_times")) {
    const auto all = summaries(megatron_layer_times(*rows));
    CHECK(all.at("megatron_seqpar_layer_times").rows == 10);
    CHECK(all.at("megatron_seqpar_layer_times").max_percent < 5.0);
  }
}

TEST_CASE("step times of Megatron-LM with sequence parallelism beat the claim on these rows") {
  if (const auto rows = table("megatron_seqpar_iteration_times")) {
    const auto all = summaries(megatron_seqpar_iteration_times(*rows));
    CHECK(all.at("megatron_seqpar_iteration_times").rows == 8);
    CHECK(all.at("megatron_seqpar_iteration_times").mape_percent < 3.65);
  }
}

TEST_CASE("analytic memory of Megatron-LM is met within 3 %") {
  if (const auto rows = table("megatron_seqpar_memory")) {
    const auto all = summaries(megatron_seqpar_memory(*rows));
    CHECK(all.at("megatron_seqpar_memory state").rows == 8);
    CHECK(all.at("megatron_seqpar_memory activations").rows == 8);
    CHECK(all.at("megatron_seqpar_memory shares").rows == 20);
    for (const auto& [name, summary] : all) {
      CAPTURE(name);
      CHECK(summary.max_percent < 3.0);
    }
  }
}

TEST_CASE("allocator readings of the zero-bubble experiments are met within 8 % on average") {
  if (const auto rows = table("zero_bubble_main")) {
    const auto all = summaries(zero_bubble_memory(*rows));
    CHECK(all.at("zero_bubble_main memory").rows == 48);
    CHECK(all.at("zero_bubble_main memory").mape_percent < 8.0);
  }
}

TEST_CASE("step times of vTrain are met within its own claims") {
  if (const auto rows = table("vtrain_single")) {
    const ErrorSummary single = summaries(vtrain_single(*rows)).at("vtrain_single");
    CHECK(single.rows == 1296);
    CHECK(single.mape_percent < 8.37);
  }
  if (const auto rows = table("vtrain_multi")) {
    const ErrorSummary multi = summaries(vtrain_multi(*rows)).at("vtrain_multi");
    CHECK(multi.rows == 109);
    CHECK(multi.mape_percent < 10.0);
  }
}

TEST_CASE("the fit of the host sees a tenth of vTrain's rows and no other") {
  const auto rows = table("vtrain_single");
  if (!rows) {
    return;
  }
  // Every other row's measurement is changed: the fit must not notice.
  std::string text =
      "gpus,global_batch_seq,microbatch_seq,hidden,heads,layers,seq_len,tp,dp,pp,"
      "iteration_time_ms\n";
  for (std::size_t r = 0; r < rows->size(); ++r) {
    const CsvRow row = (*rows)[r];
    for (const char* const column : {"gpus", "global_batch_seq", "microbatch_seq", "hidden",
                                     "heads", "layers", "seq_len", "tp", "dp", "pp"}) {
      text += std::string(row.text(column)) + ",";
    }
    text += is_calibration_row(r) ? std::string(row.text("iteration_time_ms")) : "1";
    text += "\n";
  }
  const IssueRate whole = fit_host_issue(*rows);
  const IssueRate changed = fit_host_issue(CsvTable(text, "changed.csv"));
  CHECK(whole.kernel_us.value == changed.kernel_us.value);
  CHECK(whole.pass_us.value == changed.pass_us.value);

  // And the shipped values are those of the fit.
  const IssueRate shipped = load_cluster("a100-8").gpu.profile.host_issue;
  CHECK(shipped.kernel_us.value == doctest::Approx(whole.kernel_us.value).epsilon(0.01));
  CHECK(shipped.pass_us.value == doctest::Approx(whole.pass_us.value).epsilon(0.01));
  CHECK(shipped.kernel_us.evidence == Evidence::Fitted);
}

TEST_CASE("rows of the zero-bubble memory that no pipeline fits are refused with their place") {
  const std::string header =
      "model,layers,heads,hidden,seq_len,pp,microbatch_seq,num_microbatches,schedule,"
      "peak_memory_gb\n";
  for (const std::string row :
       {"m,22,24,2304,1024,2,6,24,1F1B-I,40", "m,22,24,2304,1024,1,6,24,1F1B,40",
        "m,22,24,2304,1024,7,6,24,1F1B-I,40", "m,22,24,2304,1024,10000000,6,24,1F1B,40",
        "m,22,24,2304,1024,8,6,10000000,1F1B,40"}) {
    CAPTURE(row);
    try {
      zero_bubble_memory(CsvTable(header + row + "\n", "memory.csv"));
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::Input);
    }
  }
}
