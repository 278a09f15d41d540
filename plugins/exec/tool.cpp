// SPDX-License-Identifier: Apache-2.0
// The output of a tool whose results `muster import` reads.
#include <fmt/format.h>

#include "plugins/exec/values.h"
#include "runner/core/text.h"
#include "runner/import/imported.h"

namespace muster::exec {

namespace {

/// What a value itself says is wrong, whatever the tool's summary says; empty: nothing.
std::string faultIn(const Measurement& m) {
  const bool failed = m.unit == "bool";
  const bool wrong = m.metric == "collective.collective_wrong_elements";
  for (const double sample : m.samples) {
    if (failed && sample == 0) return fmt::format("{} ({}): false", m.metric, labelsText(m.labels));
    if (wrong && sample > 0) return fmt::format("{} wrong elements ({})", sample, labelsText(m.labels));
  }
  return "";
}

}  // namespace

Result<std::vector<Value>> valuesOfTool(std::string_view output, const std::string& format) {
  MUSTER_TRY(const ImportedFile file, importText(output, "its output", format));
  if (file.failures > 0)
    return Error{ErrorCode::kProtocol, fmt::format("{} says: {}", file.tool, file.said), ""};
  for (const ImportedCase& one : file.cases)
    if (!one.error.empty()) return Error{ErrorCode::kProtocol, one.error, one.id};
  std::vector<Value> values;
  for (const Measurement& m : file.measurements) {
    if (std::string fault = faultIn(m); !fault.empty())
      return Error{ErrorCode::kProtocol, fmt::format("the output of {} shows a fault: {}", file.tool, fault),
                   ""};
    Value value{m.metric, metricOf(m.unit), m.labels, m.samples, m.text};
    if (value.metric == nullptr)
      return Error{ErrorCode::kProtocol, "no metric has its unit, " + printable(m.unit, 40),
                   printable(m.metric, 120)};
    // `name` is the metric here.
    if (auto job = value.labels.extract("name"); !job.empty()) value.labels["job"] = job.mapped();
    values.push_back(std::move(value));
  }
  if (values.empty()) return Error{ErrorCode::kProtocol, "its output holds no value", ""};
  return values;
}

}  // namespace muster::exec
