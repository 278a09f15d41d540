// SPDX-License-Identifier: Apache-2.0
// Reads planted faults. The format is described in plans/README.md.
#include "kernels/sim/scenario/fault_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/core/text.h"

namespace muster::sim {
namespace {

constexpr Range kNodes = {0, 1e6};

/// "1 node", "2 nodes".
std::string counted(int count, const std::string& what) {
  const std::string many = what == "leaf" ? "leaves" : what + "s";
  return fmt::format("{} {}", count, count == 1 ? what : many);
}

/// Reads one [[fault]]; each kind takes only its own keys.
class FaultReader {
 public:
  FaultReader(TomlTable table, const Scenario& scenario, int nodes)
      : table_(std::move(table)), model_(scenario.model), network_(scenario.network), nodes_(nodes) {}

  Fault read() {
    table_.require("kind");
    readNode("node", fault_.node);
    table_.variants("kind",
                    {"slow", "throttle", "ecc", "corruption", "hang", "crash", "missing", "xid", "fabric",
                     "slow_link", "slow_nic", "flapping_nic", "slow_uplink", "sxid"},
                    [&](const std::string& kind) {
                      if (!readNetworkKind(kind)) readDeviceKind(kind);
                      table_.finish();
                    });
    return fault_;
  }

 private:
  bool readDeviceKind(const std::string& kind) {
    table_.require("device");
    table_.integer("device", places(), fault_.device);
    if (kind == "slow") return slow(FaultKind::kSlow);
    if (kind == "throttle") return throttle();
    if (kind == "ecc") return ecc();
    if (kind == "corruption") return corruption();
    if (kind == "hang") return stop(FaultKind::kHang);
    if (kind == "crash") return stop(FaultKind::kCrash);
    if (kind == "xid") return xid(FaultKind::kXid, "xid", 1000);
    if (kind == "fabric") return fabric();
    return missing();
  }

  /// Faults of links, NICs and switches, which belong to no device.
  bool readNetworkKind(const std::string& kind) {
    if (kind == "slow_link") return slowLink();
    if (kind == "slow_nic") return slowNic();
    if (kind == "flapping_nic") return flappingNic();
    if (kind == "sxid") return sxid();
    return kind == "slow_uplink" && slowUplink();
  }

  bool slowLink() {
    fault_.kind = FaultKind::kSlowLink;
    fault_.device = -1;
    table_.describeRule({{"if", schema::has("peer_node")},
                         {"then", {{"required", {"node"}}}},
                         {"else", {{"required", {"device", "peer_device"}}}}});
    if (!table_.has("peer_node")) {
      for (const char* key : {"device", "peer_device"}) table_.requireHere(key);
    } else {
      table_.requireHere("node");
    }
    readNode("peer_node", fault_.peerNode);
    table_.integer("device", places(), fault_.device);
    table_.integer("peer_device", places(), fault_.peerDevice);
    readFactor();
    readSpan();
    const bool oneNode = fault_.peerNode < 0 || fault_.peerNode == fault_.node;
    if (oneNode && fault_.device >= 0 && fault_.device == fault_.peerDevice)
      table_.complain("peer_device", "a link has two ends: `peer_device` must differ from `device`");
    return true;
  }

  void readRail() {
    table_.require("node");
    table_.integer("rail", {0, static_cast<double>((table_.describing() ? kMostRails : network_.rails) - 1)},
                   fault_.rail);
  }

  bool slowNic() {
    fault_.kind = FaultKind::kSlowNic;
    readRail();
    readFactor();
    readSpan();
    return true;
  }

  bool flappingNic() {
    fault_.kind = FaultKind::kFlappingNic;
    readRail();
    for (const char* key : {"period", "down"}) table_.require(key);
    table_.quantity("period", "s", {1e-6, kMaxTime}, fault_.period);
    table_.quantity("down", "s", {0, kMaxTime}, fault_.down);
    if (fault_.down >= fault_.period && fault_.period > 0)
      table_.complain("down",
                      "`down` must be shorter than `period`: a link that is always down does not flap");
    readSpan();
    return true;
  }

  bool slowUplink() {
    fault_.kind = FaultKind::kSlowUplink;
    if (network_.nodesPerLeaf == 0)
      table_.complain("leaf", "a slow_uplink needs `nodes_per_leaf` in [network]");
    table_.require("leaf");
    if (table_.integer("leaf", kNodes, fault_.leaf)) checkLeaf();
    readFactor();
    readSpan();
    return true;
  }

  void readNode(const char* key, int& out) {
    if (table_.integer(key, kNodes, out)) checkFaultNode(table_, key, out, nodes_);
  }

