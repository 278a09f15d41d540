// SPDX-License-Identifier: Apache-2.0
// Faults that a scenario plants in its devices, and what they do at a given virtual time.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::sim {

constexpr double kMaxBytes = 1e15;  ///< of what a scenario may say
constexpr double kMaxTime = 1e9;    ///< seconds, of the same

enum class FaultKind {
  kSlow,        ///< works at `factor` of its speed
  kThrottle,    ///< the same, and the driver counts the time under `reason`
  kEcc,         ///< memory errors from `from` on
  kCorruption,  ///< every `every`-th result of `ops` is wrong at one place, without any message
  kHang,        ///< the next of `ops` after `from` never returns
  kCrash,       ///< the next of `ops` after `from` ends the process with a signal
  kMissing,     ///< the device is not there, or falls off the bus at `from`
  kXid,         ///< the driver logged XID `xid` at `from`
  kFabric,      ///< the driver reports health `mask` of the device's NVLink fabric from `from` on
  // Of the network, and of no device:
  kSlowLink,     ///< what goes between two devices, or two nodes, at `factor` of its speed
  kSlowNic,      ///< one rail of a node, or all of them
  kFlappingNic,  ///< the same is down for `down` seconds of each `period`: transfers wait
  kSlowUplink,   ///< what goes out of a leaf switch, or into it
  kSxid,         ///< an NVSwitch of a node reports SXid `xid` at `from`
};

/// The kinds of work that faults tell apart. kInventory and kHealth are questions to the driver.
enum class Work {
  kGemm,
  kMemory,
  kPattern,
  kHealth,
  kInventory,
  kTraining,
  kCollective,
  kHostCopy,
  kPeerCopy
};

/// "gemm", "memory", "pattern", "health", "inventory", "training", "collective", "host_copy", "peer_copy".
const std::vector<std::string>& workNames();

struct Fault {
  FaultKind kind = FaultKind::kSlow;
  int device = 0;         ///< place in the node, counted before missing devices are taken out
  int node = -1;          ///< node rank; -1: on every node
  std::vector<Work> ops;  ///< empty: all
  double from = 0;        ///< virtual seconds
  double until = std::numeric_limits<double>::infinity();
  double factor = 1;          ///< share of full speed that is left
  std::string reason;         ///< kThrottle: thermal, thermal_software, power_brake or power_cap
  std::string memory;         ///< kEcc: where errors were corrected, dram or sram
  int corrected = 0;          ///< kEcc
  int uncorrected = 0;        ///< kEcc
  bool remapPending = false;  ///< kEcc: a row remap waits for a reset
  bool remapFailed = false;   ///< kEcc: no spare row is left
  int every = 1;              ///< kCorruption, between `from` and `until`
  uint64_t offset = 0;        ///< kCorruption: byte offset of the wrong element
  int bit = 0;                ///< kCorruption: the bit that flips in its 8 bytes
  int xid = 0;                ///< kXid, kSxid
  bool fatal = true;          ///< kSxid
  int mask = 0;               ///< kFabric: as NVML has it
  int peerNode = -1;          ///< kSlowLink between nodes
  int peerDevice = -1;        ///< kSlowLink; -1, as in `device`: every one of that node
  int rail = -1;              ///< of a NIC; -1: all of the node's
  int leaf = -1;              ///< kSlowUplink
  double period = 0;          ///< kFlappingNic, seconds
  double down = 0;

  [[nodiscard]] bool concerns(Work work) const;
  [[nodiscard]] bool isOfNetwork() const { return kind >= FaultKind::kSlowLink; }
  [[nodiscard]] bool isOn(double at) const { return at >= from && at < until; }
};

/// The faults of one device of one node.
class FaultList {
 public:
  FaultList() = default;
  FaultList(const std::vector<Fault>& all, int device, int nodeRank);

  /// Whether the device is missing from the start.
  [[nodiscard]] bool missing() const;
  /// Share of full speed at virtual time `at`.
  [[nodiscard]] double speed(Work work, double at) const;
  /// Blocks for ever, ends the process, or fails as a device that fell off the bus does, where a fault says
  /// so.
  [[nodiscard]] Status strike(Work work, double at) const;
  /// Whether the device has fallen off the bus by `at`, after the start of the run.
  [[nodiscard]] bool lost(double at) const;
  /// The corruption that hits run number `run` (from 1) at `at`, or nullptr.
  [[nodiscard]] const Fault* corruption(Work work, uint64_t run, double at) const;
  /// Seconds that the driver has counted under `reason` by `at`.
  [[nodiscard]] double throttled(const std::string& reason, double at) const;
  [[nodiscard]] bool throttlesNow(const std::string& reason, double at) const;
  [[nodiscard]] const std::vector<Fault>& all() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

}  // namespace muster::sim
