// SPDX-License-Identifier: Apache-2.0
// The main of every test binary: a run in which nothing passed and something was skipped returns 77, so Meson shows SKIP.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  const auto* unit = testing::UnitTest::GetInstance();
  if (code == 0 && unit->successful_test_count() == 0 && unit->skipped_test_count() > 0) return 77;
  return code;
}