  void checkLeaf() {
    if (nodes_ == 0 || network_.nodesPerLeaf == 0) return;
    const int leaves = (nodes_ + network_.nodesPerLeaf - 1) / network_.nodesPerLeaf;
    if (fault_.leaf >= leaves)
      table_.complain("leaf", fmt::format("this fault is on leaf {}, and the {} of this run are on {} ({} on "
                                          "each leaf); change `leaf`, or simulate more nodes with --nodes",
                                          fault_.leaf, counted(nodes_, "node"), counted(leaves, "leaf"),
                                          network_.nodesPerLeaf));
  }

  void readFactor() {
    table_.require("factor");
    table_.quantity("factor", "ratio", {0.001, 1}, fault_.factor);
  }

  void readSpan() {
    table_.quantity("from", "s", {0, kMaxTime}, fault_.from);
    table_.quantity("until", "s", {0, kMaxTime}, fault_.until);
    if (fault_.until <= fault_.from) table_.complain("until", "`until` must be later than `from`");
  }

  bool slow(FaultKind kind) {
    fault_.kind = kind;
    readFactor();
    readSpan();
    readOps();
    return true;
  }

  /// Reads a text that must be one of `allowed`, the first where the fault says nothing.
  void readChoice(const char* key, const std::vector<std::string>& allowed, std::string& out) {
    out = allowed.front();
    table_.choice(key, allowed, out);
  }

  bool throttle() {
    readChoice("reason", {"thermal", "thermal_software", "power_brake", "power_cap"}, fault_.reason);
    return slow(FaultKind::kThrottle);
  }

  bool ecc() {
    fault_.kind = FaultKind::kEcc;
    readAt();
    readChoice("memory", {"dram", "sram"}, fault_.memory);
    table_.integer("corrected", {0, 1e9}, fault_.corrected);
    table_.integer("uncorrected", {0, 1e9}, fault_.uncorrected);
    table_.flag("remap_pending", fault_.remapPending);
    table_.flag("remap_failed", fault_.remapFailed);
    table_.describeRule(schema::hasOneOf({"corrected", "uncorrected", "remap_pending", "remap_failed"}));
    if (fault_.corrected + fault_.uncorrected == 0 && !fault_.remapPending && !fault_.remapFailed)
      table_.complain("", "an ecc fault needs `corrected`, `uncorrected`, `remap_pending` or `remap_failed`");
    return true;
  }

  bool corruption() {
    fault_.kind = FaultKind::kCorruption;
    double offset = 0;
    table_.integer("every", {1, 1e9}, fault_.every);
    table_.quantity("offset", "B", {0, kMaxBytes}, offset);
    table_.integer("bit", {0, 63}, fault_.bit);
    fault_.offset = static_cast<uint64_t>(offset);
    readSpan();
    readOps();
    return true;
  }

  bool missing() {
    fault_.kind = FaultKind::kMissing;
    readAt();
    return true;
  }

  bool stop(FaultKind kind) {
    fault_.kind = kind;
    readAt();
    readOps();
    return true;
  }

  bool xid(FaultKind kind, const char* key, double most) {
    fault_.kind = kind;
    readAt();
    table_.require(key);
    table_.integer(key, {1, most}, fault_.xid);
    return true;
  }

  bool sxid() {
    table_.flag("fatal", fault_.fatal);
    return xid(FaultKind::kSxid, "sxid", 99999);
  }

  bool fabric() {
    fault_.kind = FaultKind::kFabric;
    readAt();
    table_.require("mask");
    table_.integer("mask", {1, 0xffff}, fault_.mask);
    return true;
  }

  void readAt() { table_.quantity("at", "s", {0, kMaxTime}, fault_.from); }

  void readOps() {
    std::vector<std::string> names;
    const bool given = table_.texts("ops", names);
    table_.describe("ops", schema::list(schema::choice(workNames())));
    if (!given) return;
    for (const std::string& name : names) {
      auto at = std::find(workNames().begin(), workNames().end(), name);
      if (at != workNames().end())
        fault_.ops.push_back(static_cast<Work>(at - workNames().begin()));
      else
        table_.complain("ops", fmt::format("there is no work \"{}\"{}; expected some of {}", printable(name),
                                           didYouMean(name, workNames()), join(workNames(), ", ")));
    }
  }

  /// Devices of a node. A schema does not know how many there are.
  [[nodiscard]] Range places() const {
    return {0, static_cast<double>((table_.describing() ? kMostDevices : model_.count) - 1)};
  }

  TomlTable table_;
  const Model& model_;
  const Fabric& network_;
  int nodes_;
  Fault fault_;
};

}  // namespace

void checkFaultNode(TomlTable& table, const char* key, int node, int nodes) {
  if (nodes == 0 || node < nodes) return;
  table.complain(key, fmt::format("this fault is on node {}, and the run has {} (numbered from 0); change "
                                  "`{}`, or simulate more nodes with --nodes",
                                  node, counted(nodes, "node"), key));
}

Fault readFault(TomlTable table, const Scenario& scenario, int nodes) {
  return FaultReader(std::move(table), scenario, nodes).read();
}

}  // namespace muster::sim
