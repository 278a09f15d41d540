// SPDX-License-Identifier: Apache-2.0
// The terminal summary: verdict, counts, deviations, and nothing that could harm a terminal.
#include "reports/terminal/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::manyFaults;
using testing::settle;
using testing::sickRecord;

void expectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing \"" << part << "\" in\n" << text;
}

size_t columnsOf(const std::string& line) {
  return static_cast<size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST(Terminal, SaysTheVerdictFirst) {
  EXPECT_EQ(renderSummary(sickRecord(), false, 100).find("\n REJECTED "), 0u);
  EXPECT_EQ(renderSummary(healthyRecord(), false, 100).find("\n ACCEPTED "), 0u);
  expectHas(renderSummary(sickRecord(), false, 100), "exit code 1");
}

TEST(Terminal, SaysThatARecordWasRejudged) {
  expectHas(renderSummary(testing::rejudgedRecord(), false, 200), "RE-JUDGED: re-judged on ");
  expectHas(renderSummary(testing::rejudgedRecord(), false, 200), "with profile ours (sha256 ");
  EXPECT_EQ(renderSummary(healthyRecord(), false, 200).find("RE-JUDGED"), std::string::npos);
}

TEST(Terminal, TellsEachDeviationInFull) {
  const std::string text = renderSummary(sickRecord(), false, 160);
  for (const char* part : {"FAIL  gpu3  compute.gemm_throughput", "500.5 TFLOP/s", "at least 672 TFLOP/s",
                           "26% below limit", "huggingface/gpu-fryer", "Check clocks, power cap",
                           "muster-host --request", "ERROR  gpu5", "SIGSEGV", "FLAKY  gpu2", "WARN  gpu1"})
    expectHas(text, part);
}

TEST(Terminal, CountsEveryOutcome) {
  const std::string text = renderSummary(sickRecord(), false, 160);
  for (const char* part : {"209 checks", "3 fail", "1 error", "1 flaky", "1 warn", "1 unjudged", "1 skipped",
                           "1 waived", "200 pass"})
    expectHas(text, part);
  Record torn = sickRecord();
  torn.accounting.expected += 1;
  expectHas(renderSummary(torn, false, 100), "do NOT agree");
}

TEST(Terminal, FitsAHealthyRunOnOneScreen) {
  const std::string text = renderSummary(healthyRecord(), false, 80);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24);
}

TEST(Terminal, SaysSimulated) {
  expectHas(renderSummary(healthyRecord(), false, 80), "SIMULATED");
  expectHas(renderSummary(healthyRecord(), false, 80), "stage times are simulated");
  Record real = healthyRecord();
  real.simulated = false;
  EXPECT_EQ(renderSummary(real, false, 80).find("SIMULATED"), std::string::npos);
}

TEST(Terminal, NamesWhatWasNotJudgedAndWhatWasWaived) {
  const std::string text = renderSummary(sickRecord(), false, 100);
  expectHas(text, "unjudged: env.pcie_width");
  expectHas(text, "skipped: stage storage");
  expectHas(text, "\n\n  Waived (does not block):\n    waived: gpu0");
}

TEST(Terminal, KeepsToTheWidthButForCommands) {
  for (const int width : {60, 80, 120}) {
    std::istringstream lines(renderSummary(sickRecord(), false, width));
    for (std::string line; std::getline(lines, line);) {
      const bool free =
          line.find("muster-host") != std::string::npos || line.find("checks    ") != std::string::npos;
      EXPECT_TRUE(free || columnsOf(line) <= static_cast<size_t>(width)) << line;
    }
  }
}

TEST(Terminal, ColoursOnlyWhenAsked) {
  EXPECT_EQ(renderSummary(sickRecord(), false, 100).find('\x1b'), std::string::npos);
  EXPECT_NE(renderSummary(sickRecord(), true, 100).find("\x1b[1;37;41m REJECTED "), std::string::npos);
}

TEST(Terminal, LetsNoControlCharacterThrough) {
  Record record = sickRecord();
  const std::string hostile =
      "\x1b]0;pwned\x07\x1b[2J\r\n\x9b"
      "31mx\xe2\x80\xae";
  record.node = record.plan.name = record.scenario = record.skuHow = hostile;
  record.reasons = {hostile};
  for (auto& stage : record.stages) {
    stage.name = hostile;
    for (auto& rank : stage.ranks) rank.rerun = hostile;
    for (auto& verdict : stage.verdicts) {
      verdict.metric = verdict.device = verdict.detail = verdict.remedy = verdict.observedText = hostile;
      verdict.limitText = hostile;
      if (verdict.expectation) verdict.expectation->source = hostile;
    }
  }
  for (const char c : renderSummary(record, false, 100)) {
    const auto byte = static_cast<unsigned char>(c);
    ASSERT_TRUE(byte >= 0x20 || c == '\n') << static_cast<int>(byte);
    ASSERT_NE(byte, 0x7f);
  }
}

TEST(Terminal, ListsTheFirstOfManyFigures) {
  Record record = sickRecord();
  for (auto& verdict : record.stages[3].verdicts)
    if (verdict.outcome == Outcome::kPass) verdict.outcome = Outcome::kFail;
  settle(record);
  expectHas(renderSummary(record, false, 100), "in report.html");
}

TEST(Terminal, RendersAnEmptyRecord) {
  Record record;
  record.acceptance = Acceptance::kInterrupted;
  record.exitCode = 130;
  expectHas(renderSummary(record, false, 80), "INTERRUPTED");
  expectHas(renderSummary(record, false, 0), "no checks");
}

TEST(Terminal, ShowsTheFirstOfThousandsOfFindings) {
  const std::string text = renderSummary(manyFaults(20'000), false, 100);
  expectHas(text, "FAIL  g199  env.ecc_uncorrected");
  EXPECT_EQ(text.find("FAIL  g200 "), std::string::npos);
  expectHas(text, "\n\n  ... and 19800 more findings in record.json\n");
  EXPECT_EQ(renderSummary(manyFaults(200), false, 100).find("more findings"), std::string::npos);
}

}  // namespace
}  // namespace muster
