// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a simulated node.
#include "kernels/sim/sim_rdma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/sim/chance.h"
#include "kernels/sim/sim_network.h"
#include "runner/core/text.h"

namespace muster::sim {
namespace {

/// Whether the link is down at some moment from `begin` to `end`.
bool isDown(const RdmaModel& model, int node, int hca, double begin, double end) {
  return std::any_of(model.faults.begin(), model.faults.end(), [&](const RdmaFault& fault) {
    return fault.kind == RdmaFaultKind::kLinkDown && fault.concerns(node, hca) && begin < fault.until &&
           end >= fault.from;
  });
}

PcieLink pcieLink(const RdmaModel& model, int node, int hca) {
  constexpr std::array<double, kHcaGeneration> kSpeeds = {2.5, 5, 8, 16, 32};  // GT/s by generation
  PcieLink link{kHcaLanes, kHcaLanes, kSpeeds.back(), kSpeeds.back()};
  for (const RdmaFault& fault : model.faults)
    if (fault.kind == RdmaFaultKind::kPcie && fault.concerns(node, hca)) {
      link.lanes = fault.lanes;
      link.speed = kSpeeds[static_cast<size_t>(fault.generation - 1)];
    }
  return link;
}

}  // namespace

std::vector<RdmaPort> simRdmaPorts(const RdmaModel& model, int node, double at) {
  std::vector<RdmaPort> ports;
  for (int hca = 0; hca < model.count; ++hca) {
    const bool down = isDown(model, node, hca, at, at);
    RdmaPort port;
    port.device = model.prefix + std::to_string(hca);
    port.state = down ? "DOWN" : "ACTIVE";
    port.physical = down ? "Polling" : "LinkUp";
    port.layer = model.layer;
    port.driver = model.driver;
    port.rate = fmt::format("{:g} Gb/sec", model.lineRate * 8e-9);
    port.firmware = model.firmware;
    port.bytesPerSecond = model.lineRate;
    port.numaNode = hca * 2 / model.count;
    port.pcie = pcieLink(model, node, hca);
    for (const auto& [counter, value] : simRdmaCounters(model, node, hca, at).values)
      port.errors += static_cast<int64_t>(value);
    ports.push_back(std::move(port));
  }
  return ports;
}

RdmaCounters simRdmaCounters(const RdmaModel& model, int node, int hca, double at) {
  RdmaCounters counters;
  // A simulated port does not count its bytes: what other processes move at the same moment is not known
  // here.
  for (const RdmaCounter& counter : kRdmaCounters)
    if (std::string_view(counter.unit) == "count") counters.values[counter.name] = 0;
  for (const RdmaFault& fault : model.faults) {
    if (!fault.concerns(node, hca) || at < fault.from) continue;
    if (fault.kind == RdmaFaultKind::kLinkDown) ++counters.values["link_downed"];
    for (const auto& [name, count] : fault.counts) counters.values[name] += count;
  }
  return counters;
}

SimRdma::SimRdma(std::shared_ptr<const Scenario> scenario, int node, uint64_t runSeed,
                 std::shared_ptr<double> clock)
    : scenario_(std::move(scenario)), node_(node), seed_(runSeed), clock_(std::move(clock)) {}

Result<std::vector<RdmaPort>> SimRdma::ports() {
  return simRdmaPorts(scenario_->rdma, node_, *clock_);
}

Result<RdmaCounters> SimRdma::counters(const RdmaPort& port) {
  MUSTER_TRY(const int hca, hcaOf(port.device, port.port));
  return simRdmaCounters(scenario_->rdma, node_, hca, *clock_);
}

Result<int> SimRdma::hcaOf(const std::string& device, int port) const {
  for (int hca = 0; hca < scenario_->rdma.count; ++hca)
    if (device == scenario_->rdma.prefix + std::to_string(hca) && port == 1) return hca;
  return Error{ErrorCode::kNotFound,
               fmt::format("the simulated node has no RDMA port {}/{}", printable(device, 64), port), ""};
}

/// What an HCA is depends on its place alone.
double SimRdma::speed(int node, int hca) const {
  const RdmaModel& model = scenario_->rdma;
  const uint64_t key =
      mix(mix(mix(scatter(scenario_->seed), std::string_view("hca")), static_cast<uint64_t>(node)),
          static_cast<uint64_t>(hca));
  // Nothing is faster than its line.
  double speed = std::min(1 + model.spread * normal(key), model.lineRate / model.bandwidth);
  return speed * hcaShare(model.faults, node, hca, *clock_) * nicShare(scenario_->faults, node, hca, *clock_);
}

/// Links and leaf switches are slow for whatever passes them.
double SimRdma::pathShare(const Ends& ends) const {
  const std::vector<Fault>& faults = scenario_->faults;
  if (ends.client == ends.server) return 1;
  return linkShare(faults, {ends.client, ends.hca}, {ends.server, ends.hca}, *clock_) *
         uplinkShare(faults, scenario_->network.nodesPerLeaf, ends.client, ends.server, *clock_);
}

Result<RdmaFigure> SimRdma::run(const RdmaTransfer& transfer, const Ends& ends) {
  const RdmaModel& model = scenario_->rdma;
  const bool isLoopback = ends.client == ends.server;
  const bool isBandwidth = transfer.method == RdmaMethod::kWriteBandwidth;
  const double speedOfBoth =
      std::min(speed(ends.client, ends.hca), speed(ends.server, ends.hca)) * pathShare(ends);
  // Both sides of a pair draw the same chance.
  const uint64_t key = mix(mix(mix(mix(scatter(scenario_->seed ^ seed_), static_cast<uint64_t>(ends.client)),
                                   static_cast<uint64_t>(ends.server)),
                               static_cast<uint64_t>(ends.hca)),
                           *clock_);
  const double noise = 1 + model.noise * normal(key);
  RdmaFigure figure;
  double seconds = transfer.seconds;
  if (isBandwidth) {
    const double rate = isLoopback ? model.loopbackBandwidth : model.bandwidth;
    figure.bandwidth = std::min(rate * speedOfBoth * noise, model.lineRate) * (transfer.bothWays ? 2 : 1);
  } else {
    figure.latency = (isLoopback ? model.loopbackLatency : model.latency) * noise / speedOfBoth;
    figure.latencyP99 = figure.latency * 1.15;
    seconds = 2 * figure.latency * transfer.iterations;
  }
  const double begin = *clock_;
  *clock_ += seconds;
  for (const int node : {ends.client, ends.server})
    if (isDown(model, node, ends.hca, begin, *clock_))
      return Error{
          ErrorCode::kIo,
          fmt::format("{}: the link of node {} went down during the transfer", transfer.portName(), node),
          ""};
  return figure;
}

Result<RdmaFigure> SimRdma::loopback(const RdmaTransfer& transfer) {
  MUSTER_TRY(const int hca, hcaOf(transfer.device, transfer.port));
  return run(transfer, {hca, node_, node_});
}

Result<RdmaFigure> SimRdma::pair(const RdmaTransfer& transfer, const RdmaPeer& peer,
                                 RdmaMeeting& /*meeting*/) {
  MUSTER_TRY(const int hca, hcaOf(transfer.device, transfer.port));
  return run(transfer, peer.serves ? Ends{hca, node_, peer.node} : Ends{hca, peer.node, node_});
}

}  // namespace muster::sim
