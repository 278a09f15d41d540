// SPDX-License-Identifier: Apache-2.0
// The MAC of a record: kept through reading and writing, gone with any change, of one node and one run.
#include "runner/record/record_mac.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "runner/system/secret.h"
#include "tests/runner/record/sample/sample_record.h"
#include "tests/support/process.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

Record signedRecord(const std::string& nodeKey) {
  Record record = testing::healthyRecord();
  record.mac = macOf(record, nodeKey);
  return record;
}

TEST(RecordMac, OutlivesReadingAndWriting) {
  const std::string key = nodeKeyOf(*randomSecret(), "n1");
  const std::string text = recordText(signedRecord(key));
  EXPECT_TRUE(checkMac(text, key).ok());
  const auto again = recordFromJson(*parseJson(text));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(recordText(*again), text);
}

TEST(RecordMac, IsGoneWithAnyChange) {
  const std::string key = nodeKeyOf(*randomSecret(), "n1");
  const std::string text = recordText(signedRecord(key));
  std::mt19937 random(1);
  const auto below = [&](size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    std::string changed = text;
    const size_t at = i < 200 ? text.size() - 1 - static_cast<size_t>(i) : below(text.size());
    switch (i % 3) {
      case 0:
        changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + below(255)));
        break;
      case 1:
        changed.erase(at, 1 + below(3));
        break;
      default:
        changed.insert(at, 1, static_cast<char>(32 + below(90)));
    }
    if (changed == text) continue;
    EXPECT_FALSE(checkMac(changed, key).ok()) << i << " at " << at;
  }
  EXPECT_FALSE(checkMac(recordText(testing::healthyRecord()), key).ok()) << "without one";
  EXPECT_FALSE(checkMac("", key).ok());
}

TEST(RecordMac, IsOfOneNodeAndOneRun) {
  const std::string run = *randomSecret(), other = *randomSecret();
  EXPECT_NE(run, other);
  const std::string text = recordText(signedRecord(nodeKeyOf(run, "n1")));
  EXPECT_FALSE(checkMac(text, nodeKeyOf(run, "n2")).ok());
  EXPECT_FALSE(checkMac(text, nodeKeyOf(other, "n1")).ok());
  EXPECT_FALSE(checkMac(text, run).ok());
}

TEST(RecordMac, ItsKeyIsAFileThatNobodyElseCanRead) {
  const testing::TempDir folder;
  const std::string key = *randomSecret();
  const fs::path file = folder.write("key", key + "\n");
  for (const int mode : {0644, 0640, 0604, 0620, 0666}) {
    ASSERT_EQ(chmod(file.c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_FALSE(readKey(file).ok()) << mode;
  }
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const auto read = readKey(file);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, key);
  fs::create_symlink(file, folder.path() / "link");
  EXPECT_FALSE(readKey(folder.path() / "link").ok());
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(readKey(folder.path() / "pipe").ok());
  const fs::path cut = folder.write("cut", key.substr(1) + "\n");
  ASSERT_EQ(chmod(cut.c_str(), 0600), 0);
  EXPECT_FALSE(readKey(cut).ok());
}

}  // namespace
}  // namespace muster
