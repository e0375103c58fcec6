// SPDX-License-Identifier: Apache-2.0
#include "experiment/spec.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <filesystem>

namespace dipsim {

TEST_CASE("an experiment file sets what it names and leaves the rest at the defaults") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "e.json";
  write_file(path, R"({"model": "t2v-s", "iterations": 7, "parallel": {"pp": 2},
    "engine": {"lanes": "rank", "send": "rendezvous", "host_issue_us": 1.5, "jitter": 0.1,
    "jitter_seed": 9, "contention": false}, "usable_memory_fraction": 0.5, "compose": true})");
  const ExperimentSpec spec = read_experiment(path);
  const ExperimentSpec defaults;
  CHECK(spec.model == "t2v-s");
  CHECK(spec.iterations == 7);
  CHECK(spec.pp == 2);
  CHECK_FALSE(spec.tp.has_value());
  CHECK(spec.microbatches == defaults.microbatches);
  CHECK(spec.schedules == defaults.schedules);
  CHECK(spec.engine.lanes == LanePolicy::Rank);
  CHECK(spec.engine.send == SendMode::Rendezvous);
  CHECK(spec.engine.host_issue == Duration(1500));
  CHECK(spec.engine.jitter == 0.1);
  CHECK(spec.engine.seed == 9);
  CHECK_FALSE(spec.engine.contention);
  CHECK(defaults.engine.contention);
  CHECK(spec.usable_memory_fraction == 0.5);
  CHECK(spec.compose);
  CHECK_FALSE(defaults.compose);
}

TEST_CASE("lane policies and send modes are known by the names that are printed") {
  for (const LanePolicy policy :
       {LanePolicy::PairDirection, LanePolicy::Pair, LanePolicy::Rank, LanePolicy::CopyEngine}) {
    CHECK(lane_policy_of(name_of(policy), "--lanes") == policy);
  }
  for (const SendMode mode : {SendMode::Eager, SendMode::Rendezvous}) {
    CHECK(send_mode_of(name_of(mode), "--send") == mode);
  }
  CHECK(test::error_of([] { static_cast<void>(lane_policy_of("rink", "--lanes")); })
            .message()
            .find("\"rank\"") != std::string::npos);
}

TEST_CASE("every shipped experiment can be read") {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(config_folder() / "experiments")) {
    if (entry.is_directory()) {
      continue;
    }
    CAPTURE(entry.path().string());
    CHECK_NOTHROW(static_cast<void>(read_experiment(entry.path())));
    ++files;
  }
  CHECK(files >= 1);
}

}  // namespace dipsim
