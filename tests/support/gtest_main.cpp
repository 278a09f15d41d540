// SPDX-License-Identifier: Apache-2.0
// The main of every test binary: a run in which nothing passed and something was skipped returns 77, so Meson
// shows SKIP; a filter that matches no test is a failure.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  const auto* unit = ::testing::UnitTest::GetInstance();
  if (unit->test_to_run_count() == 0 && !GTEST_FLAG_GET(list_tests)) {
    std::fprintf(stderr, "no test matches the filter %s\n", GTEST_FLAG_GET(filter).c_str());
    return 1;
  }
  if (code == 0 && unit->successful_test_count() == 0 && unit->skipped_test_count() > 0) return 77;
  return code;
}
