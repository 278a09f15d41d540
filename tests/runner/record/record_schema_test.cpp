// SPDX-License-Identifier: Apache-2.0
// The JSON Schema against real records: it admits what is written and nothing else.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "runner/record/record.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::sickRecord;
using Plain = nlohmann::json;  // the adapter knows no ordered_json

Plain schemaJson() {
  return Plain::parse(testing::readWhole(testing::sourceDir() / "runner/record/record.schema.json"));
}

/// The first problems that the schema finds; empty when the document is valid.
std::string problems(const Plain& document) {
  static const Plain schemaText = schemaJson();
  static const auto schema = [] {
    auto parsed = std::make_unique<valijson::Schema>();
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(schemaText), *parsed);
    return parsed;
  }();
  valijson::ValidationResults results;
  valijson::Validator validator;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  if (validator.validate(*schema, target, &results)) return "";
  std::string text = "invalid";
  valijson::ValidationResults::Error error;
  for (int i = 0; i < 5 && results.popError(error); ++i) {
    text += "\n";
    for (const auto& part : error.context) text += part;
    text += ": " + error.description;
  }
  return text;
}

Plain plain(const Record& record) {
  return Plain::parse(recordText(record));
}

/// A record of every kind of thing, but few of each: the validator is slow.
Plain smallSick() {
  Plain json = plain(sickRecord());
  json["stages"].erase(2);
  for (auto& stage : json["stages"]) {
    for (const char* list : {"measurements", "verdicts", "cases"})
      while (stage[list].size() > 1) stage[list].erase(stage[list].size() - 1);
    for (const char* list : {"times", "series"})
      while (stage["telemetry"][list].size() > 1)
        stage["telemetry"][list].erase(stage["telemetry"][list].size() - 1);
  }
  return json;
}

/// Every object in the schema that lists properties must be closed, but for the parts that are free-form by
/// intention.
void checkClosed(const Plain& node, const std::string& path, std::vector<std::string>& open) {
  if (node.is_object() && node.contains("properties") && node.value("type", "") == "object" &&
      node.value("additionalProperties", Plain(true)) != Plain(false))
    open.push_back(path);
  if (node.is_structured())
    for (const auto& [key, item] : node.items()) checkClosed(item, path + "/" + key, open);
}

TEST(RecordSchema, AdmitsWhatIsWritten) {
  EXPECT_EQ(problems(plain(healthyRecord())), "");
  EXPECT_EQ(problems(plain(sickRecord())), "");
  EXPECT_EQ(problems(plain(testing::rejudgedRecord())), "");
  Record redacted = healthyRecord();
  redacted.redacted = {std::string(64, 'a'), {"host", "word"}};
  EXPECT_EQ(problems(plain(redacted)), "");
  EXPECT_EQ(problems(plain(testing::partialRecord())), "");
}

TEST(RecordSchema, AdmitsAnEmptyRun) {
  Record record;
  record.acceptance = Acceptance::kInterrupted;
  record.exitCode = 130;
  EXPECT_EQ(problems(plain(record)), "");
}

