// SPDX-License-Identifier: Apache-2.0
// Test "perftest": bandwidth and latency of each port, to itself or to the same rail of the neighbour nodes.
#include <fmt/format.h>

#include <functional>

#include "plugins/rdma/params.h"
#include "plugins/rdma/rails.h"
#include "plugins/rdma/tests.h"

namespace muster::rdma {
namespace {

/// One run of the engine; `run` numbers it among all runs of the case.
using Transfer = std::function<Result<RdmaFigure>(const RdmaTransfer& transfer, int run)>;

/// The samples of one port on one path.
struct Samples {
  std::vector<double> bandwidth;
  std::vector<double> bothWays;
  std::vector<double> latency;
  std::vector<double> latencyP99;
};

/// What runs on one port.
class PortRuns {
 public:
  PortRuns(const PerftestParams& params, const RdmaPort& port, int gpu) : params_(params) {
    bandwidth_ = params.transfer;
    latency_ = params.latency();
    for (RdmaTransfer* transfer : {&bandwidth_, &latency_}) {
      transfer->device = port.device;
      transfer->port = port.port;
      transfer->gpu = gpu;
    }
  }

  Result<Samples> sample(const Transfer& transfer) {
    Samples samples;
    for (int i = 0; i < params_.samples; ++i) {
      MUSTER_TRY(const RdmaFigure moved, transfer(bandwidth_, ++run_));
      samples.bandwidth.push_back(moved.bandwidth);
      MUSTER_TRY(const RdmaFigure answered, transfer(latency_, ++run_));
      samples.latency.push_back(answered.latency);
      samples.latencyP99.push_back(answered.latencyP99);
      if (!params_.bothWays) continue;
      RdmaTransfer both = bandwidth_;
      both.bothWays = true;
      MUSTER_TRY(const RdmaFigure sum, transfer(both, ++run_));
      samples.bothWays.push_back(sum.bandwidth);
    }
    return samples;
  }

 private:
  const PerftestParams& params_;
  RdmaTransfer bandwidth_;
  RdmaTransfer latency_;
  int run_ = 0;
};

Status report(const Site& site, const RdmaPort& port, const Samples& samples, sdk::Host::LabelList labels,
              double now) {
  labels.emplace_back("port", port.name());
  const sdk::Host& host = site.host;
  MUSTER_CHECK_OK(host.measurement("write_bandwidth", "B/s", samples.bandwidth, labels, now));
  if (port.bytesPerSecond > 0) {
    std::vector<double> shares;
    for (double rate : samples.bandwidth) shares.push_back(rate / port.bytesPerSecond);
    MUSTER_CHECK_OK(host.measurement("line_rate_share", "ratio", shares, labels, now));
  }
  if (!samples.bothWays.empty())
    MUSTER_CHECK_OK(host.measurement("write_bandwidth_both_ways", "B/s", samples.bothWays, labels, now));
  MUSTER_CHECK_OK(host.measurement("send_latency", "s", samples.latency, labels, now));
  return host.measurement("send_latency_p99", "s", samples.latencyP99, labels, now);
}

/// One case: its ports, its engine, and what went wrong so far.
class PerftestCase {
 public:
  PerftestCase(Site& site, const PerftestParams& params, std::string name, Rdma& rdma,
               std::vector<RdmaPort> ports)
      : site_(site), params_(params), name_(std::move(name)), rdma_(rdma), ports_(std::move(ports)) {}

  Status run() {
    MUSTER_CHECK_OK(findGpus());
    MUSTER_CHECK_OK(reportNode());
    MUSTER_CHECK_OK(site_.clusterScope ? pairs() : loopbacks());
    return failures_.status();
  }

 private:
  /// GPUs whose memory can hold buffers, where the case wants them to.
  Status findGpus() {
    if (!params_.onGpu) return {};
    MUSTER_TRY(Inventory * inventory, site_.backend->inventory());
    MUSTER_TRY(const std::vector<DeviceInfo> devices, inventory->devices());
    std::vector<DeviceInfo> gpus;
    for (const DeviceInfo& device : devices)
      if (device.kind == "gpu") gpus.push_back(device);
    if (gpus.empty())
      return Error{ErrorCode::kUnsupported,
                   "backend " + site_.backend->name() + " has no GPU whose memory could hold the buffers",
                   ""};
    MUSTER_TRY(const Json node, inventory->node());
    gpus_ = nearestGpus(ports_, gpus, node.value("topology", Json::array()));
    return {};
  }

  /// -1 for host memory.
  [[nodiscard]] int gpuFor(size_t index) const { return gpus_.empty() ? -1 : gpus_[index].index; }

  /// Ranks of one node share its ports among them.
  [[nodiscard]] bool isOurs(size_t index) const {
    return static_cast<int>(index) % site_.localSize == site_.localRank;
  }

