// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/parameter_file.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace dipsim {

namespace {

constexpr std::array<std::string_view, kEvidenceCount> kEvidenceNames = {"measured", "fitted",
                                                                         "prior"};

Evidence read_evidence(const JsonValue& value) {
  return static_cast<Evidence>(value.one_of(kEvidenceNames, "evidence"));
}

}  // namespace

std::string_view name_of(Evidence evidence) {
  return kEvidenceNames[static_cast<std::size_t>(evidence)];
}

GroupSource read_group_source(JsonObject& group) {
  GroupSource source;
  if (const auto evidence = group.find("evidence")) {
    source.evidence = read_evidence(*evidence);
    source.source = group.at("source").text();
  }
  return source;
}

Parameter read_parameter(const JsonValue& value, const GroupSource& group, double low,
                         double high) {
  if (!value.is_object()) {
    const double number = value.number(low, high);
    if (!group.evidence) {
      value.fail(
          "has no evidence: write {\"value\", \"evidence\", \"source\"}, or name "
          "\"evidence\" and \"source\" beside it");
    }
    return {number, *group.evidence, group.source};
  }
  JsonObject object = value.object();
  Parameter parameter{object.at("value").number(low, high), read_evidence(object.at("evidence")),
                      object.at("source").text()};
  object.finish();
  return parameter;
}

nlohmann::json group_json(std::span<const NamedParameter> parameters) {
  const Parameter& first = parameters.front().parameter;
  nlohmann::json out = {{"evidence", name_of(first.evidence)}, {"source", first.source}};
  for (const auto& [name, parameter] : parameters) {
    if (parameter.evidence == first.evidence && parameter.source == first.source) {
      out[name] = parameter.value;
    } else {
      out[name] = {{"value", parameter.value},
                   {"evidence", name_of(parameter.evidence)},
                   {"source", parameter.source}};
    }
  }
  return out;
}

}  // namespace dipsim
