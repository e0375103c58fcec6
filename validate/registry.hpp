// SPDX-License-Identifier: Apache-2.0
// The data sets that predictions are held against: one line per set in registry.cpp.
#pragma once

#include "validate/published_data.hpp"
#include "validate/validation_set.hpp"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace dipsim {

/// Data sets of one table.
struct SetBuilder {
  std::string_view table;  ///< NAME of NAME.csv
  /// Names of what `build` returns, in its order: one or more (a table may hold several GPUs), ""
  /// behind the last. Known even where the table is absent.
  std::array<std::string_view, 4> sets;
  std::vector<ValidationSet> (*build)(const CsvTable& table);
};

std::span<const SetBuilder> all_set_builders();

/// Whether `name` is the builder's table or one of its sets.
bool names(const SetBuilder& builder, std::string_view name);

/// Builds the sets of a table. Errors that name only what is wrong in a row get the file in front.
std::vector<ValidationSet> build_sets(const SetBuilder& builder, const CsvTable& table);

}  // namespace dipsim
