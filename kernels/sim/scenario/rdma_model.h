// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a scenario ([rdma]): what they reach, and the faults planted in them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "runner/core/toml/toml_table.h"

namespace muster::sim {

/// The PCIe link of a healthy HCA: what ConnectX-7 has.
constexpr int kHcaLanes = 16, kHcaGeneration = 5;

enum class RdmaFaultKind {
  kSlow,      ///< moves bytes at `factor` of its speed
  kLinkDown,  ///< the link is down from `from` until `until`; the port counts that
  kErrors,    ///< the port counts errors at `from`
  kPcie,      ///< its PCIe link trained to `lanes` and `generation`
};

/// A fault of one HCA.
struct RdmaFault {
  RdmaFaultKind kind = RdmaFaultKind::kSlow;
  int hca = 0;
  int node = -1;    ///< node rank; -1: on every node
  double from = 0;  ///< virtual seconds
  double until = std::numeric_limits<double>::infinity();
  double factor = 1;
  std::map<std::string, uint64_t> counts;  ///< kErrors: by the names of kRdmaCounters
  int lanes = kHcaLanes;                   ///< kPcie
  int generation = kHcaGeneration;         ///< kPcie

  [[nodiscard]] bool concerns(int ofNode, int ofHca) const {
    return hca == ofHca && (node < 0 || node == ofNode);
  }
};

/// HCAs of one node, all of one model with one port each. Rates are of long, warm runs.
struct RdmaModel {
  int count = 0;  ///< 0: the nodes have none
  std::string prefix = "mlx5_";
  std::string layer = "InfiniBand";
  std::string driver = "mlx5_core";
  std::string firmware;
  double lineRate = 0;           ///< B/s, one way
  double bandwidth = 0;          ///< B/s of RDMA writes between two nodes
  double loopbackBandwidth = 0;  ///< B/s of a port to itself
  double latency = 1.8e-6;       ///< seconds, half a round trip between two nodes
  double loopbackLatency = 1.2e-6;
  double noise = 0.002;   ///< sigma of one run, as a share
  double spread = 0.003;  ///< sigma of the speed of HCAs, as a share
  std::vector<RdmaFault> faults;
};

/// Reads the table `rdma` of a scenario, if there is one; `nodes` as in readFault().
void readRdma(TomlTable& root, RdmaModel& out, int nodes);

}  // namespace muster::sim
