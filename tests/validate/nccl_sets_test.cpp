// SPDX-License-Identifier: Apache-2.0
// The shipped network curves against published NCCL measurements.
#include "sim/cluster/gpu.hpp"
#include "tests/support/environment.hpp"
#include "validate/nccl_fit.hpp"
#include "validate/nccl_rows.hpp"
#include "validate/published_data.hpp"
#include "validate/sets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// The table of NCCL measurements; nothing, and the test reported as skipped, where there is none.
std::optional<CsvTable> nccl_table() {
  const auto folder = test::shared_data();
  std::optional<CsvTable> table;
  if (folder) {
    table = PublishedData(*folder / "published").table("nccl");
  }
  if (!table) {
    test::report_skipped("published/nccl.csv is not there");
  }
  return table;
}

const ValidationSet& named(const std::vector<ValidationSet>& sets, const std::string& name) {
  const auto found = std::ranges::find(sets, name, &ValidationSet::name);
  REQUIRE(found != sets.end());
  return *found;
}

/// Every parameter of the network within rounding of the refitted one.
void check_same(const HardwareProfile& shipped, const HardwareProfile& refitted) {
  const std::vector<NamedParameter> a = parameters(shipped);
  const std::vector<NamedParameter> b = parameters(refitted);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].name);
    CHECK(a[i].parameter.value == doctest::Approx(b[i].parameter.value).epsilon(0.01));
    CHECK(a[i].parameter.evidence == b[i].parameter.evidence);
    CHECK(a[i].parameter.source == b[i].parameter.source);
  }
}

}  // namespace

TEST_CASE("NCCL held out: A100 on 16 nodes, H100 two by four and OCI within 12 % on average") {
  const auto table = nccl_table();
  if (!table) {
    return;
  }
  const std::vector<ValidationSet> sets = nccl(*table);
  const ValidationSet& set = named(sets, "nccl_held_out");
  const ErrorSummary errors = summarize(set);
  MESSAGE("mean error " << errors.mape_percent << " %, largest " << errors.max_percent);
  CHECK(errors.rows == 32);
  CHECK(errors.mape_percent <= 12.0);
  REQUIRE(errors.constant_mape_percent.has_value());
  CHECK(errors.mape_percent < *errors.constant_mape_percent);
}

TEST_CASE("no NCCL row is both fitted and judged, and none is lost") {
  const auto table = nccl_table();
  if (!table) {
    return;
  }
  std::vector<int> lines;
  for (const ValidationSet& set : nccl(*table)) {
    for (const ValidationRow& row : set.rows) {
      lines.push_back(row.line);
    }
    for (const ValidationRow& row : set.fitted) {
      lines.push_back(row.line);
    }
    for (const UnusableRow& row : set.unusable) {
      CHECK_FALSE(row.reason.empty());
      lines.push_back(row.line);
    }
  }
  std::ranges::sort(lines);
  CHECK(std::ranges::adjacent_find(lines) == lines.end());
  CHECK(lines.size() == table->size());
}

TEST_CASE("the shipped network curves are the ones that a fit to the published rows gives") {
  const auto table = nccl_table();
  if (!table) {
    return;
  }
  const NcclRows rows = read_nccl_rows(*table);
  for (const std::string& name : gpu_names()) {
    CAPTURE(name);
    const Gpu gpu = load_gpu(name);
    check_same(gpu.profile, with_fitted_network(gpu, rows.rows).profile);
  }
}

TEST_CASE(
    "a GPU with other numbers gets the fitted ones back, and the H100 ones where it says so") {
  const auto table = nccl_table();
  if (!table) {
    return;
  }
  const NcclRows rows = read_nccl_rows(*table);
  Gpu a100 = load_gpu("a100-80gb");
  a100.profile.ring_simple.nic_fraction.value = 0.1;
  CHECK(with_fitted_network(a100, rows.rows).profile.ring_simple.nic_fraction.value ==
        doctest::Approx(load_gpu("a100-80gb").profile.ring_simple.nic_fraction.value));
  Gpu h800 = load_gpu("h800");
  h800.profile.tree_simple.nic_fraction.value = 0.1;
  CHECK(with_fitted_network(h800, rows.rows).profile.tree_simple.nic_fraction.value ==
        doctest::Approx(load_gpu("h100").profile.tree_simple.nic_fraction.value));
}
