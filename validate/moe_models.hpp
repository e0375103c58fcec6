// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/model.hpp"
#include "validate/csv_table.hpp"

#include <string_view>

namespace dipsim {

/// Architecture of a public language model by the name that tables give it ("DeepSeek V3 671B",
/// "Qwen3-30B-A3B"), from its config.json: one with experts of the list in moe_models.cpp, or one
/// of llama_spec(). Throws Input at the row for an unknown one.
ModuleSpec public_model_spec(std::string_view name, const CsvRow& row);

}  // namespace dipsim
