// SPDX-License-Identifier: Apache-2.0
// Reads the parameters of a stage.
#include "reports/fleet/read/parameter_reader.h"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace muster::fleet {
namespace {

constexpr size_t kMostFactsInAll = 2000;  ///< with those of the inventory
constexpr size_t kParameterBytes = 200;

/// Of each parameter of the first case its value; none once another case has a different one.
using Common = std::map<std::string_view, std::optional<dom::element>>;

bool isScalar(const dom::element& value) {
  return !value.is_array() && !value.is_object();
}

void narrow(Common& common, const dom::object& params) {
  for (auto& [key, value] : common) {
    dom::element other;
    if (value && (params.at_key(key).get(other) != simdjson::SUCCESS ||
                  simdjson::minify(other) != simdjson::minify(*value)))
      value.reset();
  }
}

}  // namespace

void readParameters(const dom::object& stage, NodeSummary& node, StageReader& names) {
  std::string_view name;
  dom::array cases;
  if (stage.at_key("name").get(name) != simdjson::SUCCESS ||
      stage.at_key("cases").get(cases) != simdjson::SUCCESS)
    return;
  std::optional<Common> common;
  for (const dom::element one : cases) {
    dom::object params;
    if (one["params"].get(params) != simdjson::SUCCESS) return;
    if (common) {
      narrow(*common, params);
      continue;
    }
    common.emplace();
    for (const auto& [key, value] : params)
      if (isScalar(value) && common->size() < kMostFactsInAll) common->emplace(key, value);
  }
  if (!common) return;
  for (const auto& [key, value] : *common) {
    if (!value || node.facts.size() >= kMostFactsInAll) continue;
    std::string_view text;
    const std::string known =
        value->get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(*value);
    const std::string fact = fmt::format("{}{}: {}", kStageFact, name, key);
    node.facts.push_back(
        {-1, names.text(bounded(fact, kParameterBytes)), names.text(bounded(known, kParameterBytes))});
  }
}

}  // namespace muster::fleet
