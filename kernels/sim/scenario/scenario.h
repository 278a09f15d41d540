// SPDX-License-Identifier: Apache-2.0
// A scenario: what the devices of a simulated node are, how fast they work, and which faults are planted in
// them.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/interfaces/device.h"
#include "kernels/sim/scenario/fault.h"
#include "kernels/sim/scenario/rdma_model.h"
#include "kernels/sim/scenario/storage_model.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::sim {

constexpr int kMostDevices = 64;  ///< of a node
constexpr int kMostRails = 64;    ///< of a node

/// The model of one device; all devices of a scenario are of one model.
struct Model {
  int count = 1;
  std::string kind = "gpu";
  std::string name;
  std::string pciId;
  double memory = 0;          ///< bytes
  double lastLevelCache = 0;  ///< bytes
  std::map<std::string, std::string> facts;
  std::map<std::string, double> peaks;
};

/// What it reaches. Rates are of long, warm runs.
struct Figures {
  double noise = 0.002;               ///< sigma of the time of one operation, as a share
  double spread = 0.006;              ///< sigma of the speed of devices, as a share
  double overhead = 4e-6;             ///< seconds that each operation costs beside its work
  double ramp = 0.02;                 ///< seconds of work after which a cold clock has risen to 63%
  double clock = 1755e6;              ///< Hz under load at which these rates hold: see Climate::loadClock
  std::map<Dtype, double> gemm;       ///< FLOP/s
  std::map<MemoryOp, double> memory;  ///< B/s, counted as STREAM does
};

/// First-order behaviour of temperature, power and clock. Load is taken to last since the run began.
struct Climate {
  double idleTemperature = 33;  ///< degC
  double loadTemperature = 64;
  double timeConstant = 10;  ///< seconds
  double idlePower = 75;     ///< W
  double loadPower = 680;
  double idleClock = 345e6;  ///< Hz
  double loadClock = 1755e6;
  double throttleTemperature = 89;  ///< degC: a hotter device slows down, so that it gets no hotter

  /// Without any throttling, after `at` seconds of load.
  [[nodiscard]] double heatedTo(double at) const;
  /// Asked at each operation: where the device never gets so hot, without an exponential.
  [[nodiscard]] bool throttlesAt(double at) const {
    return std::max(idleTemperature, loadTemperature) > throttleTemperature &&
           heatedTo(at) > throttleTemperature;
  }
  /// Seconds of throttling by `at`.
  [[nodiscard]] double throttledBy(double at) const;
  /// Share of loadClock that heat leaves at `at`.
  [[nodiscard]] double clockShare(double at) const;
};

/// What connects the devices. Bandwidths are what large collectives reach, one way; each device of a node
/// has the rail (NIC) of its place, modulo `rails`.
struct Fabric {
  bool there = false;           ///< the scenario has one
  double intraBandwidth = 0;    ///< B/s of one device to the others of its node (bus bandwidth)
  double intraLatency = 10e-6;  ///< seconds of a small collective inside of a node
  std::string intraTransport = "nvlink";
  double railBandwidth = 0;    ///< B/s of one NIC
  int rails = 8;               ///< NICs of a node
  double interLatency = 5e-6;  ///< seconds that each doubling of the nodes adds
  std::string interTransport = "ib+gdr";
  int nodesPerLeaf = 0;           ///< nodes on one leaf switch; 0: all on one
  double noise = 0.005;           ///< sigma of the time of one transfer, as a share
  bool confirmsSettings = false;  ///< the library says that it took the plan's settings
};

/// What moves between a device, its host and its peers. Bandwidths of large copies by copy engine, 0: the
/// devices have no such link.
struct CopyFigures {
  double hostToDevice = 0;           ///< B/s
  double deviceToHost = 0;           ///< B/s
  double hostBidirectional = 0;      ///< B/s of both directions together
  double peer = 0;                   ///< B/s of one device to another of its node by NVLink, one way
  double peerBidirectional = 0;      ///< B/s of both directions together
  double pciePeer = 0;               ///< B/s by PCIe within a NUMA node, one way
  double pciePeerBidirectional = 0;  ///< B/s of both directions together
  int bridged = 0;       ///< so many neighbours have NVLink, the others PCIe; 0: all the one that has a rate
  double far = 0.85;     ///< share of these that a host NUMA node reaches which is not the device's own
  double kernel = 0.97;  ///< share of these when a kernel copies
  int numaNodes = 2;     ///< of the host; devices are shared out evenly, in their order
  double latency = 0;    ///< seconds of a dependent load from the device's memory; 0: none is known

  /// Whether NVLink joins the devices at two places of a node.
  [[nodiscard]] bool overNvlink(int a, int b) const {
    return peer > 0 && (bridged == 0 || a / bridged == b / bridged);
  }
};

struct Scenario {
  std::string name;
  std::string description;
  uint64_t seed = 1;
  Model model;
  Figures figures;
  CopyFigures copies;
  Climate climate;
  Fabric network;
  RdmaModel rdma;
  StorageModel storage;
  Json node = Json::object();  ///< facts of host, software and NICs as the inventory shows them
  std::vector<Fault> faults;
};

/// Reads a scenario file for a run of `nodes` nodes (0: not known); every mistake is one line of the error,
/// with file:line:column. A fault that is on no node of the run is one.
Result<Scenario> loadScenario(const std::string& path, int nodes = 0);
/// The same from a text that includes no files, or is frozen; `path` only names it.
Result<Scenario> parseScenario(const std::string& text, const std::string& path, int nodes = 0);
/// The JSON Schema of these files.
Json scenarioSchema();

}  // namespace muster::sim
