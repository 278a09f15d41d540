// SPDX-License-Identifier: Apache-2.0
// Records as files: deterministic, bounded, and hostile ones refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "runner/record/record.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::readWhole;
using testing::sickRecord;
using testing::TempDir;

void expectUnreadable(const std::filesystem::path& path, const std::string& reason) {
  const auto record = readRecord(path);
  ASSERT_FALSE(record.ok()) << path;
  const std::string text = record.error().text();
  EXPECT_NE(text.find(path.string()), std::string::npos) << text;
  EXPECT_NE(text.find(reason), std::string::npos) << text;
}

TEST(RecordFile, ComesBackFromDisk) {
  const TempDir folder;
  const auto path = folder.path() / "record.json";
  ASSERT_TRUE(writeRecord(recordText(sickRecord()), path).ok());
  const auto back = readRecord(path);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(recordText(*back), readWhole(path));
}

TEST(RecordFile, IsAlwaysTheSameText) {
  EXPECT_EQ(recordText(sickRecord()), recordText(sickRecord()));
}

TEST(RecordFile, PutsTheOutcomeFirst) {
  const std::string text = recordText(sickRecord());
  EXPECT_EQ(text.find("{\n \"schema\": 2,\n \"acceptance\": \"rejected\",\n \"exit_code\": 1,"), 0u)
      << text.substr(0, 80);
  EXPECT_LT(text.find("\"simulated\": true"), text.find("\"stages\""));
}

TEST(RecordFile, KeepsEachMeasurementOnOneLine) {
  std::istringstream lines(recordText(healthyRecord()));
  size_t samples = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("\"samples\":[") != std::string::npos) {
      ++samples;
      EXPECT_NE(line.find(']'), std::string::npos) << line;
    }
  EXPECT_GT(samples, 20u);
}

TEST(RecordFile, StaysUnderAMegabyteForANode) {
  EXPECT_LT(recordText(sickRecord()).size(), 1000000u);
}

TEST(RecordFile, RefusesWhatIsNotARecord) {
  const TempDir folder;
  expectUnreadable(folder.path() / "missing.json", "");
  expectUnreadable(folder.path(), "");
  expectUnreadable(folder.write("empty.json", ""), "");
  expectUnreadable(folder.write("binary.json", std::string("\x7f"
                                                           "ELF\0\0\1",
                                                           7)),
                   "");
  expectUnreadable(folder.write("list.json", "[1, 2]"), "");
  expectUnreadable(folder.write("utf8.json", "{\"schema\": \"\xff\"}"), "");
}

TEST(RecordFile, RefusesTruncatedFiles) {
  const TempDir folder;
  const std::string text = recordText(sickRecord());
  for (const size_t part : {1u, 3u, 10u, 97u})
    expectUnreadable(folder.write("torn.json", text.substr(0, text.size() * part / 100)), "");
  expectUnreadable(folder.write("twice.json", text + text), "");
}

TEST(RecordFile, RefusesDeepNesting) {
  const TempDir folder;
  std::string deep(200000, '[');
  deep += std::string(200000, ']');
  expectUnreadable(folder.write("deep.json", deep), "");
  Record record = sickRecord();
  std::string text = recordText(record);
  const std::string key = "\"launcher\": ";
  const size_t at = text.find(key) + key.size();
  text.insert(at, "{\"x\": " + deep + "}, \"y\": ");
  expectUnreadable(folder.write("deep-inside.json", text), "");
}

TEST(RecordFile, RefusesFilesOverTheBound) {
  const TempDir folder;
  const auto path = folder.write("big.json", "{");
  std::filesystem::resize_file(path, (64ull << 20) + 1);
  expectUnreadable(path, "");
}

TEST(RecordFile, SaysWhereItCouldNotWrite) {
  const auto path = std::filesystem::path("/proc/no-such-folder/record.json");
  const Status status = writeRecord(recordText(healthyRecord()), path);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text().find("/proc/no-such-folder"), std::string::npos) << status.error().text();
}

TEST(RecordFile, WritesInvalidUtf8AsText) {
  Record record = healthyRecord();
  record.node = "node\xff\xfe";
  const auto json = parseJson(recordText(record));
  ASSERT_TRUE(json.ok()) << json.error().text();
  EXPECT_NE((*json)["run"]["node"].get<std::string>().find("\xef\xbf\xbd"), std::string::npos);
}

}  // namespace
}  // namespace muster
