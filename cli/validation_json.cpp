// SPDX-License-Identifier: Apache-2.0
#include "cli/validation_tables.hpp"
#include "report/json.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>

namespace dipsim::cli {

namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(std::optional<double> number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json rows_json(const std::vector<ValidationRow>& rows) {
  ordered_json out = ordered_json::array();
  for (const ValidationRow& row : rows) {
    out.push_back({{"label", row.label},
                   {"line", row.line},
                   {"predicted", row.predicted},
                   {"measured", row.measured},
                   {"error_percent", 100.0 * row.error()},
                   {"note", row.note}});
  }
  return out;
}

ordered_json set_json(const ValidationSet& set) {
  const ErrorSummary summary = summarize(set);
  const auto known = [&](double percent) {
    return number_or_null(summary.rows > 0 ? std::optional(percent) : std::nullopt);
  };
  ordered_json unusable = ordered_json::array();
  for (const UnusableRow& row : set.unusable) {
    unusable.push_back({{"line", row.line}, {"reason", row.reason}});
  }
  ordered_json others = ordered_json::array();
  for (std::size_t i = 0; i < summary.others_mape_percent.size(); ++i) {
    others.push_back(
        {{"name", set.others[i].name}, {"mape_percent", summary.others_mape_percent[i]}});
  }
  ordered_json out;
  out["name"] = set.name;
  out["title"] = set.title;
  out["quantity"] = set.quantity;
  out["unit"] = set.unit;
  out["table"] = table_name(set);
  out["source"] = set.source;
  out["row_count"] = summary.rows;
  out["fitted_count"] = set.fitted.size();
  out["mape_percent"] = known(summary.mape_percent);
  out["max_percent"] = known(summary.max_percent);
  out["bias_percent"] = known(summary.bias_percent);
  out["constant_mape_percent"] = number_or_null(summary.constant_mape_percent);
  out["claim_percent"] = number_or_null(set.claim_percent);
  out["claim_source"] = set.claim_source;
  out["bar_percent"] = number_or_null(set.bar_percent);
  out["others"] = std::move(others);
  out["notes"] = set.notes;
  out["rows"] = rows_json(set.rows);
  out["fitted"] = rows_json(set.fitted);
  out["unusable"] = std::move(unusable);
  return out;
}

}  // namespace

std::string validation_json(const Validation& validation) {
  ordered_json document;
  document["schema_version"] = kResultSchemaVersion;
  document["sets"] = ordered_json::array();
  for (const ValidationSet& set : validation.sets) {
    document["sets"].push_back(set_json(set));
  }
  document["missing_tables"] = validation.missing;
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace dipsim::cli
