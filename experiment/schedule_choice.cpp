// SPDX-License-Identifier: Apache-2.0
#include "experiment/schedule_choice.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

namespace dipsim {

namespace {

struct OptionKey {
  std::string_view name;
  std::string_view help;
  void (*apply)(ScheduleChoice& choice, std::string_view value, const std::string& where);
};

int whole(std::string_view text, int low, int high, const std::string& where) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    fail_input(where, fmt::format("\"{}\" is not a whole number from {} to {}", text, low, high));
  }
  return value;
}

RecomputeMode uniform_mode(std::string_view text, const std::string& where) {
  constexpr std::array<std::string_view, 3> kNames = {"keep", "selective", "full"};
  return static_cast<RecomputeMode>(index_of(text, kNames, "recompute mode", where));
}

bool on_off(std::string_view text, const std::string& where) {
  constexpr std::array<std::string_view, 2> kNames = {"off", "on"};
  return index_of(text, kNames, "switch", where) == 1;
}

constexpr int kMostChunks = 1'000;
constexpr int kMostLayers = 100'000;
constexpr int kMostEvaluations = 100'000'000;
constexpr int kMostMs = 86'400'000;

void apply_partition(ScheduleChoice& choice, std::string_view value, const std::string& where) {
  if (value == "parameters") {
    choice.options.partition = PartitionRule::Parameters;
  } else if (value == "time") {
    choice.options.partition = PartitionRule::PassTime;
  } else if (value.empty() || value.front() < '0' || value.front() > '9') {
    constexpr std::array<std::string_view, 2> kRules = {"time", "parameters"};
    fail_input(where, unknown_name("partition", value, kRules) + ", or layers such as 10-10-12");
  } else {
    choice.options.partition = PartitionRule::Given;
    for (const std::string_view count : split(value, '-')) {
      choice.options.given_layers.push_back(whole(count, 1, kMostLayers, where));
    }
  }
}

/// One line per option.
constexpr std::array kKeys = {
    OptionKey{"chunks", "model chunks per rank, e.g. interleaved:chunks=4",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.chunks_per_rank = whole(value, 1, kMostChunks, where);
              }},
    OptionKey{"partition", "time (default), parameters as Megatron, or layers per stage: 10-10-12",
              apply_partition},
    OptionKey{"recompute",
              "keep, selective or full; without it the fastest that fits every iteration",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.recompute = uniform_mode(value, where);
                c.options.recompute = *c.recompute;
              }},
    OptionKey{"tune", "representative (default) or batch: placed anew on every iteration's batch",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                constexpr std::array<std::string_view, 2> kNames = {"representative", "batch"};
                c.options.place_each_batch = index_of(value, kNames, "tuning", where) == 1;
              }},
    OptionKey{"slice", "most instances per slice, instead of the 95 % rule or the search",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.slice_sizes = {whole(value, 1, kMostLayers, where)};
              }},
    OptionKey{"segments", "most segments per module",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.max_segments = whole(value, 1, kMostLayers, where);
              }},
    OptionKey{"level", "memory level of the interleaver: keep, selective or full",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.memory_levels = {uniform_mode(value, where)};
              }},
    OptionKey{"partitioner", "off: whole microbatches, one segment per module",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.partitioner = on_off(value, where);
              }},
    OptionKey{"interleaver", "off: Megatron's order on dip's chunks, no search",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.interleaver = on_off(value, where);
              }},
    OptionKey{"evaluations", "compositions that the search may try per iteration; 0: no search",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.evaluations =
                    static_cast<std::size_t>(whole(value, 0, kMostEvaluations, where));
              }},
    OptionKey{"ms",
              "milliseconds that the search may take in place of evaluations: not reproducible",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.time = std::chrono::milliseconds(whole(value, 1, kMostMs, where));
              }},
    OptionKey{"seed", "of the search",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.seed = static_cast<std::uint64_t>(
                    whole(value, 0, std::numeric_limits<int>::max(), where));
              }},
    OptionKey{"rollouts", "near: completions close to the natural order (default), or uniform",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                constexpr std::array<std::string_view, 2> kNames = {"near", "uniform"};
                c.options.dip.tree.uniform_rollouts =
                    index_of(value, kNames, "kind of roll-outs", where) == 1;
              }},
    OptionKey{"backwards", "inherit the priority of the forward (default), or separate",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                constexpr std::array<std::string_view, 2> kNames = {"inherit", "separate"};
                c.options.dip.tree.separate_backwards =
                    index_of(value, kNames, "rule for backwards", where) == 1;
              }},
    OptionKey{"balance", "off: layers stay evenly spread over the ranks",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.balance = on_off(value, where);
              }},
    OptionKey{"offload", "off: no activations to host memory (dip: unless on)",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.offload = on_off(value, where);
              }},
    OptionKey{"memory", "off: every pair uses the memory level",
              [](ScheduleChoice& c, std::string_view value, const std::string& where) {
                c.options.dip.memory_choice = on_off(value, where);
              }},
};

bool has_option(const ScheduleInfo& info, const OptionKey& key) {
  return std::ranges::find(info.option_keys, key.name) != info.option_keys.end();
}

std::string owners_of(const OptionKey& key) {
  std::string owners;
  for (const ScheduleInfo& schedule : all_schedules()) {
    if (has_option(schedule, key)) {
      owners += fmt::format("{}{}", owners.empty() ? "" : ", ", schedule.name);
    }
  }
  return owners;
}

void apply(ScheduleChoice& choice, std::string_view assignment, const std::string& where) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    fail_input(where, fmt::format("\"{}\" is not of the form key=value", assignment));
  }
  const std::string_view key = assignment.substr(0, equals);
  std::vector<std::string_view> known;
  std::string elsewhere;
  for (const OptionKey& option : kKeys) {
    if (!has_option(*choice.info, option)) {
      elsewhere = option.name == key ? owners_of(option) : elsewhere;
      continue;
    }
    if (option.name == key) {
      option.apply(choice, assignment.substr(equals + 1),
                   fmt::format("{}: {}:{}", where, choice.info->name, assignment));
      return;
    }
    known.push_back(option.name);
  }
  if (!elsewhere.empty()) {
    fail_input(where, fmt::format("{} has no option \"{}\", which belongs to {}; its own: {}",
                                  choice.info->name, key, elsewhere, fmt::join(known, ", ")));
  }
  fail_input(where, unknown_name(fmt::format("option of {}", choice.info->name), key, known));
}

}  // namespace

ScheduleChoice parse_schedule(std::string_view text, const std::string& where) {
  const std::vector<std::string_view> parts = split(text, ':');
  ScheduleChoice choice;
  choice.label = std::string(text);
  try {
    choice.info = &find_schedule(parts.front());
  } catch (const Error& error) {
    fail_input(where, error.message());
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view key = parts[i].substr(0, parts[i].find('='));
    for (std::size_t j = 1; j < i; ++j) {
      if (parts[j].substr(0, parts[j].find('=')) == key) {
        fail_input(where, fmt::format("option \"{}\" stands twice in \"{}\"", key, text));
      }
    }
    apply(choice, parts[i], where);
  }
  return choice;
}

std::string schedule_option_help() {
  std::string help;
  for (const OptionKey& key : kKeys) {
    help +=
        fmt::format("{}{} ({}): {}", help.empty() ? "" : "\n", key.name, owners_of(key), key.help);
  }
  return help;
}

}  // namespace dipsim
