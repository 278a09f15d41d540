// SPDX-License-Identifier: Apache-2.0
// What the ring plugin offers, as plugins/abi/README.md describes it.
#pragma once

namespace muster::ring {

inline constexpr const char* kDescribe = R"json({"tests": [
{
  "name": "ring",
  "summary": "Locates slow nodes, links, rails and leaf uplinks: each node is measured with two others, slow pairs again with healthy nodes",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node", "cluster"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "32 MiB", "min": "4 KiB", "max": "4 GiB",
     "summary": "message size for bandwidth, one way"},
    {"name": "samples", "type": "int", "default": 5, "min": 3, "max": 99,
     "summary": "messages each way and latencies per pair and round; the median is used"},
    {"name": "warmup", "type": "int", "default": 1, "min": 0, "max": 99, "summary": "untimed messages each way before sampling"},
    {"name": "rails", "type": "string", "default": "both", "one_of": ["both", "alone", "together"],
     "summary": "how the rails (ranks) of a node run: alone (in turn), together, or both"},
    {"name": "coverage", "type": "string", "default": "quick", "one_of": ["quick", "all"],
     "summary": "which pairs are measured: quick: each node with two others, in 2 rounds (3 if the nodes are odd); all: every pair of N nodes, in N - 1 rounds (N if odd), so a slow link between any two is found; it takes (N - 1) / 2 times as long as quick, and the log says how long after its first round"},
    {"name": "topology", "type": "string", "default": "",
     "summary": "Slurm topology.conf with the leaf switch of each node; pairs within a leaf are measured first, then across leaves"},
    {"name": "interface", "type": "string", "default": "", "summary": "network interface or address; empty: the backend's choice"},
    {"name": "timeout", "type": "quantity", "unit": "s", "default": "1m", "min": "1s", "max": "1h",
     "summary": "timeout for the group to form and for each exchange"},
    {"name": "confirm", "type": "quantity", "unit": "s", "default": "30s", "min": "0s", "max": "10m",
     "summary": "time over which a slow pair must stay slow to be reported: it is remeasured 6 times with doubling pauses; no extra time if nothing is slow"},
    {"name": "noise_floor", "type": "quantity", "unit": "ratio", "default": "2%", "min": "0.1%", "max": "25%",
     "summary": "minimum sigma assumed for healthy bandwidths"},
    {"name": "latency_noise_floor", "type": "quantity", "unit": "ratio", "default": "10%", "min": "0.1%", "max": "1000%",
     "summary": "minimum sigma assumed for healthy latencies; larger if processes share CPUs or links"}
  ],
  "metrics": [
    {"name": "culprits", "unit": "count", "direction": "lower", "labels": ["culprit", "kind"],
     "summary": "faulty components: rank 0 of the group reports all, every other rank those on its own node and rail",
     "standing": {"max": 0, "source": "median and MAD over the pairs of this run, see plugins/README.md",
                  "remedy": "link: reseat or replace the cable, look at both ports' error counters; node: its NIC, PCIe width and BIOS; node-rail: that NIC and its cable; leaf-uplink: the switch's uplinks; unattributable: run again with more nodes"}},
    {"name": "undecided", "unit": "count", "direction": "lower", "labels": ["culprit", "kind"],
     "summary": "slow components without a confirmed fault: not persistent, possibly caused by other processes, or confidence below 0.9; reported like culprits",
     "standing": {"max": 0, "severity": "error", "source": "measurements at later times, and how long ranks waited for a CPU, see plugins/README.md",
                  "remedy": "Stop what else runs on these hosts and their network (env.health), then run again; if it recurs, it is a fault"}},
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["rail"],
     "summary": "bandwidth with the fastest partner, one way, in the slower direction, so that a partner's fault does not count"},
    {"name": "device_bandwidth", "unit": "B/s", "direction": "higher", "peak": "network_bandwidth.device",
     "summary": "share of each device in `bandwidth` while all devices of the node work (rails = alone: of this one alone): compare this metric with the network's rate, because in a slow network all peers are slow"},
    {"name": "latency", "unit": "s", "direction": "lower", "labels": ["rail"], "informational": true,
     "summary": "latency with the fastest partner: 8 bytes each way at the same time"},
    {"name": "pair_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["a", "b", "rail"],
     "informational": true, "optional": true, "leader": true,
     "summary": "bandwidth of each pair, one sample per direction and measurement (rank 0); above 32 nodes only slow pairs, all pairs are in the artifact"},
    {"name": "culprit_evidence", "unit": "text", "labels": ["culprit", "kind"], "informational": true, "optional": true,
     "summary": "evidence for a faulty component"},
    {"name": "culprit_loss", "unit": "ratio", "direction": "lower", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "speed loss caused by the component"},
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
}
]})json";

}  // namespace muster::ring
