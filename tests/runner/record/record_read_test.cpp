// SPDX-License-Identifier: Apache-2.0
// Reading records: what was written comes back, and whatever is damaged is named with its path.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runner/record/record.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::sickRecord;

Json sickJson() {
  return toJson(sickRecord());
}

void expectRefused(const Json& json, const std::string& path, const std::string& reason) {
  const auto record = recordFromJson(json);
  ASSERT_FALSE(record.ok()) << "was read although " << path << " is wrong";
  EXPECT_EQ(record.error().code, ErrorCode::kProtocol);
  EXPECT_NE(record.error().text().find(path), std::string::npos) << record.error().text();
  EXPECT_NE(record.error().text().find(reason), std::string::npos) << record.error().text();
}

TEST(RecordRead, GivesBackWhatWasWritten) {
  for (const Record& record : {healthyRecord(), sickRecord(), testing::rejudgedRecord()}) {
    const Json json = toJson(record);
    const auto back = recordFromJson(json);
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(toJson(*back), json);
    EXPECT_EQ(recordText(*back), recordText(record));
  }
}

TEST(RecordRead, KeepsEverySampleBitForBit) {
  Record record = healthyRecord();
  auto& samples = record.stages[1].measurements[0].samples;
  samples = {0.1, 1.0 / 3, 7.1e14, 5e-324, 1.7976931348623157e308, -0.0};
  auto json = parseJson(recordText(record));
  ASSERT_TRUE(json.ok());
  const auto back = recordFromJson(*json);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->stages[1].measurements[0].samples, samples);
}

TEST(RecordRead, KeepsNumbersThatAreNotFinite) {
  Record record = healthyRecord();
  auto& series = record.stages[1].telemetry[0];
  series.value[3] = std::numeric_limits<double>::quiet_NaN();
  series.value[4] = std::numeric_limits<double>::infinity();
  auto json = parseJson(recordText(record));
  ASSERT_TRUE(json.ok());
  const auto back = recordFromJson(*json);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_TRUE(std::isnan(back->stages[1].telemetry[0].value[3]));
  EXPECT_EQ(back->stages[1].telemetry[0].value[4], std::numeric_limits<double>::infinity());
}

TEST(RecordRead, KeepsTheWholeRangeOfSeeds) {
  Record record = healthyRecord();
  record.seed = std::numeric_limits<uint64_t>::max();
  auto json = parseJson(recordText(record));
  ASSERT_TRUE(json.ok());
  const auto back = recordFromJson(*json);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->seed, std::numeric_limits<uint64_t>::max());
}

TEST(RecordRead, NamesEachMissingKey) {
  const Json json = sickJson();
  for (const auto& [key, value] : json.items()) {
    Json without = json;
    without.erase(key);
    expectRefused(without, "record", key);
  }
}

TEST(RecordRead, NamesEachMissingKeyOfAStage) {
  const Json json = sickJson();
  for (const auto& [key, value] : json["stages"][4].items()) {
    Json without = json;
    without["stages"][4].erase(key);
    expectRefused(without, "record.stages[4]", key);
  }
}

TEST(RecordRead, RefusesEveryKeyOfAWrongType) {
  const Json json = sickJson();
  for (const auto& [key, value] : json.items()) {
    Json wrong = json;
    wrong[key] = value.is_array() ? Json(7) : Json::array({Json::array()});
    const auto record = recordFromJson(wrong);
    EXPECT_FALSE(record.ok()) << key;
  }
}

/// Each is looked for in the whole text.
TEST(RecordRead, RefusesMoreIncludedFilesThanAPlanHas) {
  Json json = toJson(healthyRecord());
  const std::string sha256(64, 'a');
  json["plan"]["includes"] = Json::object();
  for (int i = 0; i < 257; ++i) {
    json["plan"]["includes"][std::to_string(i)] = sha256;
    json["plan"]["text"] = json["plan"]["text"].get<std::string>() + std::to_string(i) + " " + sha256 + "\n";
  }
  expectRefused(json, "plan.includes", "names 257 files; at most 256 are read");
}

TEST(RecordRead, RefusesAnotherSchema) {
  Json json = sickJson();
  json["schema"] = 1;
  expectRefused(json, "record.schema", "this Muster reads records of schema 2; an older Muster wrote it");
  json["schema"] = 3;
  expectRefused(json, "record.schema", "a newer Muster wrote it");
}

TEST(RecordRead, RefusesUnknownWords) {
  Json json = sickJson();
  json["acceptance"] = "fine";
  expectRefused(json, "acceptance", "\"fine\"");
  json = sickJson();
  json["stages"][1]["state"] = "maybe";
  expectRefused(json, "record.stages[1]", "\"maybe\"");
  json = sickJson();
  json["stages"][1]["outcome"] = "passed";
  expectRefused(json, "record.stages[1].outcome", "passed");
  json = sickJson();
  json["stages"][4]["ranks"][5]["state"] = "great";
  expectRefused(json, "record.stages[4].ranks[5]", "\"great\"");
}

