// SPDX-License-Identifier: Apache-2.0
// What the ring plugin offers: its parameters, and the rest as JSON that plugins/abi/README.md describes.
#pragma once

#include "plugins/ring/meter.h"
#include "plugins/sdk/params.h"

namespace muster::ring {

struct Params {
  MeterOptions meter;
  std::string rails;
  Coverage coverage = Coverage::kQuick;
  std::string topology;
  std::string interface;
  double timeout = 60;
  double confirm = 30;  ///< seconds

  void declare(sdk::ParamTable& param) {
    const auto coverageNamed = [](const std::string& name) {
      return name == "all" ? Coverage::kAll : Coverage::kQuick;
    };
    param("bytes", meter.bytes, "B", "32 MiB", {"4 KiB", "4 GiB"}, "message size for bandwidth, one way");
    param("samples", meter.samples, 5, {3, 99},
          "messages each way and latencies per pair and round; the median is used");
    param("warmup", meter.warmup, 1, {0, 99}, "untimed messages each way before sampling");
    param("rails", rails, "both", {"both", "alone", "together"},
          "how the rails (ranks) of a node run: alone (in turn), together, or both");
    param("coverage", coverage, "quick", {"quick", "all"}, coverageNamed,
          "which pairs are measured: quick: each node with two others, in 2 rounds (3 if the nodes are odd); "
          "all: every pair of N nodes, in N - 1 rounds (N if odd), so a slow link between any two is found; "
          "it takes (N - 1) / 2 times as long as quick, and the log says how long after its first round");
    param("topology", topology, "",
          "Slurm topology.conf with the leaf switch of each node; pairs within a leaf are measured first, "
          "then across leaves");
    param("interface", interface, "", "network interface or address; empty: the backend's choice");
    param("timeout", timeout, "s", "1m", {"1s", "1h"}, "timeout for the group to form and for each exchange");
    param("confirm", confirm, "s", "30s", {"0s", "10m"},
          "time over which a slow pair must stay slow to be reported: it is remeasured 6 times with doubling "
          "pauses; no extra time if nothing is slow");
    param("noise_floor", meter.noiseFloor, "ratio", "2%", {"0.1%", "25%"},
          "minimum sigma assumed for healthy bandwidths");
    param("latency_noise_floor", meter.latencyNoiseFloor, "ratio", "10%", {"0.1%", "1000%"},
          "minimum sigma assumed for healthy latencies; larger if processes share CPUs or links");
  }
  Status complete() {
    meter.bytes = meter.bytes / 8 * 8;  // whole elements of every type
    meter.alone = rails != "together";
    meter.together = rails != "alone";
    return {};
  }
};

inline constexpr const char* kRingTest = R"json({
  "name": "ring",
  "summary": "Locates slow nodes, links, rails and leaf uplinks: each node is measured with two others, slow pairs again with healthy nodes",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["cluster", "node"], "group": true,
  "metrics": [
    {"name": "culprits", "unit": "count", "direction": "lower", "labels": ["culprit", "kind"], "finding_labels": ["culprit", "kind"],
     "summary": "faulty components: rank 0 of the group reports all, every other rank those on its own node and rail",
     "standing": {"max": 0, "source": "median and MAD over the pairs of this run, see plugins/README.md",
                  "remedy": "link: reseat or replace the cable, look at both ports' error counters; node: its NIC, PCIe width and BIOS; node-rail: that NIC and its cable; rail: its switch, and what its NICs have in common; leaf-uplink: the switch's uplinks; unattributable: run again with more nodes"}},
    {"name": "undecided", "unit": "count", "direction": "lower", "labels": ["culprit", "kind"], "finding_labels": ["culprit", "kind"],
     "summary": "slow components without a confirmed fault: not persistent, possibly caused by other processes, or confidence below 0.9; reported like culprits",
     "standing": {"max": 0, "severity": "error", "source": "measurements at later times, and how long ranks waited for a CPU, see plugins/README.md",
                  "remedy": "Stop what else runs on these hosts and their network (env.health), then run again; if it recurs, it is a fault"}},
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["rail", "peer"],
     "summary": "bandwidth with the fastest partner, one way, in the slower direction, so that a partner's fault does not count; of two nodes it is one of both, and `peer` is the other one's number",
     "remedy": "This node's rail is slow with every partner: check its NIC, that NIC's PCIe width and speed, and its cable"},
    {"name": "device_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["peer"], "peak": "network_bandwidth.device",
     "summary": "share of each device in `bandwidth` while all devices of the node work (rails = alone: of this one alone): compare this metric with the network's rate, because in a slow network all peers are slow",
     "remedy": "The network carries less than its NICs are rated for: check the rate that ports trained at (ibstat), GPUDirect RDMA, PCIe width and ACS; if the network has another rate, set network.rail_bandwidth and network.rails"},
    {"name": "latency", "unit": "s", "direction": "lower", "labels": ["rail"], "informational": true,
     "summary": "latency with the fastest partner: 8 bytes each way at the same time"},
    {"name": "pair_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["a", "b", "rail"],
     "informational": true, "optional": true, "leader": true,
     "summary": "bandwidth of each pair, one sample per direction and measurement (rank 0); above 32 nodes only slow pairs, all pairs are in the artifact"},
    {"name": "culprit_evidence", "unit": "text", "labels": ["culprit", "kind"], "informational": true, "optional": true,
     "summary": "evidence for a faulty component"},
    {"name": "culprit_loss", "unit": "ratio", "direction": "lower", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "speed loss caused by the component"},
    {"name": "culprit_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "bandwidth of the component's pairs on its slowest rail, in the slower direction"},
    {"name": "culprit_peer_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "median of the other pairs on that rail"},
    {"name": "culprit_latency", "unit": "s", "direction": "lower", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "latency of the component's pairs, where latency is what is lost"},
    {"name": "culprit_peer_latency", "unit": "s", "direction": "lower", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "median latency of the other pairs"},
    {"name": "culprit_confidence", "unit": "ratio", "direction": "higher", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "probability that the component is faulty, given the variation of healthy pairs in this run; 0: not located"},
    {"name": "unrepeated", "unit": "text", "labels": ["a", "b", "rail"], "informational": true, "optional": true, "leader": true,
     "summary": "pair that was slow once but not when remeasured"},
    {"name": "rounds", "unit": "count", "direction": "lower", "informational": true, "summary": "number of rounds"},
    {"name": "pair_coverage", "unit": "ratio", "direction": "higher", "informational": true,
     "summary": "share of all pairs of the group that were measured; faults of unmeasured pairs are not detected; coverage = all measures every pair"},
    {"name": "smallest_detectable_loss", "unit": "ratio", "direction": "lower", "informational": true,
     "summary": "smallest bandwidth loss of a pair detected with 99% probability in this run's noise; the test fails if it exceeds half"},
    {"name": "confirmations", "unit": "count", "direction": "lower", "informational": true,
     "summary": "number of times reported components were remeasured next to healthy pairs"},
    {"name": "looks_again", "unit": "count", "direction": "lower", "informational": true,
     "summary": "pairs remeasured within their round because of uncertain values"},
    {"name": "implementation", "unit": "text", "informational": true, "summary": "library and transport used"}
  ]
})json";

inline std::string describe() {
  return sdk::describe({{kRingTest, sdk::describeParams<Params>()}});
}

}  // namespace muster::ring
