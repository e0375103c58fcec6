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

/// Throws Input on a name that is neither a table nor a set, before anything is built.
void require_known(const std::vector<std::string>& wanted) {
  std::vector<std::string_view> known;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && std::ranges::find(known, name) == known.end()) {
      known.push_back(name);
    }
  };
  for (const SetBuilder& builder : all_set_builders()) {
    add(builder.table);
    std::ranges::for_each(builder.sets, add);
  }
  for (const std::string& name : wanted) {
    if (std::ranges::find(known, name) == known.end()) {
      fail_input("--set", unknown_name("set", name, known));
    }
  }
}

/// Those with something that is named; all where nothing is.
std::vector<SetBuilder> builders_for(const std::vector<std::string>& wanted) {
  std::vector<SetBuilder> chosen;
  for (const SetBuilder& builder : all_set_builders()) {
    if (wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& name) {
          return names(builder, name);
        })) {
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

}  // namespace

Validation run_validation(const PublishedData& data, const ValidationOptions& options) {
  require_known(options.names);
  const std::vector<SetBuilder> builders = builders_for(options.names);
  std::vector<TableResult> results = build(builders, data, options);
  const auto wanted = [&](std::string_view name) {
    return options.names.empty() || std::ranges::find(options.names, name) != options.names.end();
  };
  Validation out;
  for (std::size_t i = 0; i < builders.size(); ++i) {
    const std::string table(builders[i].table);
    if (results[i].missing && std::ranges::find(out.missing, table) == out.missing.end()) {
      out.missing.push_back(table);
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
