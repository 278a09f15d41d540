// SPDX-License-Identifier: Apache-2.0
// The formats of nccl-tests, byte by byte: parsers split their lines at white space.
#include "plugins/collective/nccl_tests.h"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::collective {
namespace {

SweepResult sampleResult() {
  SweepResult result;
  result.ranks = 4;
  result.device = "Test GPU";
  result.implementation = "test 1.0";
  result.params.sizes = {8, 4096};
  result.params.warmup = 5;
  result.params.iterations = 2;
  for (uint64_t bytes : result.params.sizes) {
    SizeResult size;
    size.asked = bytes;
    size.bytes = bytes;
    size.spec.count = bytes / 4;
    for (bool inPlace : {false, true}) {
      Timing timing;
      timing.inPlace = inPlace;
      timing.seconds = {1e-6 * static_cast<double>(bytes), 3e-6 * static_cast<double>(bytes)};
      size.timings.push_back(timing);
    }
    result.sizes.push_back(size);
  }
  return result;
}

std::vector<std::string> wordsOf(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The lines of the table that begin with no '#'.
std::vector<std::vector<std::string>> rowsOf(const std::string& table) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream stream(table);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty() && line[0] != '#') rows.push_back(wordsOf(line));
  return rows;
}

TEST(NcclTestsTable, HasItsColumns) {
  const auto rows = rowsOf(ncclTestsTable(sampleResult()));
  ASSERT_EQ(rows.size(), 2u);
  using Words = std::vector<std::string>;
  EXPECT_EQ(rows[0], (Words{"8", "2", "float", "sum", "-1", "16.00", "0.00", "0.00", "0", "16.00", "0.00",
                            "0.00", "0"}));
  EXPECT_EQ(rows[1], (Words{"4096", "1024", "float", "sum", "-1", "8192.0", "0.00", "0.00", "0", "8192.0",
                            "0.00", "0.00", "0"}));
}

TEST(NcclTestsTable, SaysNotApplicableOfAMissingPlacement) {
  SweepResult result = sampleResult();
  for (SizeResult& size : result.sizes) size.timings.pop_back();
  const auto rows = rowsOf(ncclTestsTable(result));
  ASSERT_EQ(rows[0].size(), 13u);
  EXPECT_EQ(rows[0][9], "N/A");
  EXPECT_EQ(rows[0][12], "N/A");
}

TEST(NcclTestsTable, EndsWithItsVerdictAndAverage) {
  SweepResult result = sampleResult();
  EXPECT_NE(ncclTestsTable(result).find("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.00075\n"),
            std::string::npos)
      << ncclTestsTable(result);
  result.sizes[1].timings[0].mostWrong = 3;
  EXPECT_NE(ncclTestsTable(result).find("# Out of bounds values : 1 FAILED\n"), std::string::npos);
}

TEST(NcclTestsJson, HasTheKeysOfItsThirdVersion) {
  const Json json = ncclTestsJson(sampleResult());
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["config"]["devices"].size(), 4u);
  ASSERT_EQ(json["results"].size(), 2u);
  const Json& row = json["results"][1];
  EXPECT_EQ(row["size"], 4096);
  EXPECT_EQ(row["count"], 1024);
  EXPECT_EQ(row["type"], "float");
  EXPECT_EQ(row["redop"], "sum");
  EXPECT_EQ(row["root"], -1);
  for (const char* placement : {"out_of_place", "in_place"}) {
    EXPECT_DOUBLE_EQ(row[placement]["time"], 8192) << placement;
    EXPECT_DOUBLE_EQ(row[placement]["alg_bw"], 4096 / 8192e-6 / 1e9);
    EXPECT_DOUBLE_EQ(row[placement]["bus_bw"], 1.5 * 4096 / 8192e-6 / 1e9);
    EXPECT_EQ(row[placement]["nwrong"], 0);
  }
  EXPECT_EQ(json["out_of_bounds"]["okay"], true);
  EXPECT_DOUBLE_EQ(json["average_bus_bandwidth"]["bandwidth"], 0.00075);
}

TEST(SweepParams, SpreadSizesByTheFactor) {
  const Json json = {{"op", "all_gather"}, {"dtype", "f32"},
                     {"reduction", "sum"}, {"root", 0},
                     {"from", 8.0},        {"to", 100.0},
                     {"factor", 3.0},      {"placements", {"out_of_place"}},
                     {"checks", 1},        {"warmup", 1},
                     {"iterations", 1},    {"sample_time", 0.0},
                     {"latency_to", 0.0},  {"local_compute_probes", 0},
                     {"interface", ""},    {"fabric", "none"},
                     {"graph", false},     {"settings", "NCCL_ALGO=Ring  EMPTY="},
                     {"call_timeout", 1.0}};
  const auto params = sdk::readParams<Params>(json);
  ASSERT_TRUE(params.ok()) << params.error().text();
  EXPECT_EQ(params->sizes, (std::vector<uint64_t>{8, 24, 72}));
  EXPECT_EQ(params->inPlace, std::vector<bool>{false});
  EXPECT_EQ(params->settings.at("NCCL_ALGO"), "Ring");
  EXPECT_EQ(params->settings.at("EMPTY"), "");
  EXPECT_EQ(countFor(params->spec, 72, 4), 4u);  // 18 elements over 4 ranks
  EXPECT_EQ(countFor(params->spec, 8, 4), 1u);
}

}  // namespace
}  // namespace muster::collective
