// SPDX-License-Identifier: Apache-2.0
// The host plan on this machine: a CPU quota fails it with the cause named, a busy neighbour is a warning
// that names it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/e2e/muster.h"
#include "tests/support/quota_group.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

TEST(SickHost, ACpuQuotaFailsThePlanWithItsCause) {
  const QuotaGroup group(0.5);
  if (!group.ready()) GTEST_SKIP() << "a cpu cgroup cannot be made here";
  TempDir dir;
  const auto out = dir.path() / "run";
  const auto result = runProcess({"sh", "-c", "echo $$ > " + group.procs() + " && exec \"$@\"", "sh",
                                  (distDir() / "bin/muster").string(), "run", plan("environment.toml"),
                                  "--out", out.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const auto fails = verdictsOf(recordIn(out), Outcome::kFail);
  ASSERT_EQ(fails.size(), 1U) << result.out;
  EXPECT_EQ(fails[0].metric, "env.cpu_quota_ratio");
  EXPECT_NE(fails[0].detail.find("muster-test"), std::string::npos)
      << "the control group: " << fails[0].detail;
  EXPECT_NE(result.out.find("quota"), std::string::npos) << result.out;
}

TEST(SickHost, ABusyNeighbourIsAWarningThatNamesIt) {
  TempDir dir;
  const auto out = dir.path() / "run";
  const std::string neighbour = (dir.path() / "greedy-neighbour").string();
  fs::copy_file("/bin/sh", neighbour);
  // In a process namespace of their own no other process of a loaded machine can be busier than it.
  std::vector<std::string> words{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
  if (geteuid() != 0) words.emplace_back("--map-root-user");
  for (const std::string& word :
       {std::string("sh"), std::string("-c"),
        // Before all others where we may: on a full machine too, it gets the processor.
        "nice -n -15 taskset -c 0 " + neighbour + " -c 'while :; do :; done' & \"$@\"", std::string("sh"),
        (distDir() / "bin/muster").string(), std::string("run"), plan("environment.toml"),
        std::string("--set"), std::string("environment.idle_window=300ms"), std::string("--out"),
        out.string()})
    words.push_back(word);
  const auto result = runProcess(words);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const auto warnings = verdictsOf(recordIn(out), Outcome::kWarn);
  ASSERT_FALSE(warnings.empty()) << result.out;
  EXPECT_NE(result.out.find("greedy-neighbou"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace muster::testing
