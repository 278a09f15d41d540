// SPDX-License-Identifier: Apache-2.0
// Parts of a command in processes of their own: their output, their results, and how they end.
#include "runner/app/process/side_by_side.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "runner/app/process/interrupt.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SideBySide, PrintsAsIfOneRanAfterTheOther) {
  ::testing::internal::CaptureStdout();
  const auto codes = runSideBySide(4, [](int part) -> Result<int> {
    fmt::print("part {} begins\n", part);
    std::fflush(stdout);
    if (part == 0) usleep(50000);  // the others are done before it
    fmt::print("part {} ends\n", part);
    return part;
  });
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "part 0 begins\npart 0 ends\npart 1 begins\npart 1 ends\n"
            "part 2 begins\npart 2 ends\npart 3 begins\npart 3 ends\n");
  ASSERT_TRUE(codes.ok()) << codes.error().text();
  EXPECT_THAT(*codes, ElementsAre(0, 1, 2, 3));
}

TEST(SideBySide, GivesAProcessToEach) {
  int kept = 0;
  const auto codes = runSideBySide(3, [&](int) -> Result<int> { return ++kept; });
  ASSERT_TRUE(codes.ok());
  EXPECT_THAT(*codes, ElementsAre(1, 1, 1));
  EXPECT_EQ(kept, 0);
}

TEST(SideBySide, HandsOnTheFirstError) {
  const auto codes = runSideBySide(3, [](int part) -> Result<int> {
    if (part == 0) return 0;
    return Error{ErrorCode::kUsage, fmt::format("part {} is wrong", part), "here"};
  });
  ASSERT_FALSE(codes.ok());
  EXPECT_EQ(codes.error().code, ErrorCode::kUsage);
  EXPECT_EQ(codes.error().text(), "here: part 1 is wrong");
}

TEST(SideBySide, SaysHowAPartEndedThatToldNothing) {
  const auto killed = runSideBySide(1, [](int) -> Result<int> { return raise(SIGKILL); });
  ASSERT_FALSE(killed.ok());
  EXPECT_EQ(killed.error().code, ErrorCode::kInternal);
  EXPECT_THAT(killed.error().text(), HasSubstr("killed by SIGKILL"));
  const auto left = runSideBySide(1, [](int) -> Result<int> { _exit(3); });
  ASSERT_FALSE(left.ok());
  EXPECT_THAT(left.error().text(), HasSubstr("exit code 3"));
}

/// A signal to the command reaches all parts at work, and no further one is begun.
[[noreturn]] void interruptParts() {
  installInterruptHandlers();
  const pid_t command = getpid();
  const auto codes = runSideBySide(1000000, [&](int part) -> Result<int> {
    if (part == 0) kill(command, SIGTERM);
    while (!interrupted().load()) usleep(1000);
    return interruptingSignal();
  });
  fmt::print(stderr, "{} {}\n", codes.ok() ? codes->front() : -1, interruptionText());
  _exit(0);
}

TEST(SideBySideDeathTest, InterruptsTheParts) {
  EXPECT_EXIT(interruptParts(), ::testing::ExitedWithCode(0), "15 the run was interrupted \\(SIGTERM\\)\n");
}

}  // namespace
}  // namespace muster
