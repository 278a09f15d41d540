// SPDX-License-Identifier: Apache-2.0
// A runner that is killed takes every process below it along, whatever the plugins did to hide them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runner/dispatch/fake_group.h"

namespace muster::testing {
namespace {

using ::testing::IsEmpty;

/// Starts the driver on the requests of `group`; its frames come through the returned descriptor.
pid_t startDriver(const FakeGroup& group, int& frames) {
  std::vector<std::string> words{buildDir() / "tests" / "runner" / "dispatch" / "group-driver",
                                 hostExecutable()};
  for (const RankSpec& rank : group.ranks)
    words.push_back(group.folder().write(rank.requestFile.filename(), dumpJson(rank.request)));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int fds[2];
  if (pipe(fds) != 0) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
  pid_t pid = -1;
  if (posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  frames = fds[0];
  return pid;
}

/// Reads frames until `count` of them are progress frames.
bool waitForProgress(int frames, int count) {
  std::string text;
  char buffer[4096];
  while (true) {
    int seen = 0;
    for (size_t at = 0; (at = text.find(R"("type":"progress")", at)) != std::string::npos; ++at) ++seen;
    if (seen >= count) return true;
    const ssize_t n = read(frames, buffer, sizeof buffer);
    if (n <= 0) return false;
    text.append(buffer, static_cast<size_t>(n));
  }
}

std::vector<int> leftInTheEnd(const FakeGroup& group) {
  for (int i = 0; i < 600 && !group.left().empty(); ++i) poll(nullptr, 0, 50);
  return group.left();
}

TEST(RunnerKilled, LeavesNothingBehind) {
  FakeGroup group;
  group.add("children", 1)["grace"] = 0.2;
  group.add("hang-term")["grace"] = 0.2;
  int frames = -1;
  const pid_t runner = startDriver(group, frames);
  ASSERT_GT(runner, 0);
  ASSERT_TRUE(waitForProgress(frames, 2));
  EXPECT_EQ(group.left().size(), 9U);  // runner, two guards, two ranks, four children
  kill(runner, SIGKILL);
  waitpid(runner, nullptr, 0);
  EXPECT_THAT(leftInTheEnd(group), IsEmpty());
  close(frames);
}

}  // namespace
}  // namespace muster::testing
