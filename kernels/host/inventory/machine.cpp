// SPDX-License-Identifier: Apache-2.0
// Facts about the machine as a whole.
#include "kernels/host/inventory/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "kernels/host/inventory/cpu.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {

namespace {

uint64_t kibibytes(std::string_view text, std::string_view key) {
  return static_cast<uint64_t>(std::max<int64_t>(0, leadingInteger(fieldOf(text, key), 0))) << 10;
}

/// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)", without the quotes.
std::string osName(const Root& root) {
  const auto text = root.text("/etc/os-release");
  std::string_view name = text.ok() ? fieldOf(*text, "PRETTY_NAME") : std::string_view{};
  if (name.starts_with('"')) name = name.substr(1, name.find('"', 1) - 1);
  return name.empty() ? "unknown" : printable(name, 100);
}

std::string kernelRelease() {
  utsname names{};
  return uname(&names) == 0 ? printable(names.release, 100) : "unknown";
}

std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? printable(name, 255) : "unknown";
}

/// systemd asks that the id itself stays on its machine (machine-id(5)), so records hold a digest of it.
std::string machineId(const Root& root) {
  const std::string id = root.factOr("/etc/machine-id");
  return id.empty() ? "" : sha256Hex("muster " + id).substr(0, 32);
}

/// As cloud-init's ds-identify tells clouds by their firmware; empty elsewhere.
std::string cloudOf(const Root& root) {
  const auto dmi = [&](const char* file) { return root.factOr(std::string("/sys/class/dmi/id/") + file); };
  if (dmi("sys_vendor") == "Amazon EC2") return "aws";
  if (dmi("product_name") == "Google Compute Engine") return "gcp";
  const std::string tag = dmi("chassis_asset_tag");
  if (tag == "7783-7084-3265-9085-8269-3286-77") return "azure";
  if (tag == "OracleCloud.com") return "oci";
  return "";
}

/// What the management controller calls itself, where its driver is loaded; empty elsewhere.
std::string bmcGuid(const Root& root) {
  for (const std::string& name : root.list("/sys/devices/platform"))
    if (name.starts_with("ipmi_bmc.")) return root.factOr("/sys/devices/platform/" + name + "/guid");
  return "";
}

/// The name that a hypervisor gives itself in CPUID leaf 0x40000000; empty on other processors.
std::string hypervisorVendor() {
#if defined(__x86_64__)
  std::array<unsigned, 4> registers{};
  __cpuid(0x40000000, registers[0], registers[1], registers[2], registers[3]);
  return {reinterpret_cast<const char*>(&registers[1]), 12};
#else
  return "";
#endif
}

/// "16 x 64 GiB", by the memory controllers' driver (EDAC); empty where none is loaded.
std::string installedDimms(const Root& root) {
  const std::string controllers = "/sys/devices/system/edac/mc/";
  std::map<int64_t, int> counts;  // MiB -> how many
  for (const std::string& controller : root.list(controllers))
    for (const std::string& dimm : root.list(controllers + controller))
      if (dimm.starts_with("dimm"))
        if (const int64_t size = root.integerOr(controllers + controller + "/" + dimm + "/size", 0); size > 0)
          ++counts[size];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [size, count] : counts)
    parts.push_back(fmt::format("{} x {:g} GiB", count, static_cast<double>(size) / 1024));
  return join(parts, ", ");
}

/// "8 x KIOXIA KCD8XRUG3T84", the NVMe drives by model; empty without any. A drive that fell off its bus is
/// missing.
std::string nvmeDrives(const Root& root) {
  const std::string controllers = "/sys/class/nvme/";
  std::map<std::string, int> counts;
  for (const std::string& controller : root.list(controllers))
    ++counts[root.factOr(controllers + controller + "/model", "unknown model")];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [model, count] : counts) parts.push_back(fmt::format("{} x {}", count, model));
  return join(parts, ", ");
}

/// "performance", or "performance on 0-62, powersave on 63"; empty without cpufreq (most virtual machines).
std::string cpuGovernors(const Root& root) {
  std::map<std::string, std::vector<int>> cpus;
  for (const int cpu : onlineCpus(root)) {
    const std::string governor =
        root.factOr("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor");
    if (!governor.empty()) cpus[governor].push_back(cpu);
  }
  if (cpus.size() == 1) return cpus.begin()->first;
  std::vector<std::string> parts;
  parts.reserve(cpus.size());
  for (const auto& [governor, of] : cpus) parts.push_back(governor + " on " + formatCpuList(of));
  return join(parts, ", ");
}

/// "intel_idle: POLL, C1, C1E, C6 off", of the first processor; empty where the kernel uses none.
std::string idleStates(const Root& root) {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpuidle/";
  std::vector<std::string> states;
  for (const std::string& state : root.list(folder))
    states.push_back(root.factOr(folder + state + "/name", state) +
                     (root.integerOr(folder + state + "/disable", 0) != 0 ? " off" : ""));
  if (states.empty()) return "";
  return root.factOr("/sys/devices/system/cpu/cpuidle/current_driver", "unknown driver") + ": " +
         join(states, ", ");
}

}  // namespace