TEST(RecordRead, RefusesNegativeDurationsAndCounts) {
  Json json = sickJson();
  json["stages"][1]["duration"] = -1.5;
  expectRefused(json, "record.stages[1]", "duration");
  json = sickJson();
  json["run"]["started"] = "nan";
  expectRefused(json, "record.run", "started");
  json = sickJson();
  json["accounting"]["counts"]["fail"] = -3;
  expectRefused(json, "record.accounting.counts", "fail");
}

TEST(RecordRead, RefusesArtifactsOutsideTheFolder) {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "a/..", "", "a\\..\\x", "./x", "a//b"}) {
    Json json = sickJson();
    json["stages"][4]["artifacts"][0]["path"] = path;
    expectRefused(json, "record.stages[4].artifacts[0]", "path");
  }
}

TEST(RecordRead, RefusesDigestsThatAreNone) {
  Json json = sickJson();
  json["plan"]["sha256"] = "ABC";
  expectRefused(json, "record.plan", "sha256");
}

TEST(RecordRead, RefusesSeriesOfUnequalLength) {
  Json json = sickJson();
  json["stages"][1]["telemetry"]["series"][0]["rows"]["value"][0].push_back(1);
  expectRefused(json, "record.stages[1].telemetry.series[0].rows[0].value", "points");
}

TEST(RecordRead, RefusesSeriesThatAreTooLong) {
  Json json = sickJson();
  json["stages"][1]["telemetry"]["times"][0] = {{"start", 0}, {"step", 1}, {"n", 301}};
  expectRefused(json, "record.stages[1].telemetry.times[0]", "300");
}

TEST(RecordRead, RefusesSeriesThatPointNowhere) {
  Json json = sickJson();
  json["stages"][1]["telemetry"]["series"][0] = {{"time", 0}, {"of", 100000}};
  expectRefused(json, "record.stages[1].telemetry.series[0].of", "none of the stage's");
  json["stages"][1]["telemetry"]["series"][0] = {{"time", 7}, {"of", 0}};
  expectRefused(json, "record.stages[1].telemetry.series[0].time", "time axes");
}

TEST(RecordRead, RefusesRowsThatAreNone) {
  const Json good = sickJson();
  for (const Json& rows : {Json(1), Json::object(), Json{{"rank", 1}}, Json{{"rank", Json::array()}}}) {
    Json json = good;
    json["stages"][1]["measurements"][0]["rows"] = rows;
    expectRefused(json, "record.stages[1].measurements[0].rows", "must be");
  }
  Json json = good;
  json["stages"][1]["measurements"][0]["rows"]["rank"].push_back(9);
  expectRefused(json, "record.stages[1].measurements[0].rows", "rows, the column before");
  json = good;
  json["stages"][1]["measurements"][0]["rows"]["unit"] = json["stages"][1]["measurements"][0]["rows"]["rank"];
  expectRefused(json, "record.stages[1].measurements[0].rows.unit", "also outside the rows");
}

TEST(RecordRead, RefusesToUnfoldWithoutBound) {
  Json json = sickJson();
  Json& group = json["stages"][1]["measurements"][0];
  group["rows"]["samples"] = Json::array();
  group["rows"]["rank"] = Json::array();
  for (int i = 0; i < 21000; ++i) {
    group["rows"]["samples"].push_back({{"n", 1000}, {"value", 0}});
    group["rows"]["rank"].push_back(i);
  }
  expectRefused(json, "record.stages", "packed samples");
  json = sickJson();
  Json& wide = json["stages"][1]["measurements"][0];
  wide["case"] = std::string(100000, 'x');
  wide["rows"] = {{"rank", Json::array()}};
  for (int i = 0; i < 3000; ++i) wide["rows"]["rank"].push_back(i);
  expectRefused(json, "record.stages", "unfold to");
  json = sickJson();
  json["stages"][1]["measurements"][0]["rows"]["samples"][0] = {{"n", 1001}, {"value", 0}};
  expectRefused(json, "samples.n", "1001");
}

