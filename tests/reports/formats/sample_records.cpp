// SPDX-License-Identifier: Apache-2.0
// See sample_records.h.
#include "tests/reports/formats/sample_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "runner/core/text.h"

namespace muster::testing {
namespace {

Record ended(Acceptance acceptance, int exitCode, const std::string& reason) {
  Record record = healthyRecord();
  record.acceptance = acceptance;
  record.exitCode = exitCode;
  record.reasons = {reason};
  return record;
}

Record waivedRecord() {
  Record record = healthyRecord();
  record.stages[1].verdicts[3].outcome = Outcome::kWaived;
  record.stages[1].verdicts[3].detail = "waived: riser on order (approved by J. Doe, until 2026-12-31)";
  WaiverRecord waiver;
  waiver.stage = "gemm";
  waiver.metric = record.stages[1].verdicts[3].metric;
  waiver.device = "gpu3";
  waiver.reason = "riser on order";
  waiver.approver = "J. Doe";
  waiver.expires = "2026-12-31";
  waiver.state = WaiverState::kApplied;
  waiver.covered = 1;
  record.waivers = {waiver};
  settle(record);
  return record;
}

Record importedRecord() {
  Record record = healthyRecord();
  record.simulated = false;
  record.scenario.clear();
  record.backend = kImportedBackend;
  record.imported = {
      {"gemm", "all_reduce.txt", std::string(64, 'a'), 10, "nccl-tests", "nccl-tests 2.17", "ok", ""}};
  return record;
}

/// The record with few samples and readings: the formats repeat them all alike.
Record shortened(Record record) {
  for (StageRecord& stage : record.stages) {
    for (Measurement& m : stage.measurements) m.samples.resize(std::min<size_t>(m.samples.size(), 2));
    stage.telemetry.resize(std::min<size_t>(stage.telemetry.size(), 2));
    for (TelemetrySeries& series : stage.telemetry) {
      series.time.resize(3);
      series.value.resize(3);
    }
  }
  return record;
}

/// Of many alike a few: three measurements and passes of each stage.
void keepFew(StageRecord& stage) {
  stage.measurements.resize(std::min<size_t>(stage.measurements.size(), 3));
  size_t passes = 0;
  std::erase_if(stage.verdicts,
                [&](const Verdict& v) { return v.outcome == Outcome::kPass && ++passes > 3; });
}

void setTexts(StageRecord& stage, const std::string& text) {
  stage.name = stage.plugin = stage.test = stage.reason = text;
  stage.needs = stage.log = {text};
  for (CaseRecord& item : stage.cases) item.id = text;
  for (RankRecord& rank : stage.ranks)
    rank.device = rank.signal = rank.error = rank.lastProgress = rank.outputTail = rank.rerun = text;
  for (TelemetrySeries& series : stage.telemetry) series.metric = series.unit = series.device = text;
  for (ArtifactRecord& file : stage.artifacts) file.name = file.path = file.mediaType = text;
  for (Measurement& m : stage.measurements) {
    m.metric = m.caseId = m.device = text;
    if (m.isText()) m.text = text;
    for (auto& [name, value] : m.labels) value = text;
  }
  for (Verdict& v : stage.verdicts) {
    v.stage = v.caseId = v.metric = v.device = v.observedText = v.limitText = v.detail = v.remedy = text;
    for (auto& [name, value] : v.labels) value = text;
    if (!v.expectation) continue;
    v.expectation->metric = v.expectation->source = v.expectation->remedy = v.expectation->at = text;
    v.expectation->allowed = {text};
  }
}

}  // namespace

std::vector<std::pair<std::string, Record>> everyKindOfRecord() {
  Record measured = healthyRecord();
  measured.simulated = false;
  measured.scenario.clear();
  measured.stages[0].measurements[0].samples[0] = std::numeric_limits<double>::quiet_NaN();
  Record flaky = healthyRecord();  // where the plan allows it
  flaky.stages[0].evidence["allow_flaky"] = true;
  flaky.stages[0].verdicts[0].outcome = Outcome::kFlaky;
  settle(flaky);
  Record unknown = ended(Acceptance::kIncomplete, 3, "unknown SKU");
  unknown.profile = {};
  Record none;
  none.acceptance = Acceptance::kInterrupted;
  none.exitCode = 130;
  std::vector<std::pair<std::string, Record>> all = {
      {"healthy", healthyRecord()},
      {"sick", sickRecord()},
      {"rejudged", rejudgedRecord()},
      {"redacted", healthyRecord()},
      {"partial", partialRecord()},
      {"waived", waivedRecord()},
      {"unknown", unknown},
      {"incomplete", ended(Acceptance::kIncomplete, 3, "1 case could not be measured")},
      {"interrupted", ended(Acceptance::kInterrupted, 130, "interrupted by SIGINT")},
      {"no-gpu", ended(Acceptance::kNoGpu, 5, "no GPU was found")},
      {"imported", importedRecord()},
      {"measured", measured},
      {"flaky", flaky},
      {"none", none}};
  all[3].second.redacted = {std::string(64, 'c'), {"host"}};
  for (auto& [name, record] : all) record = shortened(std::move(record));
  return all;
}

Record recordWithText(const std::string& text) {
  Record record = shortened(sickRecord());
  for (StageRecord& stage : record.stages) keepFew(stage);
  record.node = record.runId = record.scenario = record.backend = record.skuHow = text;
  record.plan.name = record.plan.path = record.profile.name = record.toolVersion = record.buildId = text;
  record.command = record.rerun = record.overrides = record.reasons = {text};
  for (Json& device : record.inventory["devices"])
    for (const char* key : {"id", "name", "serial", "pci_address"}) device[key] = text;
  for (auto& [name, value] : record.inventory["software"].items()) value = text;
  record.rejudged.push_back({std::string(64, 'a'), 0, text, text, text, std::string(64, 'b'), "", true});
  WaiverRecord waiver;
  waiver.stage = waiver.metric = waiver.device = waiver.serial = waiver.reason = waiver.approver = text;
  waiver.expires = waiver.detail = text;
  waiver.state = WaiverState::kApplied;
  waiver.covered = 1;
  record.waivers = {waiver};
  for (StageRecord& stage : record.stages) setTexts(stage, text);
  return record;
}

std::vector<std::string> hostileTexts() {
  return {"\"",
          "'",
          "a\"b,c\nd\r\ne",
          "=cmd()|' /C calc'!A0",
          "+1",
          "-1+2",
          "@SUM(A1)",
          "\t=1",
          "|",
          "a|b`c``d```e",
          "`",
          " lead and trail ",
          "](http://x) ![i](y) @team #12",
          "</code></pre><script>alert(1)</script>",
          "\"\\",
          "\\\"} 1\nfake_metric 2",
          "{}\n# HELP x y",
          "\x1b[31mred\x1b[0m",
          std::string("a\0b", 3),
          "\\u0000",
          "\xff\xfe\xc0\x80",
          "\xe2\x80\xae"
          "gnp.exe",
          "\xe2\x80\xa8line",
          "\xef\xbb\xbf",
          "${x} $(reboot) %n %s {} {0}",
          std::string(5000, '`'),
          "\r",
          "\n\n```\n# head\n- item"};
}

void expectVisible(const std::string& text, bool tabs) {
  for (size_t at = 0; at < text.size();) {
    const Character c = characterAt(text, at);
    ASSERT_TRUE(c.valid) << text.substr(at > 40 ? at - 40 : 0, 80);
    ASSERT_TRUE(c.code == '\n' || (tabs && c.code == '\t') || !isHidden(c.code))
        << escaped(c.code) << " after " << text.substr(at > 60 ? at - 60 : 0, 60);
    at += c.size;
  }
}

std::set<std::string> elementsOf(const std::string& html) {
  std::set<std::string> found;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    if (std::isalpha(static_cast<unsigned char>(html[at + 1])) == 0) continue;
    bool quoted = false;
    std::string name;
    for (size_t i = at + 1; i < html.size() && (quoted || html[i] != '>'); ++i) {
      quoted = html[i] == '"' ? !quoted : quoted;
      if (!quoted && html[i] != '"') name += html[i];
    }
    found.insert(name);
  }
  return found;
}

}  // namespace muster::testing