Result<Memory> readMemory(const Root& root) {
  MUSTER_TRY(const std::string text, root.text("/proc/meminfo"));
  Memory memory{kibibytes(text, "MemTotal"), kibibytes(text, "MemAvailable"), kibibytes(text, "SwapTotal")};
  if (memory.total == 0) return Error{ErrorCode::kProtocol, "has no line MemTotal", "/proc/meminfo"};
  return memory;
}

std::string containerKind(const Root& root) {
  if (getenv("KUBERNETES_SERVICE_HOST") != nullptr && root.prefix().empty()) return "kubernetes";
  if (root.exists("/.dockerenv")) return "docker";
  if (root.exists("/run/.containerenv")) return "podman";
  if (root.exists("/.singularity.d")) return "singularity";
  // systemd and lxc put a variable into the first process's environment; only root may read it.
  const auto environment = root.text("/proc/1/environ", 1u << 20);
  if (environment.ok()) {
    for (const std::string& entry : split(*environment, '\0'))
      if (entry.starts_with("container=")) return printable(entry.substr(10), 40);
  }
  const std::string cgroup = root.factOr("/proc/1/cgroup");
  for (const char* kind : {"kubepods", "docker", "libpod", "lxc", "enroot"})
    if (cgroup.find(kind) != std::string::npos) return kind == std::string("kubepods") ? "kubernetes" : kind;
  return "none";
}

std::string virtualization(const Root& root) {
  if (!readCpuModel(root).has("hypervisor")) return root.factOr("/sys/hypervisor/type", "none");
  const std::string vendor = hypervisorVendor();
  for (const auto& [signature, kind] : {std::pair{"KVMKVMKVM", "kvm"},
                                        {"VMwareVMware", "vmware"},
                                        {"Microsoft Hv", "hyper-v"},
                                        {"XenVMMXenVMM", "xen"},
                                        {"TCGTCGTCGTCG", "qemu"}})
    if (vendor.starts_with(signature)) return kind;
  return "virtual machine";
}

Result<Space> readSpace(const std::string& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return Error{ErrorCode::kIo, errnoText(errno), folder};
  return Space{info.f_bavail * info.f_frsize, info.f_blocks * info.f_frsize};
}

Json hostFacts(const Root& root) {
  const CpuModel cpu = readCpuModel(root);
  const auto memory = readMemory(root);
  const auto shared = readSpace(root.prefix() + "/dev/shm");
  return {{"name", hostName()},
          {"kernel", kernelRelease()},
          {"os", osName(root)},
          {"boot_id", root.factOr("/proc/sys/kernel/random/boot_id")},
          {"machine_id", machineId(root)},
          {"vendor", root.factOr("/sys/class/dmi/id/sys_vendor")},
          {"product", root.factOr("/sys/class/dmi/id/product_name")},
          {"board", root.factOr("/sys/class/dmi/id/board_name")},
          {"board_serial", root.factOr("/sys/class/dmi/id/board_serial")},
          {"product_serial", root.factOr("/sys/class/dmi/id/product_serial")},
          {"product_uuid", root.factOr("/sys/class/dmi/id/product_uuid")},
          {"bmc_guid", bmcGuid(root)},
          {"bios", root.factOr("/sys/class/dmi/id/bios_version")},
          {"cloud", cloudOf(root)},
          {"virtualization", virtualization(root)},
          {"container", containerKind(root)},
          {"cpu", cpu.name},
          {"cpu_microcode", cpu.microcode},
          {"cpus_online", formatCpuList(onlineCpus(root))},
          {"cpus_allowed", formatCpuList(affinity())},
          {"numa_nodes", root.factOr("/sys/devices/system/node/online")},
          {"clock_source", root.factOr("/sys/devices/system/clocksource/clocksource0/current_clocksource")},
          {"cpu_governor", cpuGovernors(root)},
          {"c_states", idleStates(root)},
          {"numa_balancing", root.factOr("/proc/sys/kernel/numa_balancing")},
          {"dimms", installedDimms(root)},
          {"nvme", nvmeDrives(root)},
          {"memory_bytes", memory.ok() ? memory->total : 0},
          {"swap_bytes", memory.ok() ? memory->swap : 0},
          {"shm_bytes", shared.ok() ? shared->total : 0}};
}

Json softwareFacts(const Root& root) {
  Json facts = {{"kernel", kernelRelease()},
                {"os", osName(root)},
                {"libc", std::string("glibc ") + gnu_get_libc_version()}};
  const std::string driver = root.factOr("/sys/module/nvidia/version");
  if (!driver.empty()) facts["nvidia_driver"] = driver;
  return facts;
}

}  // namespace muster