/// Packed samples beside the rows stand for those of each row.
TEST(RecordRead, CountsPackedSamplesOnceForEachRowThatSharesThem) {
  const auto with = [](size_t rows) {
    Json json = toJson(healthyRecord());
    Json group = {{"metric", "a.b"}, {"unit", "W"}, {"case", "gemm"}, {"direction", "lower"}};
    group["samples"] = {{"n", 1000}, {"value", 1}};
    group["rows"] = {{"rank", std::vector<size_t>(rows, 0)}};
    json["stages"][1]["measurements"].push_back(group);
    return json;
  };
  EXPECT_LT(dumpJson(with(30'000)).size(), 1'000'000u);
  expectRefused(with(30'000), "record.stages", "and 30000");
  const auto few = recordFromJson(with(30));
  ASSERT_TRUE(few.ok()) << few.error().text();
  EXPECT_EQ(few->stages[1].measurements.back().samples.size(), 1000u);
}

/// An entry of six bytes in the file, shared by all rows, costs each row a hundred in memory.
TEST(RecordRead, CountsSharedEntriesAtWhatTheyTakeInMemory) {
  Json labels = Json::object();
  for (int i = 0; i < 200; ++i) labels[std::to_string(i)] = "";
  const Json rows = {{"rank", std::vector<int>(20'000, 0)}};
  const auto with = [&](const Json& group, const char* list) {
    Json json = toJson(healthyRecord());
    json["stages"][1][list].push_back(group);
    EXPECT_LT(dumpJson(json).size(), 3'000'000u);
    return json;
  };
  expectRefused(
      with({{"outcome", "warn"}, {"metric", "a.b"}, {"labels", labels}, {"rows", rows}}, "verdicts"),
      "record.stages", "its rows unfold to");
  expectRefused(with({{"metric", "a.b"}, {"unit", "s"}, {"labels", labels}, {"rows", rows}}, "measurements"),
                "record.stages", "its rows unfold to");
  expectRefused(
      with({{"metric", "a.b"}, {"unit", "s"}, {"samples", std::vector<int>(200, 1)}, {"rows", rows}},
           "measurements"),
      "record.stages", "its rows unfold to");
  Json json = toJson(healthyRecord());
  Json& expectations = json["stages"][1]["evidence"]["expectations"];
  expectations.push_back(expectations[0]);
  expectations.back()["where"] = labels;
  json["stages"][1]["verdicts"].push_back(
      {{"outcome", "warn"}, {"metric", "a.b"}, {"expectation", expectations.size() - 1}, {"rows", rows}});
  expectRefused(json, "record.stages", "its rows unfold to");
}

TEST(RecordRead, RefusesAStageThatIsNotAnObject) {
  for (const Json& value : {Json(nullptr), Json(3), Json("x"), Json::array()}) {
    Json json = sickJson();
    json["stages"][2] = value;
    EXPECT_FALSE(recordFromJson(json).ok()) << dumpJson(value);
  }
}

TEST(RecordRead, RefusesARecordThatIsNotAnObject) {
  for (const Json& value : {Json(nullptr), Json(3), Json("x"), Json::array(), Json::object()})
    EXPECT_FALSE(recordFromJson(value).ok()) << dumpJson(value);
}

TEST(RecordRead, ReadsSingleStagesForTheJournal) {
  const StageRecord stage = sickRecord().stages[4];
  const auto back = stageRecordFromJson(toJson(stage), "journal line 5");
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(toJson(*back), toJson(stage));
}

/// References of two bytes per row must not ask for all memory.
TEST(RecordRead, CountsWhatRowsReferToAtItsUnfoldedSize) {
  Json json = toJson(healthyRecord());
  Json& stage = json["stages"][1];
  Json& expectations = stage["evidence"]["expectations"];
  Json one = expectations[0];
  one["remedy"] = std::string(100'000, 'R');
  Json many = json;
  many["stages"][1]["evidence"]["expectations"].push_back(one);
  many["stages"][1]["verdicts"].push_back({{"outcome", "warn"},
                                           {"metric", "compute.zz"},
                                           {"expectation", expectations.size()},
                                           {"rows", {{"rank", std::vector<int>(20'000, 0)}}}});
  expectRefused(many, "record.stages", "its rows unfold to");
  many = json;
  many["stages"][1]["telemetry"]["series"].push_back(
      {{"time", 0}, {"rows", {{"of", std::vector<int>(500'000, 0)}}}});
  expectRefused(many, "record.stages", "its rows unfold to");
  many = json;
  for (int i = 0; i < 1'000; ++i) many["stages"][1]["evidence"]["expectations"].push_back(one["metric"]);
  expectRefused(many, "record.stages.evidence.expectations", "at most 1000 of a stage");
}

TEST(RecordRead, BoundsNames) {
  const Json json = toJson(healthyRecord());
  for (const char* field : {"/plan/name", "/plan/path", "/plan/text", "/profile/name", "/run/backend",
                            "/run/boot_id", "/tool/version", "/stages/1/plugin", "/stages/1/name"}) {
    Json odd = json;
    odd[Json::json_pointer(field)] = std::string((1u << 20) + 1, 'x');
    expectRefused(odd, std::string(field).substr(std::string(field).rfind('/') + 1), "bytes long; at most");
  }
}

}  // namespace
}  // namespace muster
