// SPDX-License-Identifier: Apache-2.0
// The data sets that predictions are held against: one line per set in registry.cpp.
#pragma once

#include "validate/published_data.hpp"
#include "validate/validation_set.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace dipsim {

/// Data sets of one table.
struct SetBuilder {
  std::string_view table;  ///< NAME of NAME.csv
  /// One or more sets (a table may hold several GPUs).
  std::vector<ValidationSet> (*build)(const CsvTable& table);
};

std::span<const SetBuilder> all_set_builders();

/// Builds the sets of a table. Errors that name only what is wrong in a row get the file in front.
std::vector<ValidationSet> build_sets(const SetBuilder& builder, const CsvTable& table);

}  // namespace dipsim
