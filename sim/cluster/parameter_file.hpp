// SPDX-License-Identifier: Apache-2.0
// Groups of parameters in JSON. A group names evidence and source once; a parameter that differs is
// an object of its own:
//   "gemm": {"evidence": "fitted", "source": "…", "start_up_us": 4.3,
//            "peak_fraction": {"value": 0.77, "evidence": "prior", "source": "…"}}
#pragma once

#include "sim/cluster/parameter.hpp"
#include "sim/core/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

/// A key of a group, where its value goes, and its legal range.
template <class Group>
struct ParameterField {
  std::string_view key;
  Parameter Group::* member;
  double low;
  double high;
};

/// Evidence and source that a group names for all its parameters.
struct GroupSource {
  std::optional<Evidence> evidence;
  std::string source;
};

GroupSource read_group_source(JsonObject& group);
Parameter read_parameter(const JsonValue& value, const GroupSource& group, double low, double high);
nlohmann::json group_json(std::span<const NamedParameter> parameters);

/// Reads every field of the table; unknown keys are errors.
template <class Group>
Group read_group(const JsonValue& value, std::span<const ParameterField<Group>> fields) {
  JsonObject object = value.object();
  const GroupSource source = read_group_source(object);
  Group group;
  for (const ParameterField<Group>& field : fields) {
    group.*field.member = read_parameter(object.at(field.key), source, field.low, field.high);
  }
  object.finish();
  return group;
}

/// The parameters of a group in table order, named by their keys.
template <class Group>
std::vector<NamedParameter> group_parameters(const Group& group,
                                             std::span<const ParameterField<Group>> fields) {
  std::vector<NamedParameter> out;
  for (const ParameterField<Group>& field : fields) {
    out.push_back({std::string(field.key), group.*field.member});
  }
  return out;
}

}  // namespace dipsim
