// SPDX-License-Identifier: Apache-2.0
// A record that is no plain run says what it is.
#include "runner/record/findings/marks.h"

#include <gtest/gtest.h>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

TEST(Marks, AreNoneForAPlainRun) {
  Record record = testing::healthyRecord();
  record.simulated = false;
  EXPECT_TRUE(marksOf(record).empty());
  EXPECT_EQ(markPrefix(record), "");
}

TEST(Marks, SayEachWordOnce) {
  Record record = testing::partialRecord();
  record.rejudged = testing::rejudgedRecord().rejudged;
  record.redacted = {std::string(64, 'a'), {"host", "serial"}};
  record.imported.resize(2);
  EXPECT_EQ(markPrefix(record), "SIMULATED IMPORTED RE-JUDGED REDACTED PARTIAL ");
  EXPECT_EQ(marksOf(record).size(), 6u);  // a line for each imported file
  EXPECT_EQ(marksOf(record)[4].text,
            "names were replaced (host, serial); the original record has sha256 aaaaaaaaaaaa");
}

}  // namespace
}  // namespace muster
