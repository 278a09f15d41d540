// SPDX-License-Identifier: Apache-2.0
// Writes stages as test suites and verdicts as test cases.
#include "reports/junit/junit.h"

#include <fmt/format.h>

#include <cmath>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/findings/marks.h"
#include "runner/record/findings/peer_distance.h"
#include "runner/record/markup.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

/// What JUnit can say of an outcome.
enum class Kind { kPassed, kFailure, kError, kSkipped };

Kind kindOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFail:
    case Outcome::kFlaky:
      return Kind::kFailure;
    case Outcome::kError:
      return Kind::kError;
    case Outcome::kSkipped:
    case Outcome::kWaived:
    case Outcome::kDeferred:
    case Outcome::kElsewhere:
      return Kind::kSkipped;
    case Outcome::kPass:
    case Outcome::kWarn:
    case Outcome::kUnjudged:
      return Kind::kPassed;
  }
  return Kind::kError;
}

struct Counts {
  size_t tests = 0;
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;

  void add(Kind kind) {
    ++tests;
    failures += kind == Kind::kFailure ? 1 : 0;
    errors += kind == Kind::kError ? 1 : 0;
    skipped += kind == Kind::kSkipped ? 1 : 0;
  }
  void add(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests, failures, errors,
                       skipped);
  }
};

std::string seconds(double value) {
  return fmt::format("{:.3f}", std::isfinite(value) && value > 0 ? value : 0);
}

/// "2026-11-21T03:10:26": JUnit's schema knows no time zone.
std::string timestamp(double unixSeconds) {
  std::string text = formatUtc(unixSeconds);
  if (text.empty() || text.back() != 'Z') return "1970-01-01T00:00:00";
  text.pop_back();
  return text;
}

std::string property(const std::string& name, const std::string& value) {
  return fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", escapeAttribute(name),
                     escapeAttribute(value));
}

std::string caseName(const Verdict& verdict) {
  std::vector<std::string> parts;
  const std::string wanted = wantedText(verdict);
  for (const auto& part : {verdict.metric, caseText(verdict), verdict.device, wanted})
    if (!part.empty()) parts.push_back(part);
  return parts.empty() ? verdict.stage : join(parts, " ");
}

/// A stage and what its verdicts are compared with.
struct Suite {
  const StageRecord& stage;
  MeasuredTexts measured = {};
  PeerDistances peers = {};
};

/// Everything that is known of a verdict, one line each.
std::string bodyText(Suite& suite, const Verdict& verdict) {
  std::vector<std::string> lines;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) lines.push_back(fmt::format("{}: {}", name, value));
  };
  add("outcome", outcomeName(verdict.outcome));
  add("device", verdict.device);
  add("measured", suite.measured.of(suite.stage, verdict));
  add("required", wantedText(verdict));
  add("margin", marginText(verdict));
  add("peers", suite.peers.of(suite.stage, verdict).text());
  add("detail", verdict.detail);
  if (verdict.expectation) add("source", verdict.expectation->source);
  add("remedy", verdict.remedy);
  for (const auto& attempt : verdict.attempts)
    lines.push_back(fmt::format("attempt {}: {}", attempt.attempt, outcomeName(attempt.outcome)));
  return join(lines, "\n");
}

std::string messageOf(const Verdict& verdict) {
  if (!verdict.detail.empty()) return verdict.detail;
  if (verdict.observedText.empty()) return outcomeName(verdict.outcome);
  return fmt::format("{}, required {}", verdict.observedText, wantedText(verdict));
}

std::string resultElement(Suite& suite, const Verdict& verdict) {
  const std::string type = outcomeName(verdict.outcome);
  const std::string message = escapeAttribute(messageOf(verdict));
  switch (kindOf(outcomeWithoutFlaky(suite.stage, verdict))) {
    case Kind::kFailure:
      return fmt::format("      <failure message=\"{}\" type=\"{}\">{}</failure>\n", message, type,
                         escapeMarkup(bodyText(suite, verdict)));
    case Kind::kError:
      return fmt::format("      <error message=\"{}\" type=\"{}\">{}</error>\n", message, type,
                         escapeMarkup(bodyText(suite, verdict)));
    case Kind::kSkipped:
      return fmt::format("      <skipped message=\"{}: {}\"/>\n", type, message);
    case Kind::kPassed:
      break;
  }
  if (verdict.outcome == Outcome::kPass) return "";
  return fmt::format("      <system-out>{}</system-out>\n", escapeMarkup(bodyText(suite, verdict)));
}

std::string testcase(const std::string& suite, const std::string& name, double time,
                     const std::string& inside) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
                                       escapeAttribute(suite), escapeAttribute(name), seconds(time));
  return inside.empty() ? head + "/>\n" : head + ">\n" + inside + "    </testcase>\n";
}

