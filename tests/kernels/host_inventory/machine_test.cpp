// SPDX-License-Identifier: Apache-2.0
// Facts about made-up machines and this one.
#include "kernels/host/inventory/machine.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

TEST(Memory, ReadsKibibytes) {
  const TempDir dir;
  dir.write("proc/meminfo",
            "MemTotal:  24684092 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\nSwapTotal: 0 kB\n");
  const auto memory = readMemory(Root(dir.path()));
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->total, 24684092ull << 10);
  EXPECT_EQ(memory->available, 20000000ull << 10);
}

TEST(Memory, WithoutATotalIsAnError) {
  const TempDir dir;
  dir.write("proc/meminfo", "MemFree: 1 kB\n");
  EXPECT_FALSE(readMemory(Root(dir.path())).ok());
}

TEST(Container, IsToldByItsMarks) {
  const TempDir docker, podman, lxc, kubernetes, none;
  docker.write(".dockerenv", "");
  podman.write("run/.containerenv", "");
  lxc.write("proc/1/environ", std::string("PATH=/bin\0container=lxc\0", 24));
  kubernetes.write("proc/1/cgroup", "0::/kubepods.slice/pod1\n");
  EXPECT_EQ(containerKind(Root(docker.path())), "docker");
  EXPECT_EQ(containerKind(Root(podman.path())), "podman");
  EXPECT_EQ(containerKind(Root(lxc.path())), "lxc");
  EXPECT_EQ(containerKind(Root(kubernetes.path())), "kubernetes");
  EXPECT_EQ(containerKind(Root(none.path())), "none");
}

TEST(Virtualization, IsNoneWithoutTheHypervisorFlag) {
  const TempDir dir;
  dir.write("proc/cpuinfo", "model name : x\nflags : fpu sse2\n");
  EXPECT_EQ(virtualization(Root(dir.path())), "none");
}

TEST(Space, OfAFolderThatIsNotThereIsAnErrorThatNamesIt) {
  EXPECT_GT(readSpace("/")->total, 0u);
  EXPECT_NE(readSpace("/no/such/folder").error().text().find("/no/such/folder"), std::string::npos);
}

TEST(HostFacts, NameTheMachineAndItsSystem) {
  const TempDir dir;
  dir.write("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  dir.write("sys/module/nvidia/version", "580.95.05\n");
  EXPECT_EQ(hostFacts(Root(dir.path()))["os"], "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(softwareFacts(Root(dir.path()))["nvidia_driver"], "580.95.05");
  EXPECT_FALSE(hostFacts(Root()).at("name").get<std::string>().empty());
  EXPECT_GT(hostFacts(Root()).at("memory_bytes").get<uint64_t>(), 0u);
}

TEST(HostFacts, TellHowTheHostIsSetUp) {
  const TempDir dir;
  const Json none = hostFacts(Root(dir.path()));
  for (const char* name : {"cpu_governor", "c_states", "numa_balancing", "dimms", "nvme"})
    EXPECT_EQ(none[name], "") << name;
  const std::string cpus = "sys/devices/system/cpu/";
  dir.write(cpus + "online", "0-3\n");
  for (const char* cpu : {"cpu0", "cpu1", "cpu2", "cpu3"})
    dir.write(cpus + cpu + "/cpufreq/scaling_governor", "performance\n");
  dir.write(cpus + "cpuidle/current_driver", "intel_idle\n");
  dir.write(cpus + "cpu0/cpuidle/state0/name", "POLL\n");
  dir.write(cpus + "cpu0/cpuidle/state0/disable", "0\n");
  dir.write(cpus + "cpu0/cpuidle/state1/name", "C6\n");
  dir.write(cpus + "cpu0/cpuidle/state1/disable", "1\n");
  dir.write("proc/sys/kernel/numa_balancing", "1\n");
  dir.write("proc/meminfo", "MemTotal: 24684092 kB\nSwapTotal: 1024 kB\n");
  for (const char* dimm : {"mc0/dimm0", "mc0/dimm1", "mc1/dimm0"})
    dir.write(std::string("sys/devices/system/edac/mc/") + dimm + "/size", "65536\n");
  dir.write("sys/devices/system/edac/mc/mc1/dimm1/size", "32768\n");
  for (const char* drive : {"nvme0", "nvme1"})
    dir.write(std::string("sys/class/nvme/") + drive + "/model", "KIOXIA KCD8XRUG3T84   \n");
  dir.write("sys/class/nvme/nvme2/model", "Boot drive\n");
  const Json facts = hostFacts(Root(dir.path()));
  EXPECT_EQ(facts["cpu_governor"], "performance");
  EXPECT_EQ(facts["nvme"], "1 x Boot drive, 2 x KIOXIA KCD8XRUG3T84");
  EXPECT_EQ(facts["c_states"], "intel_idle: POLL, C6 off");
  EXPECT_EQ(facts["numa_balancing"], "1");
  EXPECT_EQ(facts["dimms"], "1 x 32 GiB, 3 x 64 GiB");
  EXPECT_EQ(facts["swap_bytes"], 1024 << 10);
  dir.write(cpus + "cpu3/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(hostFacts(Root(dir.path()))["cpu_governor"], "performance on 0-2, powersave on 3");
}

TEST(HostFacts, IdentifyTheMachine) {
  const TempDir dir;
  EXPECT_EQ(hostFacts(Root(dir.path()))["machine_id"], "") << "what cannot be read is not made up";
  EXPECT_EQ(hostFacts(Root(dir.path()))["board_serial"], "");
  EXPECT_EQ(hostFacts(Root(dir.path()))["bmc_guid"], "");
  dir.write("etc/machine-id", "3d1219c7c4c5404aaa1f6d2a48adfda4\n");
  dir.write("sys/class/dmi/id/board_serial", "B17\n");
  dir.write("sys/class/dmi/id/product_serial", "P17\n");
  dir.write("sys/class/dmi/id/product_uuid", "4c4c4544-0036-4710-8052-b4c04f565032\n");
  dir.write("sys/devices/platform/ipmi_bmc.0/guid", "31303043-534d-2500-90d8-7a1600000000\n");
  const Json facts = hostFacts(Root(dir.path()));
  EXPECT_EQ(facts["machine_id"].get<std::string>().size(), 32u);
  EXPECT_NE(facts["machine_id"], "3d1219c7c4c5404aaa1f6d2a48adfda4") << "the id itself stays on its machine";
  EXPECT_EQ(facts["board_serial"], "B17");
  EXPECT_EQ(facts["product_serial"], "P17");
  EXPECT_EQ(facts["product_uuid"], "4c4c4544-0036-4710-8052-b4c04f565032");
  EXPECT_EQ(facts["bmc_guid"], "31303043-534d-2500-90d8-7a1600000000");
}

}  // namespace
}  // namespace muster
