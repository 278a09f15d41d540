// SPDX-License-Identifier: Apache-2.0
// First and last bytes are kept, what lies between is counted.
#include "runner/dispatch/output_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(OutputKeeper, MakesNoFileForNoOutput) {
  const testing::TempDir folder;
  OutputKeeper keeper(folder.path() / "out");
  keeper.finish();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
  EXPECT_EQ(keeper.tail(), "");
}

TEST(OutputKeeper, KeepsEverythingUpToTheBound) {
  const testing::TempDir folder;
  OutputKeeper keeper(folder.path() / "out");
  const std::string block(1U << 20, 'x');
  for (int i = 0; i < 16; ++i) keeper.add(block);
  keeper.finish();
  EXPECT_EQ(keeper.dropped(), 0U);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "out"), 16U << 20);
}

TEST(OutputKeeper, CountsWhatItDrops) {
  const testing::TempDir folder;
  OutputKeeper keeper(folder.path() / "out");
  keeper.add("first");
  const std::string block((1U << 20) + 7, 'x');
  for (int i = 0; i < 60; ++i) keeper.add(block);
  keeper.add("last");
  keeper.finish();
  const std::string kept = testing::readWhole(folder.path() / "out");
  const uint64_t total = 5 + 60 * block.size() + 4;
  EXPECT_EQ(keeper.dropped(), total - OutputKeeper::kHead - OutputKeeper::kLast);
  EXPECT_EQ(kept.substr(0, 6), "firstx");
  EXPECT_EQ(kept.substr(kept.size() - 5), "xlast");
  EXPECT_THAT(kept, HasSubstr(std::to_string(keeper.dropped()) + " bytes of output dropped here"));
}

TEST(OutputKeeper, GivesTheTailAsValidUtf8) {
  OutputKeeper keeper("");
  for (int i = 0; i < 4000; ++i) keeper.add("\xC3\xA4");
  keeper.add("\xFF!");
  const std::string tail = keeper.tail();
  EXPECT_EQ(tail.substr(0, 2), "\xC3\xA4");
  EXPECT_EQ(tail.substr(tail.size() - 4), "\xEF\xBF\xBD!");
}

TEST(OutputKeeper, SaysThatTheDiskIsFull) {
  const testing::TempDir folder;
  OutputKeeper keeper(folder.path() / "output");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none{0, before.rlim_max};  // as a full disk, for this process
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &none);
  keeper.add("text");
  keeper.finish();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(keeper.problem(), AllOf(StartsWith("cannot keep the output in " + folder.path().string()),
                                      HasSubstr("File too large")));
}

}  // namespace
}  // namespace muster
