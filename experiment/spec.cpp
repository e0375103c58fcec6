// SPDX-License-Identifier: Apache-2.0
#include "experiment/spec.hpp"

#include "experiment/schedule_choice.hpp"
#include "sim/core/error.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

namespace dipsim {

namespace {

EngineOptions read_engine(const JsonValue& value) {
  JsonObject object = value.object();
  EngineOptions engine = ExperimentSpec{}.engine;
  if (const auto lanes = object.find("lanes")) {
    engine.lanes = lane_policy_of(lanes->text(), lanes->where());
  }
  if (const auto send = object.find("send")) {
    engine.send = send_mode_of(send->text(), send->where());
  }
  if (const auto issue = object.find("host_issue_us")) {
    engine.host_issue = round_to_duration(issue->number(0.0, 1e6) * 1e-6, issue->where());
  }
  if (const auto jitter = object.find("jitter")) {
    engine.jitter = jitter->number(0.0, 1.0);
  }
  if (const auto seed = object.find("jitter_seed")) {
    engine.seed = static_cast<std::uint64_t>(seed->integer(0));
  }
  if (const auto contention = object.find("contention")) {
    engine.contention = contention->boolean();
  }
  object.finish();
  return engine;
}

void read_parallel(const JsonValue& value, ExperimentSpec& spec) {
  JsonObject object = value.object();
  const auto degree = [&](std::string_view key, std::optional<int>& to) {
    if (const auto found = object.find(key)) {
      to = static_cast<int>(found->integer(1, kMaxParallel));
    }
  };
  degree("tp", spec.tp);
  degree("pp", spec.pp);
  degree("dp", spec.dp);
  degree("cp", spec.cp);
  degree("ep", spec.ep);
  object.finish();
}

void require_range(std::string_view what, std::int64_t value, std::int64_t high) {
  if (value < 1 || value > high) {
    fail_input(std::string(what),
               fmt::format("{} is not a whole number from 1 to {}", value, high));
  }
}

}  // namespace

ExperimentSpec read_experiment(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  JsonObject object = document.root().object();
  ExperimentSpec spec;
  const auto text = [&](std::string_view key, std::string& to) {
    if (const auto found = object.find(key)) {
      to = found->text();
    }
  };
  text("model", spec.model);
  text("cluster", spec.cluster);
  text("trace", spec.trace);
  text("profile", spec.profile);
  if (const auto schedules = object.find("schedules")) {
    spec.schedules.clear();
    for (const JsonValue& schedule : schedules->items()) {
      spec.schedules.push_back(schedule.text());
      static_cast<void>(parse_schedule(spec.schedules.back(), schedule.where()));
    }
  }
  if (const auto iterations = object.find("iterations")) {
    spec.iterations = static_cast<int>(iterations->integer(1, kMaxIterations));
  }
  if (const auto microbatches = object.find("microbatches")) {
    spec.microbatches = static_cast<int>(microbatches->integer(1, kMaxMicrobatches));
  }
  if (const auto seed = object.find("seed")) {
    spec.seed = static_cast<std::uint64_t>(seed->integer(0));
  }
  if (const auto compose = object.find("compose")) {
    spec.compose = compose->boolean();
  }
  if (const auto parallel = object.find("parallel")) {
    read_parallel(*parallel, spec);
  }
  if (const auto usable = object.find("usable_memory_fraction")) {
    spec.usable_memory_fraction = usable->number(0.01, 1.0);
  }
  if (const auto slow = object.find("slow_gpus")) {
    spec.slow_gpus = read_speed_entries(*slow);
  }
  if (const auto engine = object.find("engine")) {
    spec.engine = read_engine(*engine);
  }
  object.finish();
  check(spec);
  return spec;
}

std::vector<std::string> ablation_schedules() {
  return {"megatron:recompute=full", "dip:interleaver=off:memory=off:level=full",
          "dip:evaluations=0:memory=off:level=full", "dip:memory=off:level=full", "dip"};
}

void check(const ExperimentSpec& spec) {
  require_range("iterations", spec.iterations, kMaxIterations);
  require_range("microbatches", spec.microbatches, kMaxMicrobatches);
  if (spec.schedules.empty()) {
    fail_input("schedules", "none is named; dipsim list schedules shows them");
  }
  for (std::size_t i = 0; i < spec.schedules.size(); ++i) {
    static_cast<void>(parse_schedule(spec.schedules[i], "schedules"));
    for (std::size_t j = 0; j < i; ++j) {
      if (spec.schedules[i] == spec.schedules[j]) {
        fail_input("schedules", fmt::format("\"{}\" is named twice", spec.schedules[i]));
      }
    }
  }
}

std::vector<Note> engine_notes(const EngineOptions& engine) {
  return {{"lanes", std::string(name_of(engine.lanes))},
          {"send", std::string(name_of(engine.send))},
          {"host_issue_us", shortest(to_seconds(engine.host_issue) * 1e6)},
          {"jitter", shortest(engine.jitter)},
          {"jitter_seed", std::to_string(engine.seed)},
          {"contention", engine.contention ? "on" : "off"}};
}

}  // namespace dipsim
