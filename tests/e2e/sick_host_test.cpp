// SPDX-License-Identifier: Apache-2.0
// The host plan on this machine: a CPU quota fails it with the cause named, a busy neighbour is a warning
// that names it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

/// A cpu cgroup with a quota of `share` of all processors, v1 or v2; empty path where none can be made.
class QuotaGroup {
 public:
  explicit QuotaGroup(double share) {
    const long quota = static_cast<long>(share * 100000 * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
    const std::string name = "muster-test-" + std::to_string(getpid());
    if (fs::exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") || fs::exists("/sys/fs/cgroup/cpu/cgroup.procs")) {
      make(fs::path("/sys/fs/cgroup/cpu") / name);
      ready_ = put("cpu.cfs_period_us", "100000") && put("cpu.cfs_quota_us", std::to_string(quota));
    } else {
      std::ofstream("/sys/fs/cgroup/cgroup.subtree_control") << "+cpu";
      make(fs::path("/sys/fs/cgroup") / name);
      ready_ = put("cpu.max", std::to_string(quota) + " 100000");
    }
  }
  ~QuotaGroup() { rmdir(path_.c_str()); }
  QuotaGroup(const QuotaGroup&) = delete;
  QuotaGroup& operator=(const QuotaGroup&) = delete;
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::string procs() const { return (path_ / "cgroup.procs").string(); }

 private:
  void make(const fs::path& path) {
    path_ = path;
    std::error_code ignored;
    fs::create_directory(path_, ignored);
  }
  [[nodiscard]] bool put(const char* file, const std::string& text) const {
    std::ofstream out(path_ / file);
    out << text << std::flush;
    return out.good();
  }
  fs::path path_;
  bool ready_ = false;
};

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
  const auto result = runProcess(
      {"sh", "-c",
       // Before all others where we may: on a full machine too, it is the one that is busy.
       "nice -n -15 taskset -c 0 " + neighbour +
           " -c 'while :; do :; done' & pid=$!; sleep 0.3; \"$@\"; code=$?; " + "kill $pid; exit $code",
       "sh", (distDir() / "bin/muster").string(), "run", plan("environment.toml"), "--out", out.string()});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const auto warnings = verdictsOf(recordIn(out), Outcome::kWarn);
  ASSERT_FALSE(warnings.empty()) << result.out;
  EXPECT_NE(result.out.find("greedy-neighbou"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace muster::testing
