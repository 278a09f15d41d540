// SPDX-License-Identifier: Apache-2.0
// The inventory of a Linux machine.
#include "kernels/host/inventory/host_inventory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "kernels/host/inventory/cgroup.h"
#include "kernels/host/inventory/cpu.h"
#include "kernels/host/inventory/cpu_peaks.h"
#include "kernels/host/inventory/inventory.h"
#include "kernels/host/inventory/kernel_log.h"
#include "kernels/host/inventory/machine.h"
#include "kernels/host/inventory/nics.h"
#include "kernels/host/inventory/rdma_counters.h"
#include "kernels/host/inventory/sensors.h"
#include "kernels/host/inventory/surroundings.h"
#include "kernels/host/inventory/topology.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {

namespace {

/// Busy time that belongs to no process we see matters from half a CPU on, and only over a look that is long
/// enough for the kernel's 10 ms ticks.
constexpr double kUnseenShare = 0.5;
constexpr double kUnseenWindow = 0.5;

DeviceInfo describeNode(const NumaNode& node, int index, const CpuModel& model, double clockHz) {
  DeviceInfo info;
  info.index = index;
  info.id = "cpu" + std::to_string(index);
  info.kind = "cpu";
  info.name = model.name;
  info.memoryBytes = node.memoryBytes;
  info.lastLevelCacheBytes = node.cacheBytes;
  info.numaNode = node.index;
  info.cpus = node.cpus;
  info.peaks = cpuPeaks(model, node.cores, clockHz);
  info.facts = {{"cores", std::to_string(node.cores)},
                {"isa", isaText(model)},
                {"microcode", model.microcode},
                {"clock_measured", formatQuantity(clockHz, "Hz", 3)}};
  return info;
}

}  // namespace

HostSources machineSources() {
  // printk's clock starts at boot and stands still while the machine sleeps, as this one does.
  const auto uptime = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  return {Root(), readKernelLog, "", getpid(), processCpuSeconds, uptime};
}

std::unique_ptr<Inventory> makeHostInventory() {
  return std::make_unique<HostInventory>(machineSources());
}

HostInventory::HostInventory(HostSources sources)
    : sources_(std::move(sources)),
      watch_(sources_.root, sources_.self, sources_.processClock, affinity()),
      allowed_(affinity()) {}

Result<std::vector<DeviceInfo>> HostInventory::devices() {
  std::vector<int> allowed = allowed_;
  if (!sources_.syntheticTopology.empty()) allowed = parseCpuList("0-1023");
  MUSTER_TRY(Topology topology, readTopology(allowed, sources_.syntheticTopology));
  const CpuModel model = readCpuModel(sources_.root);
  const double clockHz = measureClockHz();
  std::vector<DeviceInfo> devices;
  const auto memory = readMemory(sources_.root);
  for (NumaNode& node : topology.nodes) {
    // Nodes do not count memory that was added to a running virtual machine; a single node has all there is.
    if (topology.nodes.size() == 1 && memory.ok())
      node.memoryBytes = std::max(node.memoryBytes, memory->total);
    devices.push_back(describeNode(node, static_cast<int>(devices.size()), model, clockHz));
  }
  return devices;
}

Result<Json> HostInventory::node() {
  Json nics = Json::array();
  for (const Nic& nic : readNics(sources_.root)) nics.push_back(toJson(nic));
  for (const RdmaPort& port : readRdmaPorts(sources_.root)) nics.push_back(toJson(port));
  return Json{{"host", hostFacts(sources_.root)},
              {"software", softwareFacts(sources_.root)},
              {"nics", std::move(nics)}};
}

Result<Readings> HostInventory::health(double /*at*/, const std::string& /*load*/) {
  Readings readings;
  addSensors(readings);
  addCpuUse(readings, addThrottling(readings));
  addRdma(readings);
  return readings;
}

Result<Readings> HostInventory::surroundings(const std::string& folder) {
  Readings readings = readSurroundings(sources_.root, folder);
  addLogErrors(readings);
  return readings;
}

void HostInventory::addSensors(Readings& readings) const {
  for (const CpuTemperature& sensor : readCpuTemperatures(sources_.root))
    readings.values.push_back(
        {reading::kTemperature, "degC", "", sensor.celsius, "", {{"sensor", sensor.sensor}}});
  if (const auto clock = reportedClockHz(sources_.root, allowed_))
    readings.values.push_back({reading::kClock, "Hz", "", *clock, "", {}});
  const auto load = sources_.root.text("/proc/loadavg", 4096);
  load.ok() ? readings.values.push_back({reading::kLoad, "count", "", strtod(load->c_str(), nullptr), "", {}})
            : readings.unreadable.push_back({"load", "", load.error().text()});
}

