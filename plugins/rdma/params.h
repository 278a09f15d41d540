// SPDX-License-Identifier: Apache-2.0
// The parameters of this plugin's tests.
#pragma once

#include "kernels/interfaces/rdma.h"
#include "plugins/sdk/params.h"

namespace muster::rdma {

/// What both tests have.
struct CommonParams {
  sdk::Names hcas;
  RdmaTransfer transfer;  ///< a bandwidth run, its port still open
  double engineTimeout = 0;

  void declareCommon(sdk::ParamTable& param) {
    param("hcas", hcas, {"all"}, "devices (mlx5_0) or ports (mlx5_0/1) to use; all: every port of the node");
    param("size", transfer.bytes, "B", "1 MiB", {"2 B", "1 GiB"}, "message size of the bandwidth runs");
    param("seconds", transfer.seconds, 2, {1, 3600}, "length of a bandwidth run");
    param("queue_pairs", transfer.queuePairs, 1, {1, 1024}, "queue pairs of a bandwidth run");
    param("gid_index", transfer.gidIndex, -1, {-1, 255}, "GID to use (RoCE); -1: the engine's choice");
    param("service_level", transfer.serviceLevel, 0, {0, 15},
          "InfiniBand service level or RoCE priority of all queue pairs");
    param("traffic_class", transfer.trafficClass, -1, {-1, 255}, "traffic class (RoCE); -1: not set");
    param("engine_timeout", engineTimeout, "s", "30s", {"1s", "24h"},
          "timeout of one perftest run, in addition to its duration");
  }
  Status complete() {
    transfer.timeout = engineTimeout + transfer.seconds;
    return {};
  }
};

struct PerftestParams : CommonParams {
  bool onGpu = false;
  int samples = 0;
  uint64_t latencySize = 0;
  int latencyIterations = 0;
  bool bothWays = false;
  std::string interface;

  void declare(sdk::ParamTable& param) {
    const auto isGpu = [](const std::string& place) { return place == "gpu"; };
    param("memory", onGpu, "host", {"host", "gpu"}, isGpu,
          "buffer location; gpu requires a perftest built with CUDA");
    param("samples", samples, 3, {1, 1000}, "runs of each kind on each port");
    param("latency_size", latencySize, "B", "2 B", {"1 B", "1 MiB"}, "message size of the latency runs");
    param("latency_iterations", latencyIterations, 10000, {5, 10000000},
          "messages exchanged in a latency run");
    param("both_ways", bothWays, false, "also measure both directions at once (sum)");
    param("interface", interface, "",
          "network interface for the IPv4 control connection; empty: the host name");
    declareCommon(param);
  }
  /// A latency run, its port still open.
  [[nodiscard]] RdmaTransfer latency() const {
    RdmaTransfer latency = transfer;
    latency.method = RdmaMethod::kSendLatency;
    latency.queuePairs = 1;
    latency.bytes = latencySize;
    latency.iterations = latencyIterations;
    return latency;
  }
};

struct CountersParams : CommonParams {
  double duration = 0;
  bool traffic = true;

  void declare(sdk::ParamTable& param) {
    param("duration", duration, "s", "10s", {"0s", "24h"}, "time between the two readings of the counters");
    param("traffic", traffic, true, "write from each port to itself meanwhile, one port at a time");
    declareCommon(param);
  }
};

}  // namespace muster::rdma
