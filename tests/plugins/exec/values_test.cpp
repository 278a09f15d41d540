// SPDX-License-Identifier: Apache-2.0
// Rules of exec.command, and what they find in a program's output.
#include "plugins/exec/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/import/imported.h"
#include "tests/runner/import/import_samples.h"

namespace muster::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ValueRule> rulesOf(const std::vector<std::string>& rows) {
  std::vector<ValueRule> rules;
  for (const std::string& row : rows) {
    auto rule = parseRule(row);
    EXPECT_TRUE(rule.ok()) << rule.error().text();
    if (rule.ok()) rules.push_back(*rule);
  }
  return rules;
}

std::string refusalOfJson(const std::string& output, const std::string& row) {
  const auto rules = rulesOf({row});
  const auto values = valuesOfJson(output, rules);
  EXPECT_FALSE(values.ok()) << output;
  return values.ok() ? "" : values.error().text();
}

std::string refusalOfRegex(const std::string& output, const std::string& row) {
  const auto rules = rulesOf({row});
  const auto values = valuesByRegex(output, rules);
  EXPECT_FALSE(values.ok()) << output;
  return values.ok() ? "" : values.error().text();
}

TEST(ExecRule, HasANameLabelsAUnitAndAPlace) {
  const auto rule = parseRule("seq{op=read, bytes=4096} GB/s: /jobs/0/bw");
  ASSERT_TRUE(rule.ok()) << rule.error().text();
  EXPECT_EQ(rule->name, "seq");
  EXPECT_EQ(rule->labels, (LabelMap{{"op", "read"}, {"bytes", "4096"}}));
  EXPECT_STREQ(rule->metric->metric, "bandwidth");
  EXPECT_EQ(rule->scale, 1e9);
  EXPECT_EQ(rule->place, "/jobs/0/bw");
}

TEST(ExecRule, SaysWhatIsWrongWithARow) {
  const auto refusal = [](const std::string& row) {
    const auto rule = parseRule(row);
    EXPECT_FALSE(rule.ok()) << row;
    return rule.ok() ? "" : rule.error().text();
  };
  EXPECT_THAT(refusal("rate"), HasSubstr("has no unit"));
  EXPECT_THAT(refusal("rate GB/s"), HasSubstr("no \": \" before its place"));
  EXPECT_THAT(refusal("rate furlongs: /x"), HasSubstr("\"furlongs\" is not a unit"));
  EXPECT_THAT(refusal("rate{op} GB/s: /x"), HasSubstr("\"op\" is not LABEL=VALUE"));
  EXPECT_THAT(refusal("rate{opp=read} GB/s: /x"), HasSubstr("did you mean \"op\"?"));
  EXPECT_THAT(refusal("rate{op=a,op=b} GB/s: /x"), HasSubstr("label op is there twice"));
  EXPECT_THAT(refusal("rate{op=a GB/s: /x"), HasSubstr("'{' without its '}'"));
  EXPECT_THAT(refusal("../x GB/s: /x"), HasSubstr("its name is not"));
  EXPECT_THAT(refusal("rate GB/s: "), HasSubstr("its place is empty"));
}

TEST(ExecJson, NumbersListsFlagsAndTextsAreFound) {
  const auto rules =
      rulesOf({"rate GB/s: /result/rate", "each ms: /times", "ok bool: /ok", "who text: /who"});
  const auto values =
      valuesOfJson(R"({"result": {"rate": 2.5}, "times": [1, 2], "ok": true, "who": "gpu"})", rules);
  ASSERT_TRUE(values.ok()) << values.error().text();
  EXPECT_THAT((*values)[0].samples, ElementsAre(2.5e9));
  EXPECT_THAT((*values)[1].samples, ElementsAre(1e-3, 2e-3));
  EXPECT_THAT((*values)[2].samples, ElementsAre(1));
  EXPECT_EQ((*values)[3].text, "gpu");
}

