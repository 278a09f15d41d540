// SPDX-License-Identifier: Apache-2.0
// JUnit: valid XML whatever the record holds, counts that agree, and never all green without acceptance.
#include "reports/junit/junit.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::runProcess;
using testing::settle;
using testing::sickRecord;
using testing::TempDir;

/// xmllint must find `xml` well-formed and valid against our schema of the dialect.
void expectValid(const std::string& xml) {
  const TempDir folder;
  const auto file = folder.write("junit.xml", xml);
  const auto schema = testing::sourceDir() / "tests/reports/junit/junit.xsd";
  const auto result =
      runProcess({"xmllint", "--nonet", "--noout", "--schema", schema.string(), file.string()});
  EXPECT_EQ(result.exitCode, 0) << result.err.substr(0, 2000);
}

/// The text that an XPath expression finds.
std::string query(const std::string& xml, const std::string& path) {
  const TempDir folder;
  const auto result = runProcess(
      {"xmllint", "--nonet", "--xpath", "string(" + path + ")", folder.write("junit.xml", xml).string()});
  EXPECT_EQ(result.exitCode, 0) << path << ": " << result.err;
  return result.out.substr(0, result.out.find_last_not_of('\n') + 1);
}

TEST(Junit, IsValidForEverySample) {
  expectValid(renderJunit(healthyRecord()));
  expectValid(renderJunit(sickRecord()));
  Record empty;
  empty.acceptance = Acceptance::kInterrupted;
  empty.exitCode = 130;
  expectValid(renderJunit(empty));
}

