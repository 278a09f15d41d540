// SPDX-License-Identifier: Apache-2.0
// Reads a scenario's network. The format is described in plans/README.md.
#include "kernels/sim/scenario/network_reader.h"

namespace muster::sim {

void readNetwork(TomlTable& root, Fabric& out) {
  if (!root.has("network")) return;
  constexpr Range kRate = {1, 1e15};
  constexpr Range kLatency = {0, 1};
  TomlTable network = root.table("network");
  out.there = true;
  for (const char* key : {"intra_bandwidth", "rail_bandwidth"}) network.require(key);
  network.quantity("intra_bandwidth", "B/s", kRate, out.intraBandwidth);
  network.quantity("intra_latency", "s", kLatency, out.intraLatency);
  network.text("intra_transport", out.intraTransport);
  network.quantity("rail_bandwidth", "B/s", kRate, out.railBandwidth);
  network.integer("rails", {1, 64}, out.rails);
  network.quantity("inter_latency", "s", kLatency, out.interLatency);
  network.text("inter_transport", out.interTransport);
  network.integer("nodes_per_leaf", {0, 1e6}, out.nodesPerLeaf);
  network.quantity("noise", "ratio", {0, 0.2}, out.noise);
  network.finish();
}

}  // namespace muster::sim
