// SPDX-License-Identifier: Apache-2.0
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace dipsim::test {

namespace {

using nlohmann::json;

/// Case W6 of docs/metrics.md with 24 microbatches.
std::vector<std::string> w6(const std::string& schedule, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"simulate", "--ranks",
                                        "8",        "--microbatches",
                                        "24",       "--forward-us",
                                        "29850",    "--backward-input-us",
                                        "29767",    "--backward-weight-us",
                                        "18868",    "--p2p-latency-us",
                                        "466",      "--activation-mib",
                                        "3720",     "--activation-for-weight-mib",
                                        "1672",     "--format",
                                        "json",     "--schedule",
                                        schedule};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Outcome run(const std::vector<std::string>& arguments) {
  return run_program(arguments, TemporaryFolder().path());
}

json result_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(outcome.out);
}

TEST_CASE("simulate: sizes of activations and a limit of memory decide what zb-2p can do") {
  const json twice = result_of(w6("zb-2p", {}));
  const json once = result_of(w6("zb-1p", {}));
  CHECK(twice["makespan_ms"].get<double>() == doctest::Approx(2095.852));
  CHECK(once["makespan_ms"].get<double>() == doctest::Approx(2181.931));
  const auto peaks = once["peak_memory_gib"].get<std::vector<double>>();
  CHECK(std::ranges::max(peaks) == doctest::Approx(8 * 3720.0 / 1024.0));
  const json limited = result_of(w6("zb-2p", {"--memory-limit-mib", "29760"}));
  CHECK(limited["makespan_ms"] == once["makespan_ms"]);
  CHECK(limited["fits"] == true);
}

TEST_CASE("simulate: a limit that no order keeps is infeasible, or does not fit") {
  const Outcome refused = run(w6("zb-1p", {"--memory-limit-mib", "3719"}));
  CHECK(refused.exit_code == 3);
  CHECK(refused.out.find("microbatch 0 alone needs") != std::string::npos);
  const json plain = result_of(w6("1f1b", {"--memory-limit-mib", "3719"}));
  CHECK(plain["fits"] == false);
}

}  // namespace

}  // namespace dipsim::test
