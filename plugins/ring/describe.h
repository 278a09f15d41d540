// SPDX-License-Identifier: Apache-2.0
// What the ring plugin offers, as plugins/abi/README.md describes it.
#pragma once

namespace muster::ring {

inline constexpr const char* kDescribe = R"json({"tests": [
{
  "name": "ring",
  "summary": "Which node, link, rail or leaf uplink is slow: every node meets two others, suspects meet healthy ones",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node", "cluster"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "32 MiB", "min": "4 KiB", "max": "4 GiB",
     "summary": "size of a message whose rate is taken, one way"},
    {"name": "samples", "type": "int", "default": 5, "min": 3, "max": 99,
     "summary": "messages each way and latencies of each pair in each round; their median counts"},
    {"name": "warmup", "type": "int", "default": 1, "min": 0, "max": 99, "summary": "messages each way before those"},
    {"name": "rails", "type": "string", "default": "both", "one_of": ["both", "alone", "together"],
     "summary": "whether the rails of a node (its ranks) take turns, work at once, or first the one and then the other"},
    {"name": "coverage", "type": "string", "default": "quick", "one_of": ["quick", "all"],
     "summary": "which pairs are measured: quick: each node with two others, in 2 rounds (3 if the nodes are odd); all: every pair of N nodes, in N - 1 rounds (N if odd), so a slow link between any two is found; it takes (N - 1) / 2 times as long as quick, and the log says how long after its first round"},
    {"name": "topology", "type": "string", "default": "",
     "summary": "a Slurm topology.conf that names the leaf switch of each node: pairs inside a leaf, then across"},
    {"name": "interface", "type": "string", "default": "", "summary": "network interface or address; empty: the backend's choice"},
    {"name": "timeout", "type": "quantity", "unit": "s", "default": "1m", "min": "1s", "max": "1h",
     "summary": "how long a rank waits for its group to form, and for each exchange"},
    {"name": "confirm", "type": "quantity", "unit": "s", "default": "30s", "min": "0s", "max": "10m",
     "summary": "span over which a finding must last before it is named: it is measured again 6 times, after pauses that double; nothing slow: no time at all"},
    {"name": "noise_floor", "type": "quantity", "unit": "ratio", "default": "2%", "min": "0.1%", "max": "25%",
     "summary": "sigma that healthy bandwidths may have; few figures are not believed to scatter less"},
    {"name": "latency_noise_floor", "type": "quantity", "unit": "ratio", "default": "10%", "min": "0.1%", "max": "1000%",
     "summary": "the same of latencies; wide where processes share processors or a link is filled beside"}
  ],
  "metrics": [
    {"name": "culprits", "unit": "count", "direction": "lower", "labels": ["culprit", "kind"],
     "summary": "what slows pairs down: rank 0 of the group names all, every other rank those on its own node and rail",
     "standing": {"max": 0, "source": "median and MAD over the pairs of this run, see plugins/README.md",
                  "remedy": "link: reseat or replace the cable, look at both ports' error counters; node: its NIC, PCIe width and BIOS; node-rail: that NIC and its cable; leaf-uplink: the switch's uplinks; unattributable: run again with more nodes"}},
    {"name": "undecided", "unit": "count", "direction": "lower", "labels": ["culprit", "kind"],
     "summary": "what was slow and may be no fault: it did not last, other processes on its hosts may account for it, or its confidence is below 0.9; told as culprits are",
     "standing": {"max": 0, "severity": "error", "source": "measurements at later times, and how long ranks waited for a CPU, see plugins/README.md",
                  "remedy": "Stop what else runs on these hosts and their network (env.health), then run again; if it comes back, it is a fault"}},
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["rail"],
     "summary": "what this rank reaches with its best partner, one-way, in the slower direction: another's fault is not its own"},
    {"name": "device_bandwidth", "unit": "B/s", "direction": "higher", "peak": "network_bandwidth.device",
     "summary": "share of each device in `bandwidth` while all devices of the node work (rails = alone: of this one alone): the one to hold against the network's own rate, for the peers of a slow network are slow too"},
    {"name": "latency", "unit": "s", "direction": "lower", "labels": ["rail"], "informational": true,
     "summary": "with its best partner: 8 bytes each way at the same time"},
    {"name": "pair_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["a", "b", "rail"],
     "informational": true, "optional": true, "leader": true,
     "summary": "rank 0 of the group: each pair, one sample each way and look; of more than 32 nodes only slow pairs, the artifact has all"},
    {"name": "culprit_evidence", "unit": "text", "labels": ["culprit", "kind"], "informational": true, "optional": true,
     "summary": "what speaks against a culprit"},
    {"name": "culprit_loss", "unit": "ratio", "direction": "lower", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "share of the speed that it costs"},
    {"name": "culprit_confidence", "unit": "ratio", "direction": "higher", "labels": ["culprit", "kind"],
     "informational": true, "optional": true, "summary": "probability that the name is right, given how much healthy pairs varied in this run; 0: not located"},
    {"name": "unrepeated", "unit": "text", "labels": ["a", "b", "rail"], "informational": true, "optional": true, "leader": true,
     "summary": "a pair that was slow once and not when it was measured again"},
    {"name": "rounds", "unit": "count", "direction": "lower", "informational": true, "summary": "rounds that were held"},
    {"name": "pair_coverage", "unit": "ratio", "direction": "higher", "informational": true,
     "summary": "share of all pairs of the group that were measured; what is slow between two others only is not seen: coverage = all measures every pair"},
    {"name": "smallest_detectable_loss", "unit": "ratio", "direction": "lower", "informational": true,
     "summary": "share of the bandwidth that a pair must lose to be told from the noise of this run 99 times of 100; where noise hides half of it, the test ends with an error"},
    {"name": "confirmations", "unit": "count", "direction": "lower", "informational": true,
     "summary": "times at which what is named was measured again, beside healthy pairs"},
    {"name": "looks_again", "unit": "count", "direction": "lower", "informational": true,
     "summary": "measurements of pairs once more within their round, because their figures left doubt"},
    {"name": "implementation", "unit": "text", "informational": true, "summary": "what carried the messages"}
  ]
}
]})json";

}  // namespace muster::ring