std::string stageProperties(const Record& record, const StageRecord& stage) {
  std::string text = "    <properties>\n";
  text += property("simulated", record.simulated ? "SIMULATED by scenario " + record.scenario : "no");
  text += property("outcome", outcomeName(stage.outcome));
  text += property("test", stage.plugin + "." + stage.test);
  Accounting accounting;
  for (const auto& verdict : stage.verdicts) accounting.add(verdict);
  for (int i = 0; i < kOutcomeCount; ++i)
    if (accounting.counts[i] > 0)
      text += property(outcomeName(static_cast<Outcome>(i)), std::to_string(accounting.counts[i]));
  return text + "    </properties>\n";
}

std::string suiteElement(const std::string& name, const Record& record, const Counts& counts, double time,
                         double started, const std::string& inside) {
  std::string text =
      fmt::format("  <testsuite name=\"{}\" {} time=\"{}\" timestamp=\"{}\" hostname=\"{}\">\n",
                  escapeAttribute(name), counts.text(), seconds(time), timestamp(started),
                  escapeAttribute(record.node.empty() ? "unknown" : record.node));
  return (text += inside) += "  </testsuite>\n";
}

std::string stageSuite(const Record& record, const StageRecord& stage, Counts& total, TextLimit& limit) {
  if (limit.isFull(Weight::kFinding)) {
    limit.leaveOut(stage.verdicts.size() + 1);
    return "";
  }
  Counts counts;
  Suite suite{stage};
  const std::string name = markPrefix(record) + stage.name;
  std::string inside = stageProperties(record, stage);
  const double share =
      stage.verdicts.empty() ? 0 : stage.duration / static_cast<double>(stage.verdicts.size());
  limit.charge(suiteElement(name, record, counts, stage.duration, stage.started, inside).size());
  for (const auto& verdict : stage.verdicts)
    if (limit.add(inside, weightOf(verdict.outcome),
                  [&] { return testcase(name, caseName(verdict), share, resultElement(suite, verdict)); }))
      counts.add(kindOf(outcomeWithoutFlaky(stage, verdict)));
  total.add(counts);
  return suiteElement(name, record, counts, stage.duration, stage.started, inside);
}

std::string runProperties(const Record& record) {
  std::string text = "    <properties>\n";
  text += property("simulated", record.simulated ? "SIMULATED by scenario " + record.scenario : "no");
  text += property("acceptance", nameOf(record.acceptance)) + property("verdict", verdictText(record)) +
          property("exit_code", std::to_string(record.exitCode));
  for (const Concession& concession : concessionsOf(record))
    text += property("concession", concession.text());
  text += property("expected", std::to_string(record.accounting.expected));
  text += property("plan", record.plan.name) + property("plan_sha256", record.plan.sha256);
  text += property("profile", record.profile.name) + property("run", record.runId);
  for (const std::string& imported : importedTexts(record)) text += property("imported", imported);
  if (!record.rejudged.empty()) text += property("rejudged", rejudgedText(record));
  for (const Mark& mark : marksOf(record))
    if (mark.word == "REDACTED") text += property("redacted", mark.text);
  text += property("muster", record.toolVersion);
  return text + "    </properties>\n";
}

/// The acceptance as a testcase of its own: what no testcase of a stage can show, such as a required skip,
/// shows here.
std::string acceptanceSuite(const Record& record, Counts& total, const TextLimit& limit) {
  Counts counts;
  std::string result;
  const std::string message =
      escapeAttribute(fmt::format("{}: {}", verdictText(record), join(record.reasons, "; ")));
  if (record.acceptance == Acceptance::kRejected)
    result = fmt::format("      <failure message=\"{}\" type=\"rejected\"/>\n", message);
  else if (record.acceptance == Acceptance::kNoGpu)
    result = fmt::format("      <skipped message=\"{}\"/>\n", message);
  else if (record.acceptance != Acceptance::kAccepted || record.exitCode != 0)
    result = fmt::format("      <error message=\"{}\" type=\"{}\"/>\n", message, nameOf(record.acceptance));
  counts.add(record.acceptance == Acceptance::kRejected ? Kind::kFailure
             : record.acceptance == Acceptance::kNoGpu  ? Kind::kSkipped
             : result.empty()                           ? Kind::kPassed
                                                        : Kind::kError);
  const std::string name = markPrefix(record) + "acceptance";
  std::string inside = runProperties(record) + testcase(name, "acceptance", 0, result);
  if (const std::string note = limit.note(); !note.empty()) {
    inside += testcase(name, "left out", 0, fmt::format("      <skipped message=\"{}\"/>\n", note));
    counts.add(Kind::kSkipped);
  }
  total.add(counts);
  return suiteElement(name, record, counts, 0, record.started, inside);
}

}  // namespace

std::string renderJunit(const Record& record, TextLimit& limit) {
  Counts total;
  std::string suites;
  for (const auto& stage : record.stages) suites += stageSuite(record, stage, total, limit);
  const std::string acceptance = acceptanceSuite(record, total, limit);
  std::string text =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {} time=\"{}\">\n",
                  escapeAttribute(markPrefix(record) + record.plan.name), total.text(),
                  seconds(record.finished - record.started));
  return ((text += acceptance) += suites) += "</testsuites>\n";
}

std::string renderJunit(const Record& record) {
  TextLimit limit;
  return renderJunit(record, limit);
}

}  // namespace muster