TEST(Junit, SaysWhatALimitLeavesOut) {
  const Record record = sickRecord();
  TextLimit limit(20'000);
  const std::string xml = renderJunit(record, limit);
  expectValid(xml);
  EXPECT_LT(xml.size(), renderJunit(record).size());
  EXPECT_EQ(query(xml, "//testcase[@name='left out']/skipped/@message"), limit.note());
  EXPECT_EQ(query(xml, "//testcase[@name='acceptance']/failure/@type"), "rejected");
  for (const char* kind : {"testcase", "failure", "error", "skipped"}) {
    const std::string name = kind;
    const std::string total = name == "testcase" ? "tests" : name == "skipped" ? name : name + "s";
    EXPECT_EQ(query(xml, "/testsuites/@" + total), query(xml, "count(//" + name + ")"));
  }
}

TEST(Junit, SaysThatARecordWasRejudged) {
  const std::string xml = renderJunit(testing::rejudgedRecord());
  expectValid(xml);
  EXPECT_NE(query(xml, "//property[@name='rejudged']/@value").find("with profile ours"), std::string::npos);
}

TEST(Junit, HasATestcaseForEveryVerdictAndOneForTheAcceptance) {
  const Record record = sickRecord();
  const std::string xml = renderJunit(record);
  EXPECT_EQ(query(xml, "count(//testcase)"), std::to_string(record.accounting.total() + 1));
  EXPECT_EQ(query(xml, "count(/testsuites/testsuite)"), std::to_string(record.stages.size() + 1));
}

TEST(Junit, CountsWhatItHolds) {
  const std::string xml = renderJunit(sickRecord());
  for (const auto& [attribute, element] : {std::pair{"failures", "failure"},
                                           {"errors", "error"},
                                           {"skipped", "skipped"},
                                           {"tests", "testcase"}}) {
    EXPECT_EQ(query(xml, std::string("/testsuites/@") + attribute),
              query(xml, std::string("count(//") + element + ")"));
    EXPECT_EQ(query(xml, std::string("sum(//testsuite/@") + attribute + ")"),
              query(xml, std::string("count(//") + element + ")"));
  }
}

TEST(Junit, MapsOutcomesToResults) {
  const std::string xml = renderJunit(sickRecord());
  EXPECT_EQ(query(xml, "count(//failure[@type='fail'])"), "3");
  EXPECT_EQ(query(xml, "count(//failure[@type='flaky'])"), "1");
  EXPECT_EQ(query(xml, "count(//error[@type='error'])"), "1");
  EXPECT_EQ(query(xml, "count(//skipped[starts-with(@message,'skipped')])"), "1");
  EXPECT_EQ(query(xml, "count(//skipped[starts-with(@message,'waived')])"), "1");
  EXPECT_EQ(query(xml, "count(//system-out)"), "2");  // the warning and the unjudged figure
}

TEST(Junit, TellsTheWholeFailure) {
  const std::string text = query(renderJunit(sickRecord()), "(//failure[@type='fail'])[1]");
  for (const char* part : {"gpu3", "at least 672 TFLOP/s", "gpu-fryer", "Check clocks", "26% below limit"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Junit, IsGreenOnlyWhenAccepted) {
  const std::string bad = "count(//testsuite[1]//failure|//testsuite[1]//error)";
  EXPECT_EQ(query(renderJunit(healthyRecord()), "count(//failure|//error)"), "0");
  for (const Acceptance acceptance :
       {Acceptance::kRejected, Acceptance::kIncomplete, Acceptance::kInterrupted}) {
    Record record = healthyRecord();
    record.acceptance = acceptance;
    record.exitCode = 3;
    EXPECT_EQ(query(renderJunit(record), bad), "1") << nameOf(acceptance);
  }
  Record record = healthyRecord();
  record.exitCode = 4;
  EXPECT_EQ(query(renderJunit(record), bad), "1");
}

TEST(Junit, IsRedOverARequiredSkip) {
  Record record = healthyRecord();
  record.stages[0].verdicts[0].outcome = Outcome::kSkipped;
  settle(record);
  record.acceptance = Acceptance::kIncomplete;
  record.exitCode = 3;
  EXPECT_NE(query(renderJunit(record), "count(//error)"), "0");
}

TEST(Junit, SaysSimulatedInNamesAndProperties) {
  const std::string xml = renderJunit(sickRecord());
  EXPECT_EQ(query(xml, "/testsuites/@name").rfind("SIMULATED", 0), 0u);
  EXPECT_EQ(query(xml, "count(//testsuite[starts-with(@name,'SIMULATED')])"),
            query(xml, "count(//testsuite)"));
  EXPECT_EQ(query(xml, "count(//property[@name='simulated'][starts-with(@value,'SIMULATED')])"),
            query(xml, "count(//testsuite)"));
  Record real = healthyRecord();
  real.simulated = false;
  EXPECT_EQ(renderJunit(real).find("SIMULATED"), std::string::npos);
}

TEST(Junit, StaysValidWithHostileText) {
  for (const std::string& text :
       {std::string("<script>alert(1)</script>"), std::string("]]>\"'&amp;<!--"),
        std::string("\x1b[31m\x01\x02\r\n\t"), std::string("a\0b", 3), std::string("\xff\xfe\xc0\x80"),
        std::string("\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80"),
        std::string("\xe2\x80\xae"
                    "gnp")}) {
    Record record = sickRecord();
    record.node = record.plan.name = record.runId = record.scenario = text;
    record.reasons = {text};
    for (auto& stage : record.stages) {
      stage.name = stage.test = stage.plugin = text;
      for (auto& verdict : stage.verdicts)
        verdict.detail = verdict.metric = verdict.device = verdict.remedy = text;
    }
    expectValid(renderJunit(record));
  }
}

TEST(Junit, ShowsAHostileHostNameAsText) {
  EXPECT_EQ(query(renderJunit(sickRecord()), "//testsuite[1]/@hostname"), testing::kHostileName);
}

TEST(Junit, SurvivesTimesThatAreNone) {
  Record record = healthyRecord();
  record.started = record.finished = std::numeric_limits<double>::quiet_NaN();
  record.stages[0].duration = -1;
  record.stages[0].started = 1e300;
  expectValid(renderJunit(record));
}

}  // namespace
}  // namespace muster
