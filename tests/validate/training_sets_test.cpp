// SPDX-License-Identifier: Apache-2.0
// Step times and memory against published tables: bars that are met must stay met, and nothing that
// is tested may have entered a fit.
#include "models/placed_module.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/error.hpp"
#include "tests/support/environment.hpp"
#include "validate/moe_models.hpp"
#include "validate/published_data.hpp"
#include "validate/registry.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"
#include "validate/validation_set.hpp"
#include "validate/vtrain.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

constexpr double kAutoModelReached = 20.0;  // percent

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

// The bar is 15 %: all H100 tables are too fast by a seventh to a quarter, and so is this one. What
// is tested is that it does not get worse.
TEST_CASE("step times of NeMo AutoModel are predicted for every row without state-space layers") {
  if (const auto rows = table("nemo_automodel_h100")) {
    const std::vector<ValidationSet> sets = nemo_automodel_h100(*rows);
    const ErrorSummary summary = summarize(sets.front());
    CHECK(summary.rows == 13);
    CHECK(sets.front().unusable.size() == 3);
    CHECK(summary.mape_percent < kAutoModelReached);
    for (const ValidationRow& row : sets.front().rows) {
      CAPTURE(row.label);
      CHECK_FALSE(row.note.empty());
    }
  }
}

TEST_CASE("allocator readings of Megatron-Bridge are met within 8 % and without bias") {
  if (const auto rows = table("bridge_memory_h100")) {
    const std::vector<ValidationSet> sets = bridge_memory_h100(*rows);
    const ErrorSummary summary = summarize(sets.front());
    CHECK(summary.rows == 17);
    CHECK(sets.front().unusable.size() == 13);
    CHECK(summary.mape_percent < 8.0);
    CHECK(summary.bias_percent < 4.0);
    CHECK(summary.bias_percent > -4.0);
  }
}

TEST_CASE("public models of the tables have their published parameters") {
  struct Published {
    std::string model;
    double total;
    double active;
  };

  // Kimi K2 (arXiv 2507.20534) 1.04T and 32.6B, with the embedding; gpt-oss (arXiv 2508.10925)
  // Table 1; Moonlight (arXiv 2502.16982) 15.29B and 2.24B, without embedding and head.
  const CsvTable empty("model\nx\n", "models.csv");
  for (const Published& model : {Published{"Kimi K2", 1.04e12, 32.6e9 - 7168.0 * 163'840},
                                 Published{"GPT-OSS 120B", 116.83e9, 5.13e9},
                                 Published{"Moonlight-16B-A3B", 15.29e9 + 2 * 2048.0 * 163'840,
                                           2.24e9 + 2048.0 * 163'840}}) {
    CAPTURE(model.model);
    LmmModel lmm;
    lmm.modules.push_back({.spec = public_model_spec(model.model, empty[0]),
                           .inputs = {},
                           .mask = AttentionMask::Causal,
                           .head = true});
    const PlacedModule placed = place_modules(lmm, {}).front();
    double total = 0.0;
    for (const double parameters : layer_parameters(placed)) {
      total += parameters;
    }
    CHECK(total == doctest::Approx(model.total).epsilon(0.015));
    CHECK(active_parameters(placed) == doctest::Approx(model.active).epsilon(0.015));
  }
}

TEST_CASE("a pipeline that drains several times takes its passes as often and its epilogue once") {
  TrainingRun run;
  const CsvTable empty("model\nx\n", "models.csv");
  run.spec = public_model_spec("Llama3 8B", empty[0]);
  run.cluster = load_cluster("h100-8");
  run.plan.pp = 4;
  run.plan.dp = 2;
  run.sequence = 1024;
  run.sequences_per_microbatch = 1;
  run.microbatches = 4;
  const double once = predict(run).step_seconds;
  run.drains = 2;
  const double twice = predict(run).step_seconds;
  run.drains = 3;
  const double thrice = predict(run).step_seconds;
  CHECK(twice > once);
  CHECK(twice < 2.0 * once);
  CHECK(thrice - twice == doctest::Approx(twice - once));
}

TEST_CASE("rows of models and modules that nobody knows are refused with their place") {
  const std::string memory =
      "model,task,gpus,seq_len,microbatch_seq,global_batch_seq,tp,pp,vp,cp,ep,dp,"
      "recompute_modules,peak_memory,peak_memory_unit\n";
  CHECK_THROWS_AS(
      bridge_memory_h100(
          CsvTable(memory + "Llama3-70B,SFT,32,4096,1,32,4,4,5,1,1,2,everything,58,GB\n", "m.csv")),
      Error);
  CHECK(bridge_memory_h100(
            CsvTable(memory + "Other,SFT,32,4096,1,32,4,4,5,1,1,2,mlp,58,GB\n", "m.csv"))
            .front()
            .unusable.size() == 1);
  const std::string times =
      "model,section,gpus,microbatch_seq,local_batch_seq,grad_accum,seq_len,tp,pp,cp,ep,vp,"
      "kernels,step_time_s\n";
  CHECK_THROWS_AS(nemo_automodel_h100(
                      CsvTable(times + "Other,Pre-Training,8,1,1,1,4096,1,1,1,,,TE,1\n", "t.csv")),
                  Error);
  CHECK_THROWS_AS(nemo_automodel_h100(CsvTable(
                      times + "Llama3 70B,Pre-Training,7,1,1,1,8192,1,1,2,,,TE,1\n", "t.csv")),
                  Error);
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
