// SPDX-License-Identifier: Apache-2.0
#include "validate/validation.hpp"

#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"
#include "sim/core/text.hpp"
#include "validate/registry.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

/// What one table gave.
struct TableResult {
  bool missing = false;
  std::vector<ValidationSet> sets;
};

bool is_table(std::string_view name) {
  const auto builders = all_set_builders();
  return std::ranges::find(builders, name, &SetBuilder::table) != builders.end();
}

/// Only the tables that are named, unless a set is named: its table isn't known before it is built.
std::vector<SetBuilder> builders_for(const std::vector<std::string>& names) {
  const auto all = all_set_builders();
  std::vector<SetBuilder> chosen;
  for (const SetBuilder& builder : all) {
    if (!std::ranges::all_of(names, is_table) || names.empty() ||
        std::ranges::find(names, builder.table) != names.end()) {
      chosen.push_back(builder);
    }
  }
  return chosen;
}

std::vector<TableResult> build(std::span<const SetBuilder> builders, const PublishedData& data,
                               const ValidationOptions& options) {
  std::vector<TableResult> results(builders.size());
  std::atomic<std::size_t> done{0};
  parallel_for(
      builders.size(), options.jobs,
      [&](std::size_t i) {
        if (const auto table = data.table(std::string(builders[i].table))) {
          results[i].sets = build_sets(builders[i], *table);
        } else {
          results[i].missing = true;
        }
        if (options.progress) {
          options.progress(++done, builders.size());
        }
      },
      options.stop);
  return results;
}

void require_known(const std::vector<std::string>& names,
                   const std::vector<std::string_view>& known) {
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      fail_input("--set", unknown_name("set", name, known));
    }
  }
}

}  // namespace

Validation run_validation(const PublishedData& data, const ValidationOptions& options) {
  const std::vector<SetBuilder> builders = builders_for(options.names);
  std::vector<TableResult> results = build(builders, data, options);
  std::vector<std::string_view> known;
  for (const SetBuilder& builder : all_set_builders()) {
    known.push_back(builder.table);
  }
  for (const TableResult& result : results) {
    for (const ValidationSet& set : result.sets) {
      if (std::ranges::find(known, set.name) == known.end()) {
        known.emplace_back(set.name);
      }
    }
  }
  if (!options.stop.stop_requested()) {
    require_known(options.names, known);
  }
  const auto wanted = [&](std::string_view name) {
    return options.names.empty() || std::ranges::find(options.names, name) != options.names.end();
  };
  Validation out;
  for (std::size_t i = 0; i < builders.size(); ++i) {
    if (results[i].missing && wanted(builders[i].table)) {
      out.missing.emplace_back(builders[i].table);
    }
    for (ValidationSet& set : results[i].sets) {
      if (wanted(builders[i].table) || wanted(set.name)) {
        out.sets.push_back(std::move(set));
      }
    }
  }
  return out;
}

}  // namespace dipsim
