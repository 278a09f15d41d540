// SPDX-License-Identifier: Apache-2.0
// Inventory and health of a node: devices, software, readings. Implemented by each backend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/interfaces/device.h"
#include "runner/metrics/measurement.h"

namespace muster {

/// Names of the readings that Inventory::health() may give; the env plugin reports each as the metric
/// `env.<name>`. "Cumulative" counts since boot (or driver load, or scenario start) and never falls: the
/// plugin reports what it grew by.
namespace reading {
inline constexpr const char* kTemperature = "temperature";               ///< degC, of the chip
inline constexpr const char* kMemoryTemperature = "memory_temperature";  ///< degC
inline constexpr const char* kSlowdownMargin =
    "slowdown_margin";  ///< degC that are left until the hardware slows the clocks down
inline constexpr const char* kPower = "power";              ///< W
inline constexpr const char* kClock = "clock";              ///< Hz; on a GPU that of the SMs
inline constexpr const char* kUtilization = "utilization";  ///< ratio of busy time, 0..1
inline constexpr const char* kThrottleThermal =
    "throttle_thermal";  ///< s, cumulative: by the hardware, or by what the driver does not tell
inline constexpr const char* kThrottleSoftware =
    "throttle_software";  ///< s, cumulative: by the driver, at the target temperature
inline constexpr const char* kThrottlePowerBrake = "throttle_power_brake";  ///< s, cumulative
inline constexpr const char* kThrottleHardware =
    "throttle_hardware";  ///< s, cumulative: slowdown of the hardware by neither heat nor the brake
inline constexpr const char* kThrottlePowerCap =
    "throttle_power_cap";  ///< s, cumulative; normal under full load
inline constexpr const char* kEccCorrected =
    "ecc_corrected";  ///< count, cumulative; label memory: sram or dram, where the driver tells them apart
inline constexpr const char* kEccUncorrected = "ecc_uncorrected";     ///< count, cumulative
inline constexpr const char* kRowRemapPending = "row_remap_pending";  ///< bool
inline constexpr const char* kRowRemapFailed = "row_remap_failed";    ///< bool
inline constexpr const char* kXidFatal =
    "xid_fatal";  ///< count, cumulative; text: "XID 79 (GPU fell off the bus)"
inline constexpr const char* kXidApplication =
    "xid_application";  ///< count, cumulative: kernels/checks/xid.h
inline constexpr const char* kXidInformation = "xid_information";  ///< count, cumulative: the same
inline constexpr const char* kPcieReplay = "pcie_replay";          ///< count, cumulative
inline constexpr const char* kNvlinkErrors =
    "nvlink_errors";  ///< count, cumulative: what a link had to repeat or recover from
inline constexpr const char* kNvlinkCrcErrors = "nvlink_crc_errors";  ///< count, cumulative
inline constexpr const char* kFabricHealthy = "fabric_healthy";       ///< bool; text: what is wrong with it
// Of the node (device empty), where the operating system tells them:
inline constexpr const char* kSxidFatal = "sxid_fatal";  ///< count, cumulative: of NVSwitches; text: the last
inline constexpr const char* kSxidNonfatal = "sxid_nonfatal";  ///< count, cumulative
inline constexpr const char* kLoad = "load";                   ///< count: runnable tasks, 1-minute average
inline constexpr const char* kCgroupThrottled =
    "cgroup_throttled";  ///< s, cumulative, of this process's cpu cgroup
inline constexpr const char* kBusyShare =
    "busy_share";  ///< ratio of one CPU since the last call, busiest foreign process; label process
inline constexpr const char* kStealShare = "steal_share";  ///< ratio of the machine's CPU time since the last
                                                           ///< call that its hypervisor gave to others
inline constexpr const char* kCpuThrottleThermal =
    "cpu_throttle_thermal";  ///< s, cumulative, of the CPU package that was throttled longest
}  // namespace reading

/// Readings of the counters of RDMA ports are called this and the counter's name (kernels/interfaces/rdma.h),
/// cumulative, with a label `port`.
inline constexpr const char* kRdmaReadings = "rdma_";

/// One health reading of one device (or of the node, device empty), which becomes the metric `env.<name>`.
struct Reading {
  std::string name;    ///< one of namespace reading
  std::string unit;    ///< base unit
  std::string device;  ///< device id; empty for the node
  double value = 0;
  std::string text;    ///< for unit "text"; beside a number: what it is about, in words
  Labels labels = {};  ///< more that tells it from its like: process, interface, cgroup ...
};

/// A reading that could not be taken: "never seen" and "cannot see" are different things.
struct UnreadableSource {
  std::string name;  ///< "kernel log"
  std::string device;
  std::string reason;
};

struct Readings {
  std::vector<Reading> values;
  std::vector<UnreadableSource> unreadable;
};

/// Older lines of the kernel's log are history (Azure's node health checks look as far back).
inline constexpr double kLogWindow = 2 * 3600;

/// What inventory knows of one backend's machine.
class Inventory {
 public:
  virtual ~Inventory() = default;
  /// Every device of the node. None is an empty list; a driver that is missing is an error that says what to
  /// install.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  /// Facts about host, software, NICs as one JSON object: {"host": {...}, "software": {...}, "nics": [...]}.
  virtual Result<Json> node() = 0;
  /// What carries copies between two devices of the node: "nvlink"; else PCIe, by the way that both are
  /// joined: "pcie_switch", "pcie_host" (within one NUMA node) or "pcie_system" (between NUMA nodes).
  virtual Result<std::string> link(const std::string& from, const std::string& to) {
    return Error{ErrorCode::kUnsupported, "nothing joins " + from + " and " + to, ""};
  }
  /// Health now, at time `at` of the device clock (sim evaluates its scenario there; others read the
  /// hardware). `load` names the stage's kind of work ("idle", "compute", "memory"), which only sim uses.
  virtual Result<Readings> health(double at, const std::string& load) = 0;
  /// The node's surroundings, which do not change while stages run: limits, cgroup, clock source, space,
  /// network. `folder` is where results are written.
  virtual Result<Readings> surroundings(const std::string& folder) {
    (void)folder;
    return Readings{};
  }
  /// How far back before the first look the kernel's log counts, in seconds. Call it before that look;
  /// without it: kLogWindow.
  virtual void setLogWindow(double seconds) { (void)seconds; }
  /// How far the kernel's log was read, by its own clock; negative: it was not.
  [[nodiscard]] virtual double logPosition() const { return -1; }
  /// The log counts from a position on that an earlier process gave. Call it before the first look.
  virtual void resumeLog(double position) { (void)position; }
};

}  // namespace muster
