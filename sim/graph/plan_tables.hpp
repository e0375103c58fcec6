// SPDX-License-Identifier: Apache-2.0
// The long tables of a plan file: one list of column names, and a list of whole numbers per row.
#pragma once

#include "sim/core/json.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <string>
#include <vector>

namespace dipsim::plan_tables {

/// {"columns": [...], "rows": [[...], ...]}, a row per line. T: Task, Pair, Strategy, Edge,
/// Overlap.
template <class T>
std::string write(std::span<const T> table);

/// Throws Input on other columns, rows of another length and numbers that are no int64.
template <class T>
std::vector<T> read(const JsonValue& value);

}  // namespace dipsim::plan_tables
