// SPDX-License-Identifier: Apache-2.0
#include "cli/options.hpp"

#include "experiment/schedule_choice.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace dipsim::cli {

namespace {

/// CLI11 reads "nan" and turns 1e400 into infinity without a word, so the text is checked first.
CLI::Validator number_in(double low, double high) {
  return {[low, high](const std::string& text) {
            double value = 0.0;
            const char* end = text.data() + text.size();
            const auto [at, code] = std::from_chars(text.data(), end, value);
            if (code != std::errc{} || at != end || !std::isfinite(value) || value < low ||
                value > high) {
              return fmt::format("\"{}\" is not a number from {:g} to {:g}", text, low, high);
            }
            return std::string();
          },
          "", "number"};
}

CLI::Validator whole_in(std::int64_t low, std::int64_t high) {
  return {[low, high](const std::string& text) {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [at, code] = std::from_chars(text.data(), end, value);
            if (code != std::errc{} || at != end || value < low || value > high) {
              return fmt::format("\"{}\" is not a whole number from {} to {}", text, low, high);
            }
            return std::string();
          },
          "", "whole"};
}

}  // namespace

bool given(const CLI::App& app, const std::string& option) {
  const CLI::Option* found = app.get_option_no_throw(option);
  return found != nullptr && found->count() > 0;
}

CLI::Option* add_number(CLI::App& app, const std::string& names, double& value, double low,
                        double high, const std::string& help) {
  return app.add_option(names, value, help)->check(number_in(low, high))->capture_default_str();
}

CLI::Option* add_numbers(CLI::App& app, const std::string& names, std::vector<double>& values,
                         double low, double high, const std::string& help) {
  return app.add_option(names, values, help)
      ->delimiter(',')
      ->check(number_in(low, high))
      ->capture_default_str();
}

CLI::Option* add_whole(CLI::App& app, const std::string& names, std::int64_t& value,
                       std::int64_t low, std::int64_t high, const std::string& help) {
  return app.add_option(names, value, help)->check(whole_in(low, high))->capture_default_str();
}

void OutputFlags::add(CLI::App& app) {
  const std::vector<std::string> names(kFormatNames.begin(), kFormatNames.end());
  app.add_option("--format", format, "table, json, csv or markdown on stdout")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_flag("--quiet", quiet, "nothing on stderr but errors");
}

void EngineFlags::add(CLI::App& app, const std::string& contention_default) {
  app.add_option("--lanes", lanes,
                 "what a transfer queues behind: pair-direction, pair, rank or copy-engine")
      ->capture_default_str()
      ->group("Engine");
  app.add_option("--send", send,
                 "eager; blocking: the sender computes nothing until it has arrived; rendezvous: "
                 "it waits for the "
                 "receiver to post")
      ->capture_default_str()
      ->group("Engine");
  add_number(app, "--host-issue-us", host_issue_us, 0.0, 1e6,
             "host time to issue each pass, one after the other on a rank")
      ->group("Engine");
  add_number(app, "--jitter", jitter, 0.0, 1.0, "sigma of log-normal noise on every time")
      ->group("Engine");
  add_whole(app, "--jitter-seed", jitter_seed, 0, std::numeric_limits<std::int64_t>::max(),
            "seed of the noise")
      ->group("Engine");
  app.add_option("--contention", contention,
                 fmt::format("on: transfers, collectives and copies share links, and slow the "
                             "passes beside them; off [{}]",
                             contention_default))
      ->check(CLI::IsMember({"on", "off"}))
      ->group("Engine");
}

EngineOptions EngineFlags::options() const {
  return {.lanes = lane_policy_of(lanes, "--lanes"),
          .send = send_mode_of(send, "--send"),
          .host_issue = round_to_duration(host_issue_us * 1e-6, "--host-issue-us"),
          .jitter = jitter,
          .seed = static_cast<std::uint64_t>(jitter_seed),
          .contention = contention == "on"};
}

void EngineFlags::apply(const CLI::App& app, EngineOptions& engine) const {
  const EngineOptions own = options();
  engine.lanes = given(app, "--lanes") ? own.lanes : engine.lanes;
  engine.send = given(app, "--send") ? own.send : engine.send;
  engine.host_issue = given(app, "--host-issue-us") ? own.host_issue : engine.host_issue;
  engine.jitter = given(app, "--jitter") ? own.jitter : engine.jitter;
  engine.seed = given(app, "--jitter-seed") ? own.seed : engine.seed;
  engine.contention = given(app, "--contention") ? own.contention : engine.contention;
}

