// SPDX-License-Identifier: Apache-2.0
// All data sets at once: what `dipsim validate` prints.
#pragma once

#include "validate/published_data.hpp"
#include "validate/validation_set.hpp"

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace dipsim {

struct Validation {
  std::vector<ValidationSet> sets;   ///< in the order of registry.cpp
  std::vector<std::string> missing;  ///< tables that lie nowhere: NAME of NAME.csv
};

struct ValidationOptions {
  std::vector<std::string> names;  ///< of sets or tables; empty: all
  std::size_t jobs = 0;            ///< threads; 0: all. The result does not depend on it
  std::stop_token stop;            ///< a requested stop leaves out what has not begun
  std::function<void(std::size_t done, std::size_t total)> progress;
};

/// Predicts every row of every table that is there. Throws Input on a malformed table, and on a
/// name that is neither a set nor a table, naming the nearest.
Validation run_validation(const PublishedData& data, const ValidationOptions& options);

}  // namespace dipsim
