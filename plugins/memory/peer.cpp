// SPDX-License-Identifier: Apache-2.0
// Test "peer": how fast a device copies to each other device of its node, one way and both ways at once.
#include <fmt/format.h>

#include "plugins/memory/copy_sampling.h"
#include "plugins/memory/tests.h"

namespace muster::memory {
namespace {

/// The other devices of the node.
Result<std::vector<std::string>> peersOf(const Bench& bench) {
  std::vector<std::string> peers = bench.devices;
  std::erase(peers, bench.device.info().id);
  if (!peers.empty()) return peers;
  return Error{ErrorCode::kUnsupported, "this node has one device, and a peer test needs two",
               bench.device.info().id};
}

/// Sources and targets on both devices.
struct Ends {
  std::unique_ptr<Device> peer;
  std::unique_ptr<Buffer> source, target;          ///< of this device
  std::unique_ptr<Buffer> peerSource, peerTarget;  ///< of the peer

  static Result<Ends> prepare(const Bench& bench, const std::string& peerId, uint64_t bytes) {
    Ends ends;
    MUSTER_TRY(ends.peer, bench.backend.open(peerId));
    MUSTER_TRY(ends.source, bench.device.allocate(bytes));
    MUSTER_TRY(ends.target, bench.device.allocate(bytes));
    MUSTER_TRY(ends.peerSource, ends.peer->allocate(bytes));
    MUSTER_TRY(ends.peerTarget, ends.peer->allocate(bytes));
    return ends;
  }
};

class PeerTest {
 public:
  PeerTest(const Bench& bench, Copies& copies, const CopyParams& params, uint64_t seed)
      : bench_(bench), copies_(copies), params_(params), seed_(seed) {}

  Status run(const std::vector<std::string>& peers) {
    Steps steps(bench_.host, peers.size() * params_.engines.size() * 2);
    for (const std::string& peer : peers) MUSTER_CHECK_OK(measurePeer(peer, steps));
    return bench_.host.measurement("nvlink_peers", "count", {nvlinkPeers_}, {}, bench_.device.now());
  }

 private:
  Status measurePeer(const std::string& id, Steps& steps) {
    steps.announce(id);  // should this process hang or die while it works with that peer
    MUSTER_TRY(Ends ends, Ends::prepare(bench_, id, params_.bytes));
    MUSTER_TRY(bool direct, copies_.connect(*ends.peer));
    MUSTER_TRY(Inventory * inventory, bench_.backend.inventory());
    MUSTER_TRY(link_, inventory->link(bench_.device.info().id, id));
    nvlinkPeers_ += link_ == "nvlink" ? 1 : 0;
    MUSTER_CHECK_OK(bench_.host.measurement("peer_access", "bool", {direct ? 1.0 : 0.0}, {{"peer", id}},
                                            bench_.device.now()));
    for (CopyEngine engine : params_.engines) {
      if (engine == CopyEngine::kKernel && !direct)
        return Error{
            ErrorCode::kUnsupported,
            fmt::format("{} and {} cannot reach each other's memory, so no kernel can copy between them; "
                        "ask for engines = [\"copy_engine\"], and check topology, ACS and IOMMU",
                        bench_.device.info().id, id),
            ""};
      for (bool both : {false, true}) MUSTER_CHECK_OK(measure(ends, id, engine, both, steps));
    }
    return bench_.host.measurement("peer_wrong_bytes", "count", {wrong_.take()}, {{"peer", id}},
                                   bench_.device.now());
  }

  Status measure(Ends& ends, const std::string& id, CopyEngine engine, bool both, Steps& steps) {
    const char* direction = both ? "bidirectional" : "unidirectional";
    const uint64_t seed = seed_++;
    MUSTER_CHECK_OK(refill(ends, seed));
    std::vector<Transfer> transfers = {{ends.peerTarget.get(), ends.source.get()}};
    if (both) transfers.push_back({ends.target.get(), ends.peerSource.get()});
    const std::string& own = bench_.device.info().id;
    SamplingOptions sampling = params_.sampling;
    sampling.check = [&]() -> Status {
      MUSTER_TRY(Mismatch there, ends.peer->checkPattern(*ends.peerTarget, randomPattern(seed, 0)));
      wrong_.add(bench_, there, fmt::format("{} to {} by {}", own, id, copyEngineName(engine)));
      if (!both) return {};
      MUSTER_TRY(Mismatch here, bench_.device.checkPattern(*ends.target, randomPattern(seed, 1)));
      wrong_.add(bench_, here, fmt::format("{} to {} by {}", id, own, copyEngineName(engine)));
      return {};
    };
    MUSTER_TRY(std::vector<double> rates, sampleCopy(bench_, copies_, transfers, engine, sampling,
                                                     steps.next(fmt::format("{} {}", id, direction))));
    return bench_.host.measurement(
        "peer_bandwidth", "B/s", rates,
        {{"peer", id}, {"link", link_}, {"direction", direction}, {"engine", copyEngineName(engine)}},
        bench_.device.now());
  }

  /// New data in the sources, other data in the targets: a copy that did nothing is found.
  Status refill(Ends& ends, uint64_t seed) {
    MUSTER_CHECK_OK(bench_.device.fillPattern(*ends.source, randomPattern(seed, 0)));
    MUSTER_CHECK_OK(ends.peer->fillPattern(*ends.peerSource, randomPattern(seed, 1)));
    MUSTER_CHECK_OK(bench_.device.fillPattern(*ends.target, randomPattern(seed, 2)));
    MUSTER_CHECK_OK(ends.peer->fillPattern(*ends.peerTarget, randomPattern(seed, 3)));
    MUSTER_CHECK_OK(ends.peer->synchronize());
    return bench_.device.synchronize();
  }

  const Bench& bench_;
  Copies& copies_;
  const CopyParams& params_;
  uint64_t seed_;
  std::string link_;  ///< to this peer
  WrongBytes wrong_;  ///< with this peer
  double nvlinkPeers_ = 0;
};

}  // namespace

Status runPeer(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(const PeerParams params, sdk::readParams<PeerParams>(json));
  MUSTER_TRY(std::unique_ptr<Copies> copies, bench.backend.copies(bench.device));
  MUSTER_TRY(std::vector<std::string> peers, peersOf(bench));
  PeerTest test(bench, *copies, params, seed);
  return inTurn(bench, params.turnTimeout, [&] { return test.run(peers); });
}

}  // namespace muster::memory
