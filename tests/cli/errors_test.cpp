// SPDX-License-Identifier: Apache-2.0
// Bad input ends with a short message that names the place, exit code 2 or 3, and no file.
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace dipsim::test {

namespace {

namespace fs = std::filesystem;

bool holds_nothing(const fs::path& folder) { return fs::is_empty(folder); }

void require_refusal(const Outcome& outcome, const std::string& place) {
  CAPTURE(outcome.err);
  CHECK((outcome.exit_code == 2 || outcome.exit_code == 3));
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("error: "));
  CHECK(outcome.err.size() < 1500);
  CHECK(outcome.err.find(place) != std::string::npos);
}

/// An experiment file with this text; the output folder must not appear.
void require_refused_experiment(const std::string& text, const std::string& place) {
  const TemporaryFolder inputs;
  const TemporaryFolder folder;
  write_file(inputs.path() / "e.json", text);
  CAPTURE(text);
  require_refusal(
      run_program({"compare", (inputs.path() / "e.json").string(), "--out", "out"}, folder.path()),
      place);
  CHECK(holds_nothing(folder.path()));
}

}  // namespace

TEST_CASE("a bad experiment file is refused with its place and leaves no file") {
  require_refused_experiment("", "e.json");
  require_refused_experiment("{\"model\": \"vlm-s\"", "line 1, column");
  require_refused_experiment("[]", "e.json: /");
  require_refused_experiment(R"({"modell": "vlm-s"})", "/modell");
  require_refused_experiment(R"({"model": "vlm-s", "model": "vlm-m"})", "duplicate key");
  require_refused_experiment(R"({"model": 5})", "/model");
  require_refused_experiment(R"({"model": "vlm-x"})", "vlm-");
  require_refused_experiment(R"({"iterations": NaN})", "line 1, column");
  require_refused_experiment(R"({"usable_memory_fraction": 1e400})", "1e400");
  require_refused_experiment(R"({"usable_memory_fraction": -0.5})", "/usable_memory_fraction");
  require_refused_experiment(R"({"iterations": 0})", "/iterations");
  require_refused_experiment(R"({"iterations": 1.5})", "/iterations");
  require_refused_experiment(R"({"microbatches": 1000000000})", "/microbatches");
  require_refused_experiment(R"({"schedules": []})", "schedules");
  require_refused_experiment(R"({"schedules": ["1f1b", "1f1b"]})", "twice");
  require_refused_experiment(R"({"schedules": ["1f1c"]})", "1f1b");
  require_refused_experiment(R"({"schedules": ["interleaved:chunk=2"]})", "chunks");
  require_refused_experiment(R"({"parallel": {"pp": 0}})", "/parallel/pp");
  require_refused_experiment(R"({"parallel": {"tp": 3}})", "tp");
  require_refused_experiment(R"({"engine": {"jitter": "much"}})", "/engine/jitter");
  require_refused_experiment(R"({"compose": "yes"})", "/compose");
  require_refused_experiment(R"({"compose": 1})", "/compose");
  require_refused_experiment(R"({"schedules": ["interleaved"], "microbatches": 63})", "64");
  require_refused_experiment(R"({"trace": "no-such-trace"})", "trace");
  require_refused_experiment(R"({"cluster": "h8000-64"})", "h800-64");
}

TEST_CASE("bad flags are refused with the flag and leave no file") {
  struct Case {
    std::vector<std::string> arguments;
    const char* place;
  };

  const std::vector<Case> cases = {
      {{}, "subcommand"},
      {{"compre"}, "compre"},
      {{"simulate", "--ranks", "0"}, "--ranks"},
      {{"simulate", "--ranks", "-3"}, "--ranks"},
      {{"simulate", "--microbatches", "1000000000"}, "--microbatches"},
      {{"simulate", "--ranks", "1000", "--microbatches", "1000000"}, "10"},
      {{"simulate", "--forward-us", "nan"}, "--forward-us"},
      {{"simulate", "--forward-us", "1e400"}, "--forward-us"},
      {{"simulate", "--forward-us", "-1"}, "--forward-us"},
      {{"simulate", "--forward-us", "1,2,3"}, "forward"},
      {{"simulate", "--schedule", "interleaved", "--chunks", "2", "--microbatches", "9"}, "8"},
      {{"simulate", "--schedule", "1f2b"}, "1f1b"},
      {{"simulate", "--send", "lazy"}, "eager"},
      {{"simulate", "no-such-plan.json"}, "no-such-plan.json"},
      {{"list", "modules"}, "models"},
      {{"describe", "vlm"}, "vlm-"},
      {{"compare", "--fail-if", "1 <", "--out", "out"}, "--fail-if"},
      {{"plan", "--schedule", "dip"}, "--out"},
      {{"compare", "--iterations", "0"}, "--iterations"},
      {{"compare", "--tp", "0"}, "--tp"},
      {{"compare", "--format", "yaml"}, "--format"},
      {{"compare", "--compose=perhaps"}, "--compose"},
      {{"describe", "vlm-s", "--compose"}, "--compose"},
      {{"describe", "vlm-s", "--pp", "3"}, "--pp"},
      {{"simulate", "--chunks", "2", "--schedule", "interleaved:chunks=4"}, "--chunks"},
      {{"compare", "--profile", "no-such-file.json"}, "no-such-file.json"},
      {{"compare", "--schedules", ""}, "schedule"},
      {{"compare", "--schedules", "1f1b:chunks=1:chunks=1"}, "twice"},
      {{"compare", "--schedules", "1f1b:partition=tim"}, "time"},
      {{"plan", "--schedule", "1f1b,dip", "--out", "plan.json"}, "1f1b"},
      {{"simulate", "--schedule", "1f1b:recompute=full"}, "recompute"},
  };
  for (const Case& c : cases) {
    const TemporaryFolder folder;
    require_refusal(run_program(c.arguments, folder.path()), c.place);
    CHECK(holds_nothing(folder.path()));
  }
}

TEST_CASE("an answer that stdout can't take is an error of the environment") {
  const TemporaryFolder folder;
  const Outcome outcome = run_program({"simulate"}, folder.path(), "/dev/full");
  CHECK(outcome.exit_code == 4);
  CHECK(outcome.err.find("stdout") != std::string::npos);
}

TEST_CASE("an error is JSON on stdout for those who asked for JSON") {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program({"simulate", "--ranks", "0", "--format", "json"}, folder.path());
  CHECK(outcome.exit_code == 2);
  const nlohmann::json parsed = nlohmann::json::parse(outcome.out);
  CHECK(parsed.at("schema_version") == 1);
  CHECK(parsed.at("error").at("kind") == "input");
  CHECK(parsed.at("error").at("exit_code") == 2);
  CHECK(parsed.at("error").contains("message"));
  CHECK(parsed.at("error").contains("where"));
}

}  // namespace dipsim::test
