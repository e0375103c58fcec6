// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/model.hpp"
#include "validate/csv_table.hpp"

#include <string_view>

namespace dipsim {

/// Architecture of a public language model by the name that tables give it ("Llama3.1-8B", "Llama3
/// 70B"), from its config.json. Throws Input at the row for an unknown one.
ModuleSpec llama_spec(std::string_view name, const CsvRow& row);

}  // namespace dipsim
