// SPDX-License-Identifier: Apache-2.0
// Free memory on made-up machines: without cgroups, with v1 and v2 limits, with damaged files.
#include "kernels/host/free_memory.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster::host {
namespace {

constexpr uint64_t kMiB = 1u << 20;

class FreeMemory : public ::testing::Test {
 protected:
  FreeMemory() { write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\n"); }
  void write(const std::string& path, const std::string& text) { (void)folder_.write(path, text); }
  /// One cgroup of 1000 MiB with 600 MiB in use, 100 MiB of it cache.
  void writeV2(const std::string& path, const std::string& limit) {
    write(path + "/memory.max", limit + "\n");
    write(path + "/memory.current", std::to_string(600 * kMiB) + "\n");
    write(path + "/memory.stat", "anon 5\ninactive_file " + std::to_string(100 * kMiB) + "\nactive_file 7\n");
  }
  [[nodiscard]] uint64_t freeMiB() const {
    const auto free = freeMemory(Root(folder_.path().string()));
    EXPECT_TRUE(free.ok());
    return free.ok() ? *free / kMiB : 0;
  }
  testing::TempDir folder_;
};

TEST_F(FreeMemory, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(freeMiB(), 4096u);
}

TEST_F(FreeMemory, IsWhatACgroupLeaves) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  writeV2("sys/fs/cgroup/jobs/one", std::to_string(1000 * kMiB));
  EXPECT_EQ(freeMiB(), 500u);
}

TEST_F(FreeMemory, HeedsTheLimitOfAGroupAbove) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  writeV2("sys/fs/cgroup/jobs", std::to_string(700 * kMiB));
  writeV2("sys/fs/cgroup/jobs/one", "max");
  EXPECT_EQ(freeMiB(), 200u);
}

TEST_F(FreeMemory, HeedsTheLimitOfAContainersRoot) {
  write("proc/self/cgroup", "0::/\n");
  writeV2("sys/fs/cgroup", std::to_string(1000 * kMiB));
  EXPECT_EQ(freeMiB(), 500u);
}

TEST_F(FreeMemory, ReadsVersionOne) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/slice\n");
  write("sys/fs/cgroup/memory/slice/memory.limit_in_bytes", std::to_string(1000 * kMiB) + "\n");
  write("sys/fs/cgroup/memory/slice/memory.usage_in_bytes", std::to_string(900 * kMiB) + "\n");
  EXPECT_EQ(freeMiB(), 100u);
}

TEST_F(FreeMemory, IsZeroWhereMoreIsUsedThanAllowed) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  writeV2("sys/fs/cgroup/jobs/one", std::to_string(400 * kMiB));
  EXPECT_EQ(freeMiB(), 0u);
}

TEST_F(FreeMemory, TakesDamagedCgroupFilesAsNoLimit) {
  write("proc/self/cgroup", "garbage\n0:\n0::\n:::\n0::/jobs/one\n");
  writeV2("sys/fs/cgroup/jobs/one", "lots");
  EXPECT_EQ(freeMiB(), 4096u);
}

TEST_F(FreeMemory, IsWhatTheNumaNodeLeaves) {
  write("sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:  4194304 kB\nNode 1 MemFree:   1048576 kB\nNode 1 Active(file): 51200 kB\nNode 1 "
        "Inactive(file): 51200 kB\n");
  const Root root(folder_.path().string());
  EXPECT_EQ(*freeMemory(root, 1) / kMiB, 1124u);
  EXPECT_EQ(*freeMemory(root, 0) / kMiB, 4096u);  // a node that the kernel does not tell of
}

TEST_F(FreeMemory, SaysThatTheKernelDoesNotTell) {
  write("proc/meminfo", "MemTotal: 5 kB\n");
  const auto free = freeMemory(Root(folder_.path().string()));
  ASSERT_FALSE(free.ok());
  EXPECT_NE(free.error().text().find("/proc/meminfo: there is no MemAvailable line"), std::string::npos);
}

}  // namespace
}  // namespace muster::host
