// SPDX-License-Identifier: Apache-2.0
// Linked with one object per header of the project: that it could be built is the proof that each compiles
// alone.
#include <gtest/gtest.h>

TEST(Headers, EachCompilesAlone) {
  EXPECT_GT(MUSTER_HEADER_COUNT, 0);
}
