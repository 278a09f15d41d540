// SPDX-License-Identifier: Apache-2.0
// Makes the JSON of `muster check --json`.
#include "runner/app/prepare/check_report.h"

#include <algorithm>
#include <utility>

#include "runner/core/text.h"
#include "runner/plan/loader.h"

namespace muster {
namespace {

/// Parts that are not known are left out: a line of 0 would be a location.
Json jsonOf(const SourcePosition& at, const Mistake& mistake) {
  Json json = Json::object();
  if (!at.file.empty()) json["file"] = at.file;
  if (at.line > 0) json["line"] = at.line;
  if (at.line > 0 && at.column > 0) json["column"] = at.column;
  json["message"] = mistake.message;
  for (const auto& [key, part] : {std::pair{"found", &mistake.found},
                                  {"required", &mistake.required},
                                  {"suggestion", &mistake.suggestion}})
    if (!part->empty()) json[key] = *part;
  return json;
}

/// One line of an error that lists several: "file:line:column: message".
Json jsonOfLine(const std::string& line) {
  for (size_t colon = line.find(": "); colon != std::string::npos; colon = line.find(": ", colon + 2)) {
    const SourcePosition at = positionFrom(line.substr(0, colon));
    if (at.line > 0) return jsonOf(at, line.substr(colon + 2));
  }
  return jsonOf({}, line);
}

}  // namespace

size_t CheckedPlan::errors() const {
  return static_cast<size_t>(std::count_if(outcome.diagnostics.begin(), outcome.diagnostics.end(),
                                           [](const Diagnostic& d) { return !d.warning; }));
}

size_t CheckedPlan::cases() const {
  size_t cases = 0;
  if (outcome.plan)
    for (const Stage& stage : outcome.plan->stages) cases += stage.cases.size();
  return cases;
}

void CheckReport::add(const CheckedPlan& plan) {
  Json file = {{"file", plan.name}, {"valid", plan.valid()}};
  if (plan.valid())
    file["plan"] = {{"name", plan.outcome.plan->name},
                    {"stages", plan.outcome.plan->stages.size()},
                    {"cases", plan.cases()}};
  for (const Diagnostic& diagnostic : plan.outcome.diagnostics) {
    Json one = jsonOf(diagnostic.at, diagnostic.mistake);
    one["plan"] = plan.name;
    (diagnostic.warning ? warnings_ : errors_).push_back(std::move(one));
  }
  files_.push_back(std::move(file));
}

void CheckReport::add(const Complaint& complaint) {
  errors_.push_back(jsonOf({complaint.file, complaint.at.line, complaint.at.column}, complaint.mistake));
}

void CheckReport::add(const Error& error) {
  if (!error.where.empty()) {
    errors_.push_back(jsonOf(positionFrom(error.where), error.message));
    return;
  }
  for (const std::string& line : split(error.message, '\n')) errors_.push_back(jsonOfLine(line));
}

Json CheckReport::json() const {
  const bool valid = errors_.empty() && std::all_of(files_.begin(), files_.end(),
                                                    [](const Json& file) { return file["valid"] == true; });
  return {{"valid", valid}, {"files", files_}, {"errors", errors_}, {"warnings", warnings_}};
}

}  // namespace muster