void ExperimentFlags::add_workload(CLI::App& app) {
  const ExperimentSpec defaults;
  app.add_option("--model", model,
                 fmt::format("by name or file (dipsim list models) [{}]", defaults.model));
  app.add_option("--cluster", cluster,
                 fmt::format("by name or file (dipsim list clusters) [{}]", defaults.cluster));
  app.add_option(
      "--trace", trace,
      fmt::format("by name (dipsim list traces) or a JSON Lines file [{}]", defaults.trace));
  app.add_option("--profile", profile,
                 "file that replaces the profile of the GPU [the one that ships with it]");
  const auto whole = [&](const char* flag, std::int64_t& value, std::int64_t low, std::int64_t high,
                         const std::string& help) {
    add_whole(app, flag, value, low, high, help)->default_str("");
  };
  whole("--microbatches", microbatches, 1, kMaxMicrobatches,
        fmt::format("per replica and iteration [{}]", defaults.microbatches));
  whole("--seed", seed, 0, std::numeric_limits<std::int64_t>::max(),
        fmt::format("of generated traces and shuffling [{}]", defaults.seed));
  app.add_flag("--compose,!--no-compose", compose,
               "deal the packed samples anew to microbatches and replicas, within the limits of\n"
               "packing, so that each has equal work in every module [off]");
  whole("--tp", tp, 1, kMaxParallel, "tensor-parallel GPUs per rank [the model's]");
  whole("--pp", pp, 1, kMaxParallel, "pipeline ranks [the model's]");
  whole("--dp", dp, 1, kMaxParallel, "data-parallel replicas [the model's]");
  whole("--cp", cp, 1, kMaxParallel, "context-parallel GPUs per rank [the model's]");
  whole("--ep", ep, 1, kMaxParallel, "expert-parallel GPUs [the model's]");
  add_number(app, "--usable-memory-fraction", usable_memory_fraction, 0.01, 1.0,
             "share of GPU memory that a plan may use [the cluster's]")
      ->default_str("");
  app.add_option(
         "--slow", slow,
         "GPU=SPEED or nodeNODE=SPEED, numbered from 0, may be repeated: what if this GPU, "
         "or\nevery GPU of this node, computed at 0.001 to 1 times its speed [the cluster's]")
      ->allow_extra_args(false);
}

void ExperimentFlags::add(CLI::App& app, bool several) {
  const ExperimentSpec defaults;
  app.add_option("experiment", file, "experiment file (docs/config.md); flags replace its values");
  add_workload(app);
  const std::string syntax =
      "NAME or NAME:key=value:… (dipsim list schedules); keys:\n" + schedule_option_help();
  if (several) {
    CLI::Option* list = app.add_option(
        "--schedules", schedules, "separated by commas; ratios refer to the first; each " + syntax);
    std::string steps;
    for (const std::string& step : ablation_schedules()) {
      steps += (steps.empty() ? "" : ",\n") + step;
    }
    app.add_flag("--ablation", ablation,
                 "what each part of DIP brings, in the order of its paper: --schedules\n" + steps)
        ->excludes(list);
    add_whole(app, "--iterations", iterations, 1, kMaxIterations,
              fmt::format("training iterations to run [{}]", defaults.iterations))
        ->default_str("");
  } else {
    app.add_option("--schedule", schedules, syntax)->required();
  }
  engine.add(app, defaults.engine.contention ? "on" : "off");
}

ExperimentSpec ExperimentFlags::spec(const CLI::App& app) const {
  ExperimentSpec spec = file.empty() ? ExperimentSpec{} : read_experiment(file);
  const auto replace_text = [&](const char* flag, const std::string& from, std::string& to) {
    if (given(app, flag)) {
      to = from;
    }
  };
  replace_text("--model", model, spec.model);
  replace_text("--cluster", cluster, spec.cluster);
  replace_text("--trace", trace, spec.trace);
  replace_text("--profile", profile, spec.profile);
  if (given(app, "--schedules")) {
    const std::vector<std::string_view> names = split(schedules, ',');
    spec.schedules.assign(names.begin(), names.end());
  }
  if (ablation) {
    spec.schedules = ablation_schedules();
  }
  if (given(app, "--schedule")) {
    spec.schedules = {schedules};
  }
  const auto replace_number = [&](const char* flag, std::int64_t from, auto& to) {
    if (given(app, flag)) {
      to = static_cast<int>(from);
    }
  };
  replace_number("--iterations", iterations, spec.iterations);
  replace_number("--microbatches", microbatches, spec.microbatches);
  replace_number("--tp", tp, spec.tp);
  replace_number("--pp", pp, spec.pp);
  replace_number("--dp", dp, spec.dp);
  replace_number("--cp", cp, spec.cp);
  replace_number("--ep", ep, spec.ep);
  if (given(app, "--seed")) {
    spec.seed = static_cast<std::uint64_t>(seed);
  }
  if (given(app, "--compose")) {
    spec.compose = compose;
  }
  if (given(app, "--usable-memory-fraction")) {
    spec.usable_memory_fraction = usable_memory_fraction;
  }
  if (given(app, "--slow")) {
    spec.slow_gpus.clear();
    for (const std::string& text : slow) {
      spec.slow_gpus.push_back(parse_speed_entry(text, "--slow"));
    }
  }
  engine.apply(app, spec.engine);
  check(spec);
  return spec;
}

}  // namespace dipsim::cli
