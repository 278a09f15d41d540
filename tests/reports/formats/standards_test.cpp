// SPDX-License-Identifier: Apache-2.0
// What is written is what the formats' own specifications and tools accept.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "reports/formats/formats.h"
#include "tests/reports/formats/sample_records.h"

namespace muster {
namespace {

using testing::everyKindOfRecord;
using testing::hostileTexts;
using testing::recordWithText;
using testing::TempDir;
using Plain = nlohmann::json;  // the adapter knows no ordered_json

/// Every kind of record, and those with hostile text.
std::vector<std::pair<std::string, Record>> allRecords() {
  auto records = everyKindOfRecord();
  for (const std::string& text : hostileTexts())
    records.emplace_back("hostile" + std::to_string(records.size()), recordWithText(text));
  return records;
}

TEST(Standards, AreMetByOcpStreamsAndPrometheusText) {
  const TempDir folder;
  std::vector<std::string> merged;
  for (auto& [name, record] : allRecords()) {
    TextLimit all, few(20'000);
    folder.write(name + ".ocp.jsonl", renderOcp(record, all));
    folder.write(name + "-cut.ocp.jsonl", renderOcp(record, few));
    folder.write(name + ".prom", renderPrometheus(record, all));
    record.node = name;
    merged.push_back(renderPrometheus(record, all));
  }
  folder.write("merged.prom", mergePrometheus(merged));
  const auto script = testing::sourceDir() / "tests/reports/formats/standards.py";
  testing::ProcessOptions options;
  options.timeout = 300;
  const auto result =
      testing::runProcess({"/usr/bin/python3", "-B", script.string(), folder.path().string()}, options);
  if (result.exitCode == 77 && std::getenv("CI") == nullptr) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exitCode, 0) << result.out.substr(0, 4000) << result.err.substr(0, 4000);
}

/// A few verdicts of each stage: the validator is slow.
Record shortened(Record record) {
  for (StageRecord& stage : record.stages)
    if (stage.verdicts.size() > 20) stage.verdicts.resize(20);
  return record;
}

TEST(Standards, AreMetByCtrf) {
  const Plain schemaText =
      Plain::parse(testing::readWhole(testing::sourceDir() / "tests/reports/formats/ctrf.schema.json"));
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(schemaText), schema);
  size_t cut = 0;
  for (const auto& [name, record] : allRecords()) {
    TextLimit limit(++cut % 2 == 0 ? TextLimit::kMostBytes : 10'000);
    const Plain document = Plain::parse(renderCtrf(shortened(record), limit));
    valijson::Validator validator;
    valijson::ValidationResults results;
    EXPECT_TRUE(validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results))
        << name;
    const Plain& summary = document["results"]["summary"];
    EXPECT_EQ(summary["tests"], document["results"]["tests"].size());
    EXPECT_EQ(summary["tests"].get<int>(), summary["passed"].get<int>() + summary["failed"].get<int>() +
                                               summary["skipped"].get<int>() + summary["pending"].get<int>() +
                                               summary["other"].get<int>());
  }
}

}  // namespace
}  // namespace muster
