// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

TEST(QueueRoom, IsWhatMaxJobCountLeaves) {
  const auto room = queueRoom({{"MaxJobCount", "10000"}}, 9998);
  ASSERT_TRUE(room.ok());
  EXPECT_EQ(room->jobs, 2);
  EXPECT_EQ(room->why, "MaxJobCount is 10000, and Slurm knows 9998 jobs");
  EXPECT_EQ(queueRoom({}, 1)->jobs, 9999) << "slurm.conf(5) says 10000 where nothing is set";
  EXPECT_EQ(queueRoom({{"MaxJobCount", "5"}}, 9)->jobs, 0) << "it may have been lowered";
}

TEST(QueueRoom, RefusesALimitThatIsNotANumber) {
  for (const char* text : {"", "many", "10 000", "1e4"})
    EXPECT_FALSE(queueRoom({{"MaxJobCount", text}}, 1).ok()) << text;
}

TEST(QueueRoom, TooLittleIsRefusedWithWhatToDo) {
  EXPECT_TRUE(checkRoom({kLeastJobs, "x"}).ok());
  const Status refused = checkRoom({kLeastJobs - 1, "MaxJobCount is 9"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("(MaxJobCount is 9)"));
  EXPECT_THAT(refused.error().message, HasSubstr("wait until"));
}

}  // namespace
}  // namespace muster::slurm
