// SPDX-License-Identifier: Apache-2.0
#include "runner/kube/record_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster::kube {
namespace {

using muster::testing::ProcessResult;
using muster::testing::runProcess;

const std::string kText = "{\"run\": {\"node\": \"n1\"}}\n";

/// What pod.sh prints, by the same programs.
std::string logOf(const std::string& text, const std::string& node = "n1", int code = 0) {
  const ProcessResult packed = runProcess({"sh", "-c", "printf %s \"$0\" | gzip -c | base64 -w 20", text});
  return fmt::format("some output\n\n#muster-record {} {} {}\n{}\n#muster-record-end\n", node, code,
                     sha256Hex(text), packed.out);
}

TEST(RecordLog, FindsWhatThePodPrinted) {
  const auto record = recordInLog(logOf(kText, "gpu-1.ec2.internal", 130));
  ASSERT_TRUE(record.ok()) << record.error().text();
  EXPECT_EQ(record->node, "gpu-1.ec2.internal");
  EXPECT_EQ(record->exitCode, 130);
  EXPECT_EQ(record->text, kText);
}

TEST(RecordLog, TakesTheLastOfSeveral) {
  const auto record = recordInLog(logOf("old", "n1", 3) + logOf(kText));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->text, kText);
  EXPECT_EQ(recordInLog(logOf("old", "n1", 3) + "#muster-record n1 0 x\n").error().code,
            ErrorCode::kProtocol);
}

TEST(RecordLog, TakesNoOtherTextWhereverTheLogIsCutOrChanged) {
  const std::string whole = logOf(kText);
  const size_t last = whole.size() - std::string("-end\n").size();
  for (size_t at = 0; at < last; ++at) {
    EXPECT_FALSE(recordInLog(whole.substr(0, at)).ok()) << at;
    for (const char other : {'A', '\n', '#', '\0', '\xff'}) {
      std::string changed = whole;
      changed[at] = other;
      const auto record = recordInLog(changed);
      if (record.ok()) {
        EXPECT_EQ(record->text, kText) << at << " " << static_cast<int>(other);
      }
    }
  }
}

TEST(RecordLog, RefusesADigestOfAnotherText) {
  std::string log = logOf(kText);
  log.replace(log.find(sha256Hex(kText)), 64, sha256Hex("other"));
  EXPECT_NE(recordInLog(log).error().message.find("another digest"), std::string::npos);
}

}  // namespace
}  // namespace muster::kube