TEST(ExecJson, WhatIsNoFiniteNumberIsAnError) {
  EXPECT_THAT(refusalOfJson(R"({"x": 1})", "rate GB/s: /y"), HasSubstr("has nothing at /y"));
  EXPECT_THAT(refusalOfJson(R"({"x": "12"})", "rate GB/s: /x"), HasSubstr("found a text; expected a number"));
  EXPECT_THAT(refusalOfJson(R"({"x": null})", "rate GB/s: /x"), HasSubstr("found null; expected a number"));
  EXPECT_THAT(refusalOfJson(R"({"x": []})", "rate GB/s: /x"), HasSubstr("an empty list"));
  EXPECT_THAT(refusalOfJson(R"({"x": [1, null]})", "rate GB/s: /x"), HasSubstr("expected a number"));
  EXPECT_THAT(refusalOfJson(R"({"x": NaN})", "rate GB/s: /x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusalOfJson(R"({"x": 1e308})", "rate GB/s: /x"), HasSubstr("not finite"));
  EXPECT_THAT(refusalOfJson(R"({"x": 1, "x": 2})", "rate GB/s: /x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusalOfJson(R"({"x": 1)", "rate GB/s: /x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusalOfJson("", "rate GB/s: /x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusalOfJson(R"({"x": 2})", "ok bool: /x"), HasSubstr("expected 0 or 1"));
  EXPECT_THAT(refusalOfJson(R"({"x": 2})", "who text: /x"), HasSubstr("expected a text"));
  EXPECT_THAT(refusalOfJson(std::string(100'000, '['), "rate GB/s: /x"), HasSubstr("not valid JSON"));
}

TEST(ExecRegex, GroupsAreValuesAndLabels) {
  const auto rules = rulesOf({R"(rate MB/s: ^(?P<op>\w+): +(?P<value>[\d.]+) MB/s$)"});
  const auto values = valuesByRegex("copy:  10.5 MB/s\nread: 7 MB/s\ncopy: 11 MB/s\n", rules);
  ASSERT_TRUE(values.ok()) << values.error().text();
  ASSERT_EQ(values->size(), 2u);
  EXPECT_EQ((*values)[0].labels.at("op"), "copy");
  EXPECT_THAT((*values)[0].samples, ElementsAre(10.5e6, 11e6));
  EXPECT_THAT((*values)[1].samples, ElementsAre(7e6));
}

TEST(ExecRegex, NoMatchAndNoNumberAreErrors) {
  EXPECT_THAT(refusalOfRegex("nothing\n", "rate B/s: rate (?P<value>.*)"), HasSubstr("has no match"));
  for (const char* found : {"nan", "inf", "-inf", "1e999", "12x", "", "0x10"})
    EXPECT_THAT(refusalOfRegex(std::string("rate ") + found + "\n", "rate B/s: rate (?P<value>.*)"),
                HasSubstr("expected a finite number"))
        << found;
  EXPECT_THAT(refusalOfRegex("a b", "who text: (?P<value>[a-z])"), HasSubstr("more than one match"));
  EXPECT_THAT(refusalOfRegex(std::string(20'001, '1'), "rate B/s: (?P<value>1)"),
              HasSubstr("more than 10000 matches"));
}

TEST(ExecRegex, ExpressionsAreCheckedBeforeTheProgramRuns) {
  const auto refusal = [](const std::string& place) {
    const Status status = checkRegex(place);
    EXPECT_FALSE(status.ok()) << place;
    return status.ok() ? "" : status.error().text();
  };
  EXPECT_THAT(refusal("rate (.*)"), HasSubstr("no group (?P<value>...)"));
  EXPECT_THAT(refusal("(?P<value>"), HasSubstr("missing )"));
  EXPECT_THAT(refusal("(?P<speed>x)(?P<value>y)"), HasSubstr("\"speed\" is not a label"));
  EXPECT_THAT(refusal("(?P<value>((((x{1000}){1000}){1000})))"), HasSubstr("refused"));
  EXPECT_TRUE(checkRegex("(?P<value>\\d+)").ok());
}

/// With backtracking this takes longer than the age of the universe.
TEST(ExecRegex, NoExpressionTakesLongerThanTheOutputIsLong) {
  EXPECT_THAT(refusalOfRegex(std::string(5'000, 'a'), "rate B/s: (a+)+(?P<value>b)"),
              HasSubstr("has no match"));
}

TEST(ExecTool, OutputOfAKnownToolHasMustersMetricsAsNames) {
  const auto values = valuesOfTool(testing::NcclTable().text(), "nccl-tests");
  ASSERT_TRUE(values.ok()) << values.error().text();
  const Value& large = values->at(values->size() - 2);
  EXPECT_EQ(values->front().name, "collective.bus_bandwidth");
  EXPECT_STREQ(values->front().metric->metric, "bandwidth");
  EXPECT_THAT(values->front().samples, ElementsAre(525e9));
  EXPECT_EQ(large.name, "collective.large_message_bus_bandwidth");
  const auto disk = valuesOfTool(testing::fioJson(), "fio");
  ASSERT_TRUE(disk.ok()) << disk.error().text();
  EXPECT_EQ(disk->front().labels, (LabelMap{{"job", "seq"}, {"op", "read"}}));
}

TEST(ExecTool, EveryValueHasAUnitAndLabelsOfThisPlugin) {
  const std::string matrix = R"([["N/A", "1"], ["2", "N/A"]])";
  const std::vector<std::pair<std::string, std::string>> outputs = {
      {"nccl-tests", testing::NcclTable().text()},
      {"nccl-tests-json", testing::ncclJson()},
      {"nvbandwidth",
       testing::nvbandwidthJson(testing::nvbandwidthTest("device_to_device_memcpy_write_ce", matrix, "3"))},
      {"dcgm-diag", testing::dcgmJson(testing::dcgmResult(0, "Pass") + "," + testing::dcgmResult(1, "Pass"))},
      {"fio", testing::fioJson()},
      {"gpu-burn", testing::gpuBurn()},
      {"gpu-fryer", testing::gpuFryer()},
      {"mllog", testing::mllog()},
      {"ocp", testing::ocpStream(testing::ocpArtifacts({testing::ocpDiagnosis("PASS")}))},
      {"superbench", testing::superBench()}};
  EXPECT_EQ(outputs.size(), importFormats().size());
  for (const auto& [format, output] : outputs) {
    const auto values = valuesOfTool(output, format);
    ASSERT_TRUE(values.ok()) << format << ": " << values.error().text();
    for (const Value& value : *values)
      for (const auto& [label, text] : value.labels)
        EXPECT_TRUE(label == "device" || ::testing::Value(valueLabels(), ::testing::Contains(label)))
            << label;
  }
}

TEST(ExecTool, WhatTheToolCallsFailedOrLeftOutIsAnError) {
  testing::NcclTable failed;
  failed.bounds = "3 FAILED";
  EXPECT_THAT(valuesOfTool(failed.text(), "nccl-tests").error().text(), HasSubstr("3 FAILED"));
  // The tool's summary is fine, its own lines are not.
  testing::NcclTable wrong;
  wrong.wrong = "1";
  EXPECT_THAT(valuesOfTool(wrong.text(), "nccl-tests").error().text(), HasSubstr("6 wrong elements"));
  EXPECT_THAT(valuesOfTool(testing::gpuBurn("1234", "7 (WARNING!)", "OK"), "gpu-burn").error().text(),
              HasSubstr("shows a fault: imported.test_passed (device=gpu1"));
  testing::NcclTable unchecked;
  unchecked.wrong = "N/A";
  EXPECT_THAT(valuesOfTool(unchecked.text(), "nccl-tests").error().text(), HasSubstr("were not checked"));
  EXPECT_FALSE(valuesOfTool("", "nccl-tests").ok());
  EXPECT_FALSE(valuesOfTool(testing::fioJson(), "nccl-tests").ok());
}

}  // namespace
}  // namespace muster::exec
