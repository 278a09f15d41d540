// SPDX-License-Identifier: Apache-2.0
// Tests that bound what something costs.
#pragma once

#include <gtest/gtest.h>

#include <ctime>

namespace muster::testing {

/// Fails where a test takes `seconds` or more of CPU time, so that other work on the machine does not count.
class CpuTimeTest : public ::testing::Test {
 protected:
  explicit CpuTimeTest(int seconds) : seconds_(seconds) {}
  void TearDown() override { EXPECT_LT((std::clock() - begun_) / CLOCKS_PER_SEC, seconds_); }

 private:
  int seconds_;
  std::clock_t begun_ = std::clock();
};

}  // namespace muster::testing