  Status reportNode() {
    MUSTER_TRY(const std::string engine, rdma_.engine(RdmaMethod::kWriteBandwidth));
    MUSTER_CHECK_OK(site_.host.fact("engine", engine));
    const double now = rdma_.now();
    MUSTER_CHECK_OK(
        site_.host.measurement("port_count", "count", {static_cast<double>(ports_.size())}, {}, now));
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (!isOurs(i)) continue;
      MUSTER_CHECK_OK(reportPort(site_, ports_[i], now));
      if (!gpus_.empty())
        MUSTER_CHECK_OK(
            site_.host.fact("gpu", gpus_[i].id + ", " + gpus_[i].distance, {{"port", ports_[i].name()}}));
    }
    return {};
  }

  Status loopbacks() {
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (!isOurs(i) || !ports_[i].active()) continue;
      site_.host.progress(static_cast<double>(i) / static_cast<double>(ports_.size()),
                          ports_[i].name() + " to itself");
      PortRuns runs(params_, ports_[i], gpuFor(i));
      MUSTER_CHECK_OK(
          keep(i, runs.sample([this](const RdmaTransfer& transfer, int) { return rdma_.loopback(transfer); }),
               {{"path", "loopback"}}));
      if (site_.host.cancelled())
        return Error{ErrorCode::kTimeout, "cancelled between two ports", ports_[i].name()};
    }
    return {};
  }

  Status pairs() {
    if (site_.nodeCount < 2)
      return Error{ErrorCode::kUnsupported, "pairs need two nodes, and this run has one; use scope \"node\"",
                   ""};
    if (!site_.virtualTime) {
      MUSTER_CHECK_OK(compareRails(site_, name_, ports_.size(), params_.transfer.timeout));
      MUSTER_TRY(address_, ownAddress(params_.interface));
    }
    const auto rounds = ringRounds(site_.nodeCount);
    for (size_t round = 0; round < rounds.size(); ++round) {
      MUSTER_CHECK_OK(meet(round));
      for (const NodePair& pair : rounds[round])
        if (pair.server == site_.nodeRank || pair.client == site_.nodeRank) MUSTER_CHECK_OK(runPair(pair));
    }
    return {};
  }

  /// All nodes begin a round together: a pair that still runs would share its links with the next.
  Status meet(size_t round) {
    if (site_.virtualTime) return {};
    const double patience =
        params_.transfer.timeout * 4 * params_.samples * static_cast<double>(ports_.size());
    return sdk::HostStore(site_.host).barrier(fmt::format("{}/round{}", name_, round), patience);
  }

  Status runPair(const NodePair& pair) {
    const bool serves = pair.server == site_.nodeRank;
    const RdmaPeer peer{serves ? pair.client : pair.server, !serves};
    for (size_t rail = 0; rail < ports_.size(); ++rail) {
      if (!isOurs(rail)) continue;
      site_.host.progress(-1, fmt::format("{} with node {}", ports_[rail].name(), peer.node));
      PortRuns runs(params_, ports_[rail], gpuFor(rail));
      auto samples = runs.sample([&](const RdmaTransfer& transfer, int run) {
        StoreMeeting meeting(site_.host,
                             fmt::format("{}/{}-{}/rail{}/{}", name_, pair.server, pair.client, rail, run),
                             address_);
        return rdma_.pair(transfer, peer, meeting);
      });
      // The other end may be at fault: the fleet reads which one it was (reports/fleet/blame/culprit.cpp,
      // peerNode).
      if (!samples.ok()) samples = Error(samples.error()).context(fmt::format("with node {}", peer.node));
      // The client has the figures; what kept the server from serving is an error of its own.
      if (!serves || !samples.ok())
        MUSTER_CHECK_OK(
            keep(rail, std::move(samples), {{"path", "pair"}, {"peer", std::to_string(peer.node)}}));
    }
    return {};
  }

  Status keep(size_t index, Result<Samples> samples, const sdk::Host::LabelList& labels) {
    if (samples.ok()) return report(site_, ports_[index], *samples, labels, rdma_.now());
    failures_.add(samples.error());  // the other ports are still worth measuring
    return {};
  }

  Site& site_;
  const PerftestParams& params_;
  std::string name_;
  Rdma& rdma_;
  std::vector<RdmaPort> ports_;
  std::vector<NearGpu> gpus_;  ///< by port; empty for host memory
  std::string address_;
  Failures failures_;
};

}  // namespace

Status runPerftest(Site& site, const Json& json, const std::string& caseName) {
  MUSTER_TRY(const PerftestParams params, sdk::readParams<PerftestParams>(json));
  MUSTER_TRY(const auto rdma, site.backend->rdma(rdmaOptions(site.host)));
  MUSTER_TRY(const std::vector<RdmaPort> all, rdma->ports());
  MUSTER_TRY(std::vector<RdmaPort> ports, choosePorts(all, params.hcas));
  return PerftestCase(site, params, caseName, *rdma, std::move(ports)).run();
}

}  // namespace muster::rdma