void HostInventory::addCpuUse(Readings& readings, double throttledSeconds) {
  const auto look = watch_.look();
  if (!look.ok()) return readings.unreadable.push_back({"processes", "", look.error().text()});
  const double throttled =
      std::max(0.0, throttledSeconds - std::exchange(throttledSeconds_, throttledSeconds));
  if (!look->has_value()) return;
  CpuUse use = **look;
  readings.values.push_back(
      {"external_load", "ratio", "", externalLoad(use, throttled / use.seconds), "", {}});
  if (use.seconds >= kUnseenWindow && use.unseen >= kUnseenShare && use.unseen > use.busiest) {
    use.busiest = use.unseen;
    use.process = "unseen";
    use.text = "interrupts, or processes that ended or cannot be seen from this container";
  }
  const Labels labels = use.process.empty() ? Labels{} : Labels{{"process", use.process}};
  readings.values.push_back({reading::kBusyShare, "ratio", "", use.busiest, use.text, labels});
  readings.values.push_back({reading::kStealShare, "ratio", "", use.steal, "", {}});
  readings.values.push_back({reading::kUtilization, "ratio", "", use.utilization, "", {}});
}

/// The share of our processors' time that others had: what they used of it on the whole, or, where a thread
/// of ours waited longer than that, its wait, as far as others can have caused it. `throttled` is in CPUs.
double HostInventory::externalLoad(const CpuUse& use, double throttled) const {
  const double cpus = static_cast<double>(std::max<size_t>(1, allowed_.size()));
  const double online = static_cast<double>(std::max(allowed_.size(), onlineCpus(sources_.root).size()));
  double taken = use.foreign + use.steal * cpus + throttled;
  if (use.seconds >= kUnseenWindow && use.unseen >= kUnseenShare) taken += use.unseen * cpus / online;
  return std::clamp(std::max(taken / cpus, std::min(use.waited, taken)), 0.0, 1.0);
}

double HostInventory::addThrottling(Readings& readings) const {
  const CgroupState state = readCgroups(sources_.root);
  readings.unreadable.insert(readings.unreadable.end(), state.unreadable.begin(), state.unreadable.end());
  const Labels labels =
      state.cpuFolder.empty() ? Labels{} : Labels{{"cgroup", printable(state.cpuFolder, 200)}};
  readings.values.push_back({reading::kCgroupThrottled, "s", "", state.throttledSeconds, "", labels});
  if (const auto seconds = thermalThrottleSeconds(sources_.root, allowed_))
    readings.values.push_back({reading::kCpuThrottleThermal, "s", "", *seconds, "", {}});
  return state.throttledSeconds;
}

void HostInventory::addRdma(Readings& readings) const {
  for (const RdmaPort& port : readRdmaPorts(sources_.root)) {
    RdmaCounters counters = readRdmaCounters(sources_.root, port.device, port.port);
    const Labels labels{{"port", port.name()}};
    for (const RdmaCounter& counter : kRdmaCounters)
      if (const auto found = counters.values.find(counter.name);
          found != counters.values.end() && std::string_view(counter.unit) == "count")
        readings.values.push_back(
            {kRdmaReadings + found->first, counter.unit, "", static_cast<double>(found->second), "", labels});
    readings.unreadable.insert(readings.unreadable.end(), counters.unreadable.begin(),
                               counters.unreadable.end());
  }
}

Status HostInventory::takeLog() {
  MUSTER_TRY(const KernelLog look, sources_.kernelLog());
  const double now = sources_.uptime();
  constexpr const char* kNext = "find what writes so many messages, or boot with a larger log_buf_len";
  if (!log_.add(look)) missedLog_ = fmt::format("messages were overwritten between two looks; {}", kNext);
  if (!logBegin_) {
    logBegin_ = std::max(0.0, now - logWindow());
    if (askedWindow_ && look.from > *logBegin_)
      windowGap_ = fmt::format(
          "it reaches back {} of {}, what is older was overwritten; {}, or set kernel_log_window, or "
          "kernel_log = \"optional\"",
          formatQuantity(now - look.from, "s"), formatQuantity(now - *logBegin_, "s"), kNext);
  }
  return {};
}

void HostInventory::resumeLog(double position) {
  constexpr double kTick = 1e-6;  // of the log's clock
  log_ = LogHistory(position);
  logBegin_ = position + kTick / 2;
}

Result<std::string> HostInventory::kernelLog() {
  MUSTER_CHECK_OK(takeLog());
  return logSince(log_.lines(), *logBegin_);
}

void HostInventory::addLogErrors(Readings& readings) {
  if (const Status log = takeLog(); !log.ok())
    return readings.unreadable.push_back({"kernel log", "", log.error().text()});
  if (!windowGap_.empty()) readings.unreadable.push_back({"kernel log", "", windowGap_});
  const std::string log = logSince(log_.lines(), *logBegin_);
  for (const auto& [name, found] : {std::pair{"hardware_errors", findInLog(log, LogKind::kHardwareError)},
                                    {"hca_log_errors", findInLog(log, LogKind::kHcaError)},
                                    {"hca_link_flaps", findLinkFlaps(log_.lines(), *logBegin_)}})
    readings.values.push_back({name, "count", "", static_cast<double>(found.count), found.last, {}});
}

}  // namespace muster
