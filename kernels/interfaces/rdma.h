// SPDX-License-Identifier: Apache-2.0
// RDMA devices of a node as plugins see them: ports, counters, and timed transfers. Implemented by each
// backend.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/interfaces/inventory.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

/// The PCIe link of an RDMA device as it trained, and the best that the device can.
struct PcieLink {
  int lanes = 0, mostLanes = 0;     ///< 0: not told, as of a virtual function
  double speed = 0, mostSpeed = 0;  ///< GT/s of a lane

  [[nodiscard]] bool known() const { return lanes > 0 && mostLanes > 0 && speed > 0 && mostSpeed > 0; }
  /// Lanes times speed, as a share of the best.
  [[nodiscard]] double share() const;
  /// "x8 at 16 GT/s of x16 at 32 GT/s"
  [[nodiscard]] std::string text() const;
};

/// One port of an RDMA device (HCA).
struct RdmaPort {
  std::string device;  ///< mlx5_0
  int port = 1;
  std::string state;     ///< "ACTIVE"
  std::string physical;  ///< "LinkUp"
  std::string layer;     ///< InfiniBand or Ethernet; EFA's is Unspecified
  std::string rate;      ///< "400 Gb/sec (4X NDR)"
  std::string driver;    ///< of the device: mlx5_core, efa
  std::string firmware;
  std::string guid;           ///< of the device's node; empty: not told
  double bytesPerSecond = 0;  ///< line rate one way; 0: not told
  int numaNode = -1;
  int64_t errors = 0;  ///< symbol errors, link downed, receive errors: sum of the port's error counters
  PcieLink pcie = {};  ///< of the device

  [[nodiscard]] std::string name() const { return device + "/" + std::to_string(port); }
  [[nodiscard]] bool active() const { return state == "ACTIVE"; }
};

/// As the inventory shows it among the NICs.
Json toJson(const RdmaPort& port);

/// The reading `hca_pcie_share` of each device whose link is known.
std::vector<Reading> pcieReadings(const std::vector<RdmaPort>& ports);

/// What a counter of a port is about. Each sums up the files of the drivers that count it.
struct RdmaCounter {
  const char* name;  ///< metric of the rdma plugin; the env plugin says "rdma_" before it
  const char* unit;  ///< count or B
};
inline constexpr std::array kRdmaCounters = {
    RdmaCounter{"link_downed", "count"},
    RdmaCounter{"symbol_errors", "count"},
    RdmaCounter{"link_error_recoveries", "count"},
    RdmaCounter{"receive_errors", "count"},
    RdmaCounter{"link_integrity_errors", "count"},
    RdmaCounter{"buffer_overruns", "count"},
    RdmaCounter{"transmit_discards", "count"},
    RdmaCounter{"retransmits", "count"},
    RdmaCounter{"congestion_marks", "count"},
    RdmaCounter{"transmit_waits", "count"},
    RdmaCounter{"sent_bytes", "B"},
    RdmaCounter{"received_bytes", "B"},
};

/// A port's counters at one moment, by the names above, since the driver was loaded. One that the port does
/// not have is not among them; one that is there and cannot be read, or is at its maximum, is in
/// `unreadable`.
struct RdmaCounters {
  std::map<std::string, uint64_t> values;
  std::vector<UnreadableSource> unreadable;
};

/// What a counter grew by between two looks. One that fell was reset and counts from zero, but for the byte
/// counters of old hardware, which wrap at 2^32 words of four bytes.
uint64_t rdmaGrowth(std::string_view counter, uint64_t before, uint64_t after);

enum class RdmaMethod { kWriteBandwidth, kSendLatency };

/// One timed transfer, as its engine is told to run it.
struct RdmaTransfer {
  RdmaMethod method = RdmaMethod::kWriteBandwidth;
  std::string device;  ///< of the port
  int port = 1;
  uint64_t bytes = 1 << 20;  ///< of a message
  int seconds = 2;           ///< kWriteBandwidth: how long
  int iterations = 1000;     ///< kSendLatency: how many exchanges
  int queuePairs = 1;        ///< kWriteBandwidth
  bool bothWays = false;     ///< kWriteBandwidth: both sides write; the figure is the sum of both ways
  int gidIndex = -1;         ///< -1: the engine's choice
  int serviceLevel = 0;
  int trafficClass = -1;  ///< -1: not set
  int gpu = -1;           ///< index of the GPU that holds the buffers; -1: host memory
  double timeout = 30;    ///< seconds of each process of the engine

  [[nodiscard]] std::string portName() const { return device + "/" + std::to_string(port); }
};

/// Result of a transfer.
struct RdmaFigure {
  double bandwidth = 0;   ///< B/s, kWriteBandwidth
  double latency = 0;     ///< s, the median of one way (half a round trip), kSendLatency
  double latencyP99 = 0;  ///< s
};

/// How the two sides of a pair find each other.
class RdmaMeeting {
 public:
  virtual ~RdmaMeeting() = default;
  /// The serving side tells on which TCP port its engine listens.
  virtual Status announce(int tcpPort) = 0;
  /// The other side waits for that and gets host and TCP port.
  virtual Result<std::pair<std::string, int>> await(double timeout) = 0;
};

/// The other end of a pair: the same rail (place among the HCAs) of another node.
struct RdmaPeer {
  int node = 0;  ///< its rank
  bool serves = false;
};

/// The RDMA devices of one node. Not thread-safe.
class Rdma {
 public:
  virtual ~Rdma() = default;
  /// Seconds of the clock that measurements of it are stamped with; virtual on sim.
  [[nodiscard]] virtual double now() const = 0;
  /// Lets `seconds` of that clock pass.
  virtual void sleep(double seconds) = 0;
  /// Every port in the order of names. None is an empty list.
  virtual Result<std::vector<RdmaPort>> ports() = 0;
  virtual Result<RdmaCounters> counters(const RdmaPort& port) = 0;
  /// What does the transfers: name, version, path. kNotFound says which package to install.
  virtual Result<std::string> engine(RdmaMethod method) = 0;
  /// From a port to itself. Errors name port and process; kUnsupported: the engine cannot use a GPU's memory.
  virtual Result<RdmaFigure> loopback(const RdmaTransfer& transfer) = 0;
  /// Between this node and `peer`, which calls it too.
  virtual Result<RdmaFigure> pair(const RdmaTransfer& transfer, const RdmaPeer& peer,
                                  RdmaMeeting& meeting) = 0;
};

/// Where a backend that works on a real node looks.
struct RdmaOptions {
  std::string sysfs = "/sys";
  std::string engineFolder;              ///< empty: PATH
  std::function<bool()> cancelled = {};  ///< asked while a transfer runs
};

}  // namespace muster
