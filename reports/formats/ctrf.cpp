// SPDX-License-Identifier: Apache-2.0
// Writes check results as tests of one CTRF document. Times are whole milliseconds.
#include <cmath>
#include <map>

#include "reports/formats/formats.h"
#include "runner/core/text.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/findings/marks.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

constexpr double kLongestTime = 1e15;  ///< milliseconds; later ones are damaged

int64_t milliseconds(double seconds) {
  const double value = std::round(seconds * 1000);
  return std::isfinite(value) && value > 0 && value < kLongestTime ? static_cast<int64_t>(value) : 0;
}

/// A flaky check blocks acceptance unless its plan allows it: what CTRF calls flaky has passed in the end.
const char* statusOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
    case Outcome::kWarn:
      return "passed";
    case Outcome::kFail:
    case Outcome::kFlaky:
    case Outcome::kError:
      return "failed";
    case Outcome::kSkipped:
    case Outcome::kWaived:
    case Outcome::kElsewhere:
      return "skipped";
    case Outcome::kDeferred:
      return "pending";
    case Outcome::kUnjudged:
      return "other";
  }
  return "failed";
}

const char* statusOf(const Record& record) {
  if (record.acceptance == Acceptance::kAccepted && record.exitCode == 0) return "passed";
  return record.acceptance == Acceptance::kNoGpu ? "skipped" : "failed";
}

std::string nameOf(const Verdict& verdict) {
  std::vector<std::string> parts;
  for (const auto& part : {verdict.metric, caseText(verdict), verdict.device, wantedText(verdict)})
    if (!part.empty()) parts.push_back(part);
  return parts.empty() ? "stage" : join(parts, " ");
}

Json attemptsOf(const Verdict& verdict) {
  Json list = Json::array();
  for (size_t i = 0; i < verdict.attempts.size(); ++i)
    list.push_back({{"attempt", i + 1}, {"status", statusOf(verdict.attempts[i].outcome)}});
  return list;
}

Json extraOf(const StageRecord& stage, const Verdict& verdict, MeasuredTexts& measured) {
  Json extra = {{"stage", stage.name}, {"metric", verdict.metric}, {"case", verdict.caseId}};
  if (!verdict.device.empty()) extra["device"] = verdict.device;
  if (!verdict.observedText.empty()) extra["measured"] = measured.of(stage, verdict);
  if (std::isfinite(verdict.margin)) extra["margin"] = verdict.margin;
  if (verdict.expectation) extra["source"] = verdict.expectation->source;
  if (!verdict.remedy.empty()) extra["remedy"] = verdict.remedy;
  return extra;
}

Json testOf(const Record& record, const StageRecord& stage, const Verdict& verdict, MeasuredTexts& measured) {
  const double share = stage.duration / static_cast<double>(stage.verdicts.size());
  Json test = {{"name", markPrefix(record) + nameOf(verdict)},
               {"status", statusOf(outcomeWithoutFlaky(stage, verdict))},
               {"duration", milliseconds(share)},
               {"suite", {record.node, stage.name}},
               {"rawStatus", outcomeName(verdict.outcome)},
               {"extra", extraOf(stage, verdict, measured)}};
  if (verdict.outcome == Outcome::kFlaky && allowsFlaky(stage)) test["flaky"] = true;
  if (!verdict.detail.empty()) test["message"] = verdict.detail;
  if (verdict.attempts.size() > 1) {
    test["retries"] = verdict.attempts.size() - 1;
    test["retryAttempts"] = attemptsOf(verdict);
  }
  return test;
}

/// A run that is not accepted is never all green: what no check shows, such as a required skip, shows here.
Json acceptanceTest(const Record& record) {
  return {
      {"name", markPrefix(record) + "acceptance"},
      {"status", statusOf(record)},
      {"duration", milliseconds(record.finished - record.started)},
      {"suite", {record.node}},
      {"rawStatus", muster::nameOf(record.acceptance)},
      {"message", verdictText(record) + (record.reasons.empty() ? "" : ": " + join(record.reasons, "; "))}};
}

/// The tests of the document. All but the acceptance are kept as text, which takes less memory.
class TestList {
 public:
  explicit TestList(const Record& record) : record_(record) { count(statusOf(record)); }

  void add(const StageRecord& stage, TextLimit& limit) {
    for (const Verdict& verdict : stage.verdicts) {
      if (limit.add(text_, weightOf(verdict.outcome),
                    [&] { return listed(testOf(record_, stage, verdict, measured_)); }))
        count(statusOf(outcomeWithoutFlaky(stage, verdict)));
    }
  }
  void addNote(const std::string& note) {
    text_ += listed({{"name", markPrefix(record_) + "left out"},
                     {"status", "skipped"},
                     {"duration", 0},
                     {"suite", {record_.node}},
                     {"rawStatus", "left out"},
                     {"message", note}});
    count("skipped");
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::map<std::string, size_t>& counts() const { return counts_; }

 private:
  void count(const char* status) {
    ++counts_["tests"];
    ++counts_[status];
  }
  /// A test as it stands after others in the indented document.
  static std::string listed(const Json& test) {
    return ",\n   " + join(split(test.dump(1, ' ', true, Json::error_handler_t::replace), '\n'), "\n   ");
  }

  const Record& record_;
  MeasuredTexts measured_;
  std::string text_;
  std::map<std::string, size_t> counts_;
};

Json summaryOf(const Record& record, const std::map<std::string, size_t>& counts) {
  Json summary = Json::object();
  for (const char* key : {"tests", "passed", "failed", "skipped", "pending", "other"}) {
    const auto count = counts.find(key);
    summary[key] = count == counts.end() ? 0 : count->second;
  }
  summary["suites"] = record.stages.size() + 1;
  summary["start"] = milliseconds(record.started);
  summary["stop"] = milliseconds(record.finished);
  return summary;
}

Json environmentOf(const Record& record) {
  Json marks = Json::array();
  for (const Mark& mark : marksOf(record)) marks.push_back(mark.word + " " + mark.text);
  Json concessions = Json::array();
  for (const Concession& concession : concessionsOf(record)) concessions.push_back(concession.text());
  return {{"reportName", markPrefix(record) + record.plan.name},
          {"testEnvironment", record.node},
          {"extra",
           {{"verdict", verdictText(record)},
            {"exit_code", record.exitCode},
            {"run", record.runId},
            {"plan_sha256", record.plan.sha256},
            {"profile", record.profile.name},
            {"marks", marks},
            {"concessions", concessions}}}};
}

}  // namespace

std::string renderCtrf(const Record& record, TextLimit& limit) {
  TestList tests(record);
  for (const StageRecord& stage : record.stages) tests.add(stage, limit);
  if (limit.leftOut() > 0) tests.addNote(limit.note());
  const Json document = {{"reportFormat", "CTRF"},
                         {"specVersion", "0.0.0"},
                         {"generatedBy", "muster"},
                         {"results",
                          {{"tool", {{"name", "muster"}, {"version", record.toolVersion}}},
                           {"summary", summaryOf(record, tests.counts())},
                           {"tests", Json::array({acceptanceTest(record)})},
                           {"environment", environmentOf(record)}}}};
  std::string text = document.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
  // Line breaks of texts are escaped: this one ends the list.
  return text.insert(text.find("\n  ],\n  \"environment\""), tests.text());
}

}  // namespace muster
