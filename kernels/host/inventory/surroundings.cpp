// SPDX-License-Identifier: Apache-2.0
// Readings of what surrounds the work on a node.
#include "kernels/host/inventory/surroundings.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>

#include "kernels/host/inventory/cgroup.h"
#include "kernels/host/inventory/cpu.h"
#include "kernels/host/inventory/machine.h"
#include "kernels/host/inventory/nics.h"
#include "kernels/host/inventory/sensors.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {

namespace {

/// Collects readings of the node; one function per subject fills it.
class Surroundings {
 public:
  explicit Surroundings(const Root& root) : root_(root) {}

  void number(const std::string& name, const std::string& unit, double value, Labels labels = {}) {
    readings.values.push_back({name, unit, "", value, "", std::move(labels)});
  }
  void fact(const std::string& name, const std::string& text, Labels labels = {}) {
    readings.values.push_back({name, "text", "", 0, text, std::move(labels)});
  }
  void unreadable(const std::string& name, const Error& error) {
    readings.unreadable.push_back({name, "", error.text()});
  }

  void processors() {
    const std::vector<int> allowed = affinity();
    const CpuModel model = readCpuModel(root_);
    number("cpu_count", "count", static_cast<double>(onlineCpus(root_).size()));
    number("cpu_allowed", "count", static_cast<double>(allowed.size()));
    fact("cpu_affinity", formatCpuList(allowed));
    fact("cpu_model", model.name);
    const size_t nodes = parseCpuList(root_.factOr("/sys/devices/system/node/online", "0")).size();
    number("numa_nodes", "count", static_cast<double>(std::max<size_t>(1, nodes)));
    fact("kernel", root_.factOr("/proc/sys/kernel/osrelease", "unknown"));
    fact("container", containerKind(root_));
    fact("virtualization", virtualization(root_));
  }

  void memory() {
    const auto memory = readMemory(root_);
    if (!memory.ok()) return unreadable("memory size", memory.error());
    number("memory_total", "B", static_cast<double>(memory->total));
    number("memory_available", "B", static_cast<double>(memory->available));
    number("swap_total", "B", static_cast<double>(memory->swap));
  }

  void memoryErrors() {
    const auto controllers = readMemoryErrors(root_);
    if (!controllers.ok()) return unreadable("memory error counters (EDAC)", controllers.error());
    for (const MemoryErrors& errors : *controllers) {
      const Labels labels{{"controller", errors.controller}};
      number("memory_errors_uncorrected", "count", static_cast<double>(errors.uncorrected), labels);
      number("memory_errors_corrected", "count", static_cast<double>(errors.corrected), labels);
    }
    fact("memory_error_counters", controllers->empty()
                                      ? "none: no EDAC driver, so nothing is known of memory errors"
                                      : std::to_string(controllers->size()) + " memory controllers");
  }

  void limits() {
    for (const auto& [name, unit, resource] : std::array<Limit, 3>{{{"limit_memlock", "B", RLIMIT_MEMLOCK},
                                                                    {"limit_nofile", "count", RLIMIT_NOFILE},
                                                                    {"limit_stack", "B", RLIMIT_STACK}}}) {
      rlimit limit{};
      if (getrlimit(resource, &limit) == 0) number(name, unit, static_cast<double>(limit.rlim_cur));
    }
  }

  void space(const std::string& folder) {
    const auto shared = readSpace(root_.prefix() + "/dev/shm");
    shared.ok() ? number("shm_size", "B", static_cast<double>(shared->total))
                : unreadable("/dev/shm", shared.error());
    const auto disk = readSpace(folder);
    disk.ok()
        ? number("disk_free", "B", static_cast<double>(disk->free), {{"folder", printable(folder, 200)}})
        : unreadable("disk space", disk.error());
  }

  void clockSource() {
    const auto source = root_.text("/sys/devices/system/clocksource/clocksource0/current_clocksource", 4096);
    if (!source.ok()) return unreadable("clock source", source.error());
    // These are read without leaving user space; the others (hpet, acpi_pm, jiffies) cost a microsecond a
    // call or step.
    constexpr std::array kFast = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"};
    const std::string name = printable(*source, 60);
    const bool fast = std::find(kFast.begin(), kFast.end(), name) != kFast.end();
    number("clock_source_fast", "bool", fast ? 1 : 0, {{"source", name}});
  }

  void controlGroups() {
    const CgroupState state = readCgroups(root_);
    readings.unreadable.insert(readings.unreadable.end(), state.unreadable.begin(), state.unreadable.end());
    cpuQuota(state);
    const auto memory = readMemory(root_);
    if (memory.ok()) memoryLimit(state, static_cast<double>(memory->total));
    const Labels labels =
        state.cpuFolder.empty() ? Labels{} : Labels{{"cgroup", printable(state.cpuFolder, 200)}};
    number("cgroup_throttled_periods", "count", static_cast<double>(state.throttledPeriods), labels);
  }

  void network() {
    for (const Nic& nic : readNics(root_)) {
      const Labels labels{{"interface", nic.name}};
      number("nic_up", "bool", nic.state == "up" ? 1 : 0, labels);
      if (nic.bytesPerSecond > 0) number("nic_rate", "B/s", nic.bytesPerSecond, labels);
      number("nic_errors", "count", static_cast<double>(nic.errors), labels);
    }
    const std::vector<RdmaPort> ports = readRdmaPorts(root_);
    number("rdma_ports", "count", static_cast<double>(ports.size()));
    for (const RdmaPort& port : ports) {
      const Labels labels{{"port", port.device + "/" + std::to_string(port.port)}};
      number("rdma_active", "bool", port.state == "ACTIVE" ? 1 : 0, labels);
      number("rdma_rate", "B/s", port.bytesPerSecond, labels);
      number("rdma_errors", "count", static_cast<double>(port.errors), labels);
    }
    for (Reading& reading : pcieReadings(ports)) readings.values.push_back(std::move(reading));
  }

  Readings readings;

 private:
  struct Limit {
    const char* name;
    const char* unit;
    int resource;
  };

  void cpuQuota(const CgroupState& state) {
    const double cpus = static_cast<double>(std::max<size_t>(1, affinity().size()));
    if (!state.quota) {
      number("cpu_quota_ratio", "ratio", 1);
      return fact("cpu_quota_source", "unlimited");
    }
    const double ratio = std::min(1.0, state.quota->cpus / cpus);
    const std::string folder = printable(state.quota->folder, 200);
    number("cpu_quota_ratio", "ratio", ratio, {{"cgroup", folder}});
    fact("cpu_quota_source", "cgroup cpu quota " + formatQuantity(ratio, "ratio") + " of " +
                                 formatQuantity(cpus, "count") + " CPUs (" + state.quota->text + ") at " +
                                 folder);
  }

  void memoryLimit(const CgroupState& state, double total) {
    if (!state.memory) return number("memory_limit_ratio", "ratio", 1);
    number("memory_limit_ratio", "ratio", std::min(1.0, static_cast<double>(state.memory->bytes) / total),
           {{"cgroup", printable(state.memory->folder, 200)}});
  }

  const Root& root_;
};

}  // namespace

Readings readSurroundings(const Root& root, const std::string& folder) {
  Surroundings surroundings(root);
  surroundings.processors();
  surroundings.memory();
  surroundings.memoryErrors();
  surroundings.limits();
  surroundings.space(folder);
  surroundings.clockSource();
  surroundings.controlGroups();
  surroundings.network();
  return std::move(surroundings.readings);
}

}  // namespace muster