TEST(RecordSchema, AdmitsNumbersThatAreNotFinite) {
  Record record = sickRecord();
  record.stages[1].telemetry[0].value[0] = std::numeric_limits<double>::quiet_NaN();
  record.peaks["x"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(problems(plain(record)), "");
}

TEST(RecordSchema, RefusesUnknownKeysEverywhere) {
  const Plain good = smallSick();
  ASSERT_EQ(problems(good), "");
  for (const char* at : {"",
                         "/accounting",
                         "/accounting/counts",
                         "/tool",
                         "/run",
                         "/plan",
                         "/profile",
                         "/stages/3",
                         "/stages/3/ranks/0",
                         "/stages/3/artifacts/0",
                         "/stages/3/cases/0",
                         "/stages/1/measurements/0",
                         "/stages/1/measurements/0/rows",
                         "/stages/1/verdicts/0",
                         "/stages/1/verdicts/0/rows",
                         "/stages/1/verdicts/0/expectation",
                         "/stages/1/telemetry",
                         "/stages/1/telemetry/series/0",
                         "/stages/1/telemetry/series/0/rows",
                         "/stages/1/telemetry/series/0/rows/summary/0"}) {
    Plain bad = good;
    bad[Plain::json_pointer(at)]["surprise"] = 1;
    EXPECT_NE(problems(bad), "") << at;
  }
}

TEST(RecordSchema, RefusesEveryMissingKey) {
  const Plain good = smallSick();
  ASSERT_EQ(problems(good), "");
  for (const char* at : {"", "/accounting", "/tool", "/run", "/plan", "/profile", "/stages/3",
                         "/stages/3/ranks/0", "/stages/3/artifacts/0", "/stages/1/telemetry"}) {
    for (const auto& [key, value] : good[Plain::json_pointer(at)].items()) {
      if (key == "binaries") continue;  // records of older versions have none
      Plain bad = good;
      bad[Plain::json_pointer(at)].erase(key);
      EXPECT_NE(problems(bad), "") << at << "/" << key;
    }
  }
}

/// One of a waiver file with a waiver, beside the failures of the sick record.
Record recordWithWaiver() {
  Record record = sickRecord();
  record.waiverFile = {"", "waivers.toml", std::string(64, 'a'), "schema = 1"};
  record.waivers = {{"gemm",
                     "compute.gemm_throughput",
                     {{"dtype", "bf16"}},
                     "gpu3",
                     "S3",
                     "n17",
                     "riser on order",
                     "J. Doe",
                     "2026-12-31",
                     "waivers.toml:3:1",
                     WaiverState::kApplied,
                     2,
                     "covers 2"}};
  return record;
}

TEST(RecordSchema, AdmitsWaiversAndNothingHalf) {
  Plain good = plain(recordWithWaiver());
  good["stages"] = Plain::array();
  ASSERT_EQ(problems(good), "");
  for (const char* at : {"/waivers", "/waivers/list/0"}) {
    Plain more = good;
    more[Plain::json_pointer(at)]["surprise"] = 1;
    EXPECT_NE(problems(more), "") << at;
    for (const auto& [key, value] : good[Plain::json_pointer(at)].items()) {
      Plain less = good;
      less[Plain::json_pointer(at)].erase(key);
      EXPECT_NE(problems(less), "") << at << "/" << key;
    }
  }
  for (const char* state : {"applied", "unexpected pass", "undecided", "unmatched", "elsewhere"}) {
    good["waivers"]["list"][0]["state"] = state;
    EXPECT_EQ(problems(good), "") << state;
  }
}

TEST(RecordSchema, RefusesWhatTheReaderRefuses) {
  const auto refuse = [](const char* at, const Plain& value) {
    Plain bad = plain(recordWithWaiver());
    bad[Plain::json_pointer(at)] = value;
    EXPECT_NE(problems(bad), "") << at << " = " << value;
    const auto json = parseJson(bad.dump());
    ASSERT_TRUE(json.ok());
    EXPECT_FALSE(recordFromJson(*json).ok()) << at << " = " << value;
  };
  refuse("/schema", 1);
  refuse("/acceptance", "fine");
  refuse("/plan/sha256", "ABC");
  refuse("/stages/4/artifacts/0/path", "/etc/passwd");
  refuse("/stages/4/artifacts/0/path", "../x");
  refuse("/stages/4/artifacts/0/path", "a/../x");
  refuse("/stages/1/duration", -1);
  refuse("/stages/1/state", "maybe");
  refuse("/stages/1/verdicts/0/outcome", "ok");
  refuse("/stages/1/measurements/0/samples", "many");
  refuse("/stages/1/measurements/0/rows/samples/0", "many");
  refuse("/stages/1/measurements/0/rows/samples/0", {{"n", 1001}, {"value", 0}});
  refuse("/stages/1/measurements/0/rows", Plain::object());
  refuse("/stages/1/measurements/0/exponent", 23);
  refuse("/stages/1/verdicts/0/rows", 7);
  refuse("/stages/1/telemetry/times/0", {{"start", 0}, {"step", 1}, {"n", 301}});
  refuse("/environment", Plain{{"PATH", 7}});
  refuse("/waivers/sha256", "ABC");
  refuse("/waivers/list/0/where", Plain{{"dtype", 7}});
  refuse("/waivers/list/0/covered", -1);
  refuse("/waivers/list/0/state", "fine");
  refuse("/waivers/list/0/expires", "soon");
}

TEST(RecordSchema, IsClosedButForFreeForms) {
  std::vector<std::string> open;
  checkClosed(schemaJson(), "", open);
  EXPECT_EQ(open, std::vector<std::string>{"/properties/inventory"});
}

}  // namespace
}  // namespace muster
