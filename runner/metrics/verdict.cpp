// SPDX-License-Identifier: Apache-2.0
// Formats verdicts, converts them from and to JSON, and counts outcomes.
#include "runner/metrics/verdict.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr const char* kOutcomeNames[kOutcomeCount] = {
    "fail", "error", "flaky", "warn", "unjudged", "skipped", "waived", "deferred", "elsewhere", "pass"};

/// A figure that may be absent: NaN is left out.
void putFigure(Json& json, const char* key, double value) {
  if (!std::isnan(value)) json[key] = numberToJson(value);
}

void readOutcome(JsonReader& r, Outcome& out) {
  std::string name;
  r.read("outcome", name);
  if (!r.ok()) return;
  const auto outcome = outcomeFromName(name);
  if (!outcome.ok()) return r.fail("outcome", outcome.error().message);
  out = *outcome;
}

Json toJson(const AttemptOutcome& attempt) {
  Json json = {{"attempt", attempt.attempt}, {"outcome", outcomeName(attempt.outcome)}};
  putFigure(json, "observed", attempt.observed);
  return json;
}

Status readAttempt(const Json& json, const std::string& path, std::vector<AttemptOutcome>& out) {
  AttemptOutcome attempt;
  attempt.observed = kNaN;
  JsonReader r(json, path);
  r.read("attempt", attempt.attempt);
  readOutcome(r, attempt.outcome);
  r.optional("observed", attempt.observed);
  out.push_back(attempt);
  return r.status();
}

}  // namespace

const char* outcomeName(Outcome outcome) {
  return kOutcomeNames[static_cast<size_t>(outcome)];
}

Result<Outcome> outcomeFromName(std::string_view name) {
  for (int i = 0; i < kOutcomeCount; ++i)
    if (name == kOutcomeNames[i]) return static_cast<Outcome>(i);
  const std::vector<std::string> names(std::begin(kOutcomeNames), std::end(kOutcomeNames));
  return Error{
      ErrorCode::kProtocol,
      fmt::format("\"{}\" is not an outcome; expected one of {}", printable(name, 40), join(names, ", ")),
      ""};
}

std::string subjectText(const Verdict& verdict) {
  std::string who = verdict.device;
  if (who.empty()) who = verdict.rank > 0 ? fmt::format("rank {}", verdict.rank) : "node";
  Labels labels = verdict.labels;
  labels.erase("device");
  return labels.empty() ? who + ": " : fmt::format("{} ({}): ", who, printable(labelsText(labels)));
}

std::string distanceText(double observed, double limit) {
  const double distance = (observed - limit) / std::fabs(limit);
  if (!std::isfinite(distance) || distance == 0) return "";
  return fmt::format(" ({} {})", formatQuantity(std::fabs(distance), "ratio", 2),
                     distance < 0 ? "below" : "above");
}

std::string comparisonText(const Verdict& verdict) {
  return fmt::format("{}{}, required {}{}", subjectText(verdict), verdict.observedText, verdict.limitText,
                     distanceText(verdict.observed, verdict.limit));
}

Json toJson(const Verdict& v) {
  return toJson(v, v.expectation ? toJson(*v.expectation) : Json());
}

Json toJson(const Verdict& v, Json expectation) {
  Json json = {{"outcome", outcomeName(v.outcome)}, {"stage", v.stage}};
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  text("case", v.caseId);
  text("metric", v.metric);
  text("device", v.device);
  if (v.rank >= 0) json["rank"] = v.rank;
  if (!v.labels.empty()) json["labels"] = v.labels;
  if (!expectation.is_null()) json["expectation"] = std::move(expectation);
  putFigure(json, "observed", v.observed);
  text("observed_text", v.observedText);
  putFigure(json, "limit", v.limit);
  text("limit_text", v.limitText);
  putFigure(json, "margin", v.margin);
  text("detail", v.detail);
  text("remedy", v.remedy);
  if (!v.required) json["required"] = false;
  for (const auto& attempt : v.attempts) json["attempts"].push_back(toJson(attempt));
  return json;
}

Result<Verdict> verdictFromJson(const Json& json, const std::string& path) {
  Verdict v;
  v.observed = v.limit = v.margin = kNaN;
  JsonReader r(json, path);
  readOutcome(r, v.outcome);
  r.read("stage", v.stage);
  r.optional("case", v.caseId);
  r.optional("metric", v.metric);
  r.optional("device", v.device);
  r.optional("rank", v.rank);
  r.optional("labels", v.labels);
  r.optional("observed", v.observed);
  r.optional("observed_text", v.observedText);
  r.optional("limit", v.limit);
  r.optional("limit_text", v.limitText);
  r.optional("margin", v.margin);
  r.optional("detail", v.detail);
  r.optional("remedy", v.remedy);
  r.optional("required", v.required);
  if (r.has("attempts"))
    r.each("attempts",
           [&](const Json& item, const std::string& at) { return readAttempt(item, at, v.attempts); });
  if (!r.ok()) return r.status().error();
  if (r.has("expectation")) {
    MUSTER_TRY(v.expectation, expectationFromJson(json["expectation"], path + ".expectation"));
  }
  return v;
}

void Accounting::add(const Verdict& verdict) {
  ++counts[static_cast<size_t>(verdict.outcome)];
  if (verdict.outcome == Outcome::kSkipped && verdict.required) ++requiredSkips;
}

size_t Accounting::total() const {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

}  // namespace muster
