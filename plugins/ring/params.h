// SPDX-License-Identifier: Apache-2.0
// The parameters of a ring.
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

}  // namespace muster::ring
