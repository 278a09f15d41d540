// SPDX-License-Identifier: Apache-2.0
// Simulated copies: tags move, and the clock of the device advances by bytes over bandwidth.
#include "kernels/sim/sim_copies.h"

#include <algorithm>

#include "kernels/checks/operands.h"
#include "kernels/sim/sim_network.h"

namespace muster::sim {
namespace {

constexpr uint64_t kUnwrittenTag = 0x756e7772;  // "unwr"
constexpr int kNearDistance = 10;               // as ACPI counts
constexpr int kFarDistance = 21;

class SimCopies : public Copies {
 public:
  SimCopies(SimDevice& device, int nodeRank) : device_(device), nodeRank_(nodeRank) {}

  Result<std::vector<HostNode>> hostNodes() override {
    std::vector<HostNode> nodes;
    for (int node = 0; node < figures().numaNodes; ++node)
      nodes.push_back({node, node == ownNode() ? kNearDistance : kFarDistance});
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const HostNode& a, const HostNode& b) { return a.distance < b.distance; });
    return nodes;
  }

  Result<std::unique_ptr<Buffer>> allocatePinned(uint64_t bytes, int node) override {
    if (bytes == 0 || node < 0 || node >= figures().numaNodes)
      return Error{ErrorCode::kUsage, "the simulated host has no memory on NUMA node " + std::to_string(node),
                   device_.info().id};
    auto buffer = std::make_unique<SimBuffer>(bytes, hostUsed_, -1 - node);
    buffer->content.tag = kUnwrittenTag;
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Status fillPinned(Buffer& buffer, uint64_t pattern) override {
    static_cast<SimBuffer&>(buffer).content = patternContent(pattern);
    return {};
  }

  Result<Mismatch> checkPinned(const Buffer& buffer, uint64_t pattern) override {
    return checkContent(static_cast<const SimBuffer&>(buffer).content, pattern, buffer.bytes());
  }

  Result<bool> connect(Device& peer) override {
    if (figures().peer <= 0 && figures().pciePeer <= 0)
      return Error{ErrorCode::kUnsupported,
                   "the scenario has neither `peer` nor `pcie_peer` in [figures.copies]", device_.info().id};
    return peer.info().id != device_.info().id;
  }

  Status copy(const std::vector<Transfer>& transfers, CopyEngine engine) override {
    if (transfers.empty()) return Error{ErrorCode::kUsage, "there is nothing to copy", device_.info().id};
    double bytes = 0;
    for (const Transfer& transfer : transfers) {
      MUSTER_CHECK_OK(sameSize(*transfer.to, *transfer.from, device_.info().id));
      bytes += static_cast<double>(transfer.to->bytes());
    }
    const bool byHost = placeOf(*transfers.front().to) < 0 || placeOf(*transfers.front().from) < 0;
    const Work work = byHost ? Work::kHostCopy : Work::kPeerCopy;
    const double share = engine == CopyEngine::kKernel ? figures().kernel : 1;
    const double rate = share * (byHost ? hostRate(transfers) : peerRate(transfers));
    MUSTER_CHECK_OK(device_.perform(work, bytes / rate));
    for (const Transfer& transfer : transfers) move(transfer, work);
    return {};
  }

 private:
  [[nodiscard]] const CopyFigures& figures() const { return device_.unit().scenario->copies; }
  static int placeOf(const Buffer& buffer) { return static_cast<const SimBuffer&>(buffer).place(); }
  [[nodiscard]] int ownNode() const { return numaNodeOf(*device_.unit().scenario, device_.unit().place); }

  [[nodiscard]] double hostRate(const std::vector<Transfer>& transfers) const {
    double share = 1;
    for (const Transfer& transfer : transfers) {
      const int place = std::min(placeOf(*transfer.to), placeOf(*transfer.from));
      if (-1 - place != ownNode()) share = figures().far;
    }
    if (transfers.size() > 1) return share * figures().hostBidirectional;
    return share * (placeOf(*transfers.front().to) < 0 ? figures().deviceToHost : figures().hostToDevice);
  }

  /// The slowest of the links in use; a flawed link is slow both ways.
  [[nodiscard]] double peerRate(const std::vector<Transfer>& transfers) const {
    double share = 1;
    for (const Transfer& transfer : transfers)
      share = std::min(share, linkShare(device_.unit().scenario->faults, {nodeRank_, placeOf(*transfer.from)},
                                        {nodeRank_, placeOf(*transfer.to)}, device_.now()));
    const int a = placeOf(*transfers.front().from), b = placeOf(*transfers.front().to);
    const bool both = transfers.size() > 1;
    if (figures().overNvlink(a, b)) return share * (both ? figures().peerBidirectional : figures().peer);
    if (peerLink(*device_.unit().scenario, a, b) == "pcie_system") share *= figures().far;
    return share * (both ? figures().pciePeerBidirectional : figures().pciePeer);
  }

  void move(const Transfer& transfer, Work work) {
    Content& to = static_cast<SimBuffer&>(*transfer.to).content;
    to = static_cast<const SimBuffer&>(*transfer.from).content;
    if (const Flaw flaw = device_.flawOfNext(work, transfer.to->bytes()); flaw.there) to.flaw = flaw;
  }

  SimDevice& device_;
  int nodeRank_;
  std::shared_ptr<uint64_t> hostUsed_ = std::make_shared<uint64_t>(0);
};

}  // namespace

int numaNodeOf(const Scenario& scenario, int place) {
  return place * scenario.copies.numaNodes / std::max(1, scenario.model.count);
}

std::string peerLink(const Scenario& scenario, int a, int b) {
  if (scenario.copies.overNvlink(a, b)) return "nvlink";
  return numaNodeOf(scenario, a) == numaNodeOf(scenario, b) ? "pcie_host" : "pcie_system";
}

Result<std::unique_ptr<Copies>> makeCopies(SimDevice& device, int nodeRank) {
  if (device.unit().scenario->copies.hostToDevice <= 0)
    return Error{ErrorCode::kUnsupported, "the scenario has no [figures.copies]", device.info().id};
  return std::unique_ptr<Copies>(std::make_unique<SimCopies>(device, nodeRank));
}

}  // namespace muster::sim
