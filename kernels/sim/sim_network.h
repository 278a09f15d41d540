// SPDX-License-Identifier: Apache-2.0
// How long transfers between simulated devices take: pure functions of scenario, seed, members and time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/communicator.h"
#include "kernels/sim/fault.h"
#include "kernels/sim/scenario.h"

namespace muster::sim {

/// Share of its speed that slow links leave between two devices.
double linkShare(const std::vector<Fault>& faults, const GroupMember& a, const GroupMember& b, double at);

/// The same of a slow uplink between two nodes' leaf switches, and of a slow NIC.
double uplinkShare(const std::vector<Fault>& faults, int nodesPerLeaf, int a, int b, double at);
double nicShare(const std::vector<Fault>& faults, int node, int rail, double at);

/// Times that flapping took the link of a NIC down by `at`.
double timesDown(const std::vector<Fault>& faults, int node, int rail, double at);

/// One group's share of the network. `at` is virtual time, `sequence` the number of the transfer: all ranks
/// that count alike get the same times.
class SimNetwork {
 public:
  SimNetwork(std::shared_ptr<const Scenario> scenario, uint64_t key, std::vector<GroupMember> members);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] const std::vector<GroupMember>& members() const { return members_; }

  /// Seconds from the start of a collective until its last rank is done. Rings: the slowest link that they
  /// use, on the slowest rail, sets the pace.
  [[nodiscard]] double collectiveSeconds(const CollectiveSpec& spec, double at, uint64_t sequence) const;
  /// Seconds of an exchange between two ranks, both directions at once.
  [[nodiscard]] double exchangeSeconds(int a, int b, uint64_t aToB, uint64_t bToA, double at,
                                       uint64_t sequence) const;
  /// B/s from one rank to another, without noise.
  [[nodiscard]] double linkRate(int from, int to, double at) const;

  /// Bytes that leave a rank in a collective, by what carries them.
  struct Carried {
    double intra = 0;
    double inter = 0;
  };
  [[nodiscard]] Carried carriedBy(const CollectiveSpec& spec) const;
  [[nodiscard]] bool sameNode(int a, int b) const { return member(a).node == member(b).node; }
  /// The rank whose fault corrupts run number `run`, which begins at `at`, with that fault; -1: none.
  [[nodiscard]] int corruptor(uint64_t run, double at, const Fault** fault) const;

 private:
  [[nodiscard]] const GroupMember& member(int rank) const { return members_[static_cast<size_t>(rank)]; }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] double deviceSpeed(int rank, double at) const;
  [[nodiscard]] double busRate(const CollectiveSpec& spec, double at) const;
  [[nodiscard]] double slowestLink(bool allToAll, double at) const;
  [[nodiscard]] double betweenNodes(double at) const;
  [[nodiscard]] double latency(const CollectiveSpec& spec) const;
  /// Seconds from `at` until a transfer that needs `seconds` is done, if it waits while a NIC that it uses is
  /// down. `users`: the members that use theirs.
  [[nodiscard]] double withOutages(double seconds, double at, const std::vector<GroupMember>& users) const;
  [[nodiscard]] double noise(uint64_t sequence) const;

  std::shared_ptr<const Scenario> scenario_;
  uint64_t key_;
  std::vector<GroupMember> members_;
  std::vector<FaultList> faults_;  ///< of each member's device
  std::vector<Fault> networkFaults_;
  std::vector<double> changes_;  ///< when a fault begins or ends: between two of them all rates stay the same
  mutable std::map<std::pair<bool, size_t>, double> rates_;  ///< slowestLink() of those spans
  int nodes_ = 1;
  int largestShare_ = 1;  ///< most members on one node
};

}  // namespace muster::sim
