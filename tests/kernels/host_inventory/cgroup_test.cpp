// SPDX-License-Identifier: Apache-2.0
// Limits of control groups: both versions, ancestors, containers, and what cannot be understood.
#include "kernels/host/inventory/cgroup.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

constexpr const char* kV1Mounts =
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
constexpr const char* kV2Mounts = "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

/// A machine with these two files; limits are written by each test.
class CgroupTree {
 public:
  CgroupTree(const std::string& membership, const std::string& mounts) {
    dir_.write("proc/self/cgroup", membership);
    dir_.write("proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n" + mounts);
  }
  CgroupTree& with(const std::string& file, const std::string& text) {
    dir_.write("sys/fs/cgroup/" + file, text);
    return *this;
  }
  [[nodiscard]] CgroupState read() const { return readCgroups(Root(dir_.path())); }

 private:
  TempDir dir_;
};

TEST(Cgroup, VersionOneWithoutQuotaIsUnlimited) {
  const CgroupState state = CgroupTree("4:memory:/\n1:cpu,cpuacct:/\n", kV1Mounts)
                                .with("cpu/cpu.cfs_quota_us", "-1")
                                .with("cpu/cpu.cfs_period_us", "100000")
                                .with("memory/memory.limit_in_bytes", "9223372036854771712")
                                .read();
  EXPECT_FALSE(state.quota);
  EXPECT_FALSE(state.memory);
  EXPECT_TRUE(state.unreadable.empty());
  EXPECT_EQ(state.cpuFolder, "/sys/fs/cgroup/cpu");
}

TEST(Cgroup, TheTightestQuotaOfAllAncestorsCounts) {
  const CgroupState state = CgroupTree("1:cpu:/slurm/job/step\n", kV1Mounts)
                                .with("cpu/slurm/job/step/cpu.cfs_quota_us", "400000")
                                .with("cpu/slurm/job/step/cpu.cfs_period_us", "100000")
                                .with("cpu/slurm/cpu.cfs_quota_us", "50000")
                                .with("cpu/slurm/cpu.cfs_period_us", "100000")
                                .read();
  ASSERT_TRUE(state.quota);
  EXPECT_DOUBLE_EQ(state.quota->cpus, 0.5);
  EXPECT_EQ(state.quota->folder, "/sys/fs/cgroup/cpu/slurm");
  EXPECT_EQ(state.quota->text, "50000 of every 100000 us");
}

TEST(Cgroup, VersionTwoReadsQuotaThrottlingAndMemory) {
  const CgroupState state = CgroupTree("0::/user.slice/run\n", kV2Mounts)
                                .with("user.slice/run/cpu.max", "150000 100000")
                                .with("user.slice/run/cpu.stat",
                                      "usage_usec 99\nnr_periods 9\nnr_throttled 4\nthrottled_usec 2500000\n")
                                .with("user.slice/cpu.max", "max 100000")
                                .with("user.slice/memory.max", "1073741824")
                                .with("user.slice/run/memory.max", "max")
                                .read();
  ASSERT_TRUE(state.quota);
  EXPECT_DOUBLE_EQ(state.quota->cpus, 1.5);
  EXPECT_DOUBLE_EQ(state.throttledSeconds, 2.5);
  EXPECT_EQ(state.throttledPeriods, 4u);
  ASSERT_TRUE(state.memory);
  EXPECT_EQ(state.memory->bytes, 1073741824u);
  EXPECT_EQ(state.memory->folder, "/sys/fs/cgroup/user.slice");
}

TEST(Cgroup, VersionOneCountsThrottledNanoseconds) {
  const CgroupState state =
      CgroupTree("1:cpu:/\n", kV1Mounts)
          .with("cpu/cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_time 1500000000\n")
          .read();
  EXPECT_DOUBLE_EQ(state.throttledSeconds, 1.5);
  EXPECT_EQ(state.throttledPeriods, 7u);
}

TEST(Cgroup, OnAHybridMachineTheControllerIsWhereItIsListed) {
  const std::string both =
      std::string(kV1Mounts) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const CgroupState state = CgroupTree("1:cpu:/a\n0::/b\n", both)
                                .with("cpu/a/cpu.cfs_quota_us", "20000")
                                .with("cpu/a/cpu.cfs_period_us", "10000")
                                .with("unified/b/cpu.max", "1000 100000")
                                .read();
  ASSERT_TRUE(state.quota);
  EXPECT_DOUBLE_EQ(state.quota->cpus, 2);
}

TEST(Cgroup, InAContainerTheMountPointShowsOurOwnGroup) {
  const CgroupState state =
      CgroupTree("1:cpu:/docker/abc\n",
                 "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n")
          .with("cpu/cpu.cfs_quota_us", "25000")
          .with("cpu/cpu.cfs_period_us", "100000")
          .read();
  ASSERT_TRUE(state.quota);
  EXPECT_DOUBLE_EQ(state.quota->cpus, 0.25);
}

TEST(Cgroup, BehindANamespaceThatLeadsOutsideTheMountPointIsRead) {
  const CgroupState state = CgroupTree("0::/../sibling\n", kV2Mounts).with("cpu.max", "30000 100000").read();
  ASSERT_TRUE(state.quota);
  EXPECT_DOUBLE_EQ(state.quota->cpus, 0.3);
}

TEST(Cgroup, AQuotaThatIsNotUnderstoodIsUnreadableAndNotUnlimited) {
  for (const char* text : {"fifty 100000", "50000 0", "-5 100000", "50000 x", "\x01\x02\xff"}) {
    const CgroupState state = CgroupTree("0::/a\n", kV2Mounts).with("a/cpu.max", text).read();
    EXPECT_FALSE(state.quota) << text;
    EXPECT_EQ(state.unreadable.size(), 1u) << text;
  }
}

TEST(Cgroup, AHugeLimitFileIsUnreadable) {
  const CgroupState state =
      CgroupTree("0::/a\n", kV2Mounts).with("a/cpu.max", std::string(1 << 20, '9')).read();
  EXPECT_EQ(state.unreadable.size(), 1u);
}

TEST(Cgroup, AHierarchyThatNoFolderShowsIsUnreadable) {
  const CgroupState state = CgroupTree("1:cpu:/a\n", "").read();
  ASSERT_EQ(state.unreadable.size(), 1u);
  EXPECT_NE(state.unreadable[0].reason.find("mount /sys/fs/cgroup"), std::string::npos);
}

TEST(Cgroup, AKernelWithoutControlGroupsLimitsNothing) {
  const TempDir empty;
  const CgroupState state = readCgroups(Root(empty.path()));
  EXPECT_FALSE(state.quota);
  EXPECT_TRUE(state.unreadable.empty());
}

TEST(Cgroup, TruncatedLinesAreLeftOut) {
  const CgroupState state = CgroupTree("cpu\n::\n1:cpu\n", "1 2 3\n- cgroup\nx - cgroup\n").read();
  EXPECT_FALSE(state.quota);
}

}  // namespace
}  // namespace muster
