// SPDX-License-Identifier: Apache-2.0
// How long transfers between simulated devices take: pure functions of scenario, seed, members and time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/interfaces/communicator.h"
#include "kernels/sim/scenario/fault.h"
#include "kernels/sim/scenario/rdma_model.h"
#include "kernels/sim/scenario/scenario.h"

namespace muster::sim {

/// Share of its speed that slow links leave between two devices.
double linkShare(const std::vector<Fault>& faults, const GroupMember& a, const GroupMember& b, double at);

/// The same of a slow uplink between two nodes' leaf switches, and of a slow NIC.
double uplinkShare(const std::vector<Fault>& faults, int nodesPerLeaf, int a, int b, double at);
double nicShare(const std::vector<Fault>& faults, int node, int rail, double at);
/// The same of a slow HCA, as [rdma] has it.
double hcaShare(const std::vector<RdmaFault>& faults, int node, int hca, double at);

/// Times that flapping took the link of a NIC down by `at`.
double timesDown(const std::vector<Fault>& faults, int node, int rail, double at);

/// One group's share of the network. `at` is virtual time, `sequence` the number of the transfer: all ranks
/// that count alike get the same times.
class SimNetwork {
 public:
  /// `overNics`: members of one node use their NICs, too, as NCCL's ranks do without P2P and shared memory.
  SimNetwork(std::shared_ptr<const Scenario> scenario, uint64_t key, std::vector<GroupMember> members,
             bool overNics = false);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] const std::vector<GroupMember>& members() const { return members_; }

  /// Seconds from the start of a collective until its last rank is done. Rings: the slowest link that they
  /// use, on the slowest rail, sets the pace.
  [[nodiscard]] double collectiveSeconds(const CollectiveSpec& spec, double at, uint64_t sequence) const;
  /// Seconds of an exchange between two ranks, both directions at once.
  [[nodiscard]] double exchangeSeconds(int a, int b, uint64_t aToB, uint64_t bToA, double at,
                                       uint64_t sequence) const;
  /// Whether no fault begins, ends or comes and goes from `at` on.
  [[nodiscard]] bool isSteadyFrom(double at) const;
  /// B/s from one rank to another, without noise.
  [[nodiscard]] double linkRate(int from, int to, double at) const;

  /// Bytes that leave a rank in a collective, by what carries them.
  struct Carried {
    double intra = 0;
    double inter = 0;
  };
  [[nodiscard]] Carried carriedBy(const CollectiveSpec& spec) const;
  /// Whether what a node has inside joins the two.
  [[nodiscard]] bool sameNode(int a, int b) const { return !overNics_ && member(a).node == member(b).node; }
  /// The rank whose fault corrupts run number `run`, which begins at `at`, with that fault; -1: none.
  [[nodiscard]] int corruptor(uint64_t run, double at, const Fault** fault) const;

 private:
  [[nodiscard]] const GroupMember& member(int rank) const { return members_[static_cast<size_t>(rank)]; }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] const FaultList& faultsOf(int rank) const {
    return classFaults_[static_cast<size_t>(classes_[static_cast<size_t>(rank)])];
  }
  void sortIntoClasses();
  [[nodiscard]] double deviceSpeed(int rank, double at) const;
  [[nodiscard]] double busRate(const CollectiveSpec& spec, double at) const;
  [[nodiscard]] double slowestLink(bool allToAll, double at) const;
  [[nodiscard]] std::pair<double, double> slowestPairs(double at) const;
  [[nodiscard]] double betweenNodes(double at) const;
  [[nodiscard]] double latency(const CollectiveSpec& spec) const;
  /// Whether the fault takes down a NIC that one of them uses.
  [[nodiscard]] bool isUsed(const Fault& nic, const std::vector<GroupMember>& users) const;
  /// Seconds from `at` until a transfer that needs `seconds` is done, if it waits while any of these NICs is
  /// down.
  [[nodiscard]] static double withOutages(double seconds, double at, const std::vector<Fault>& flapping);
  [[nodiscard]] double noise(uint64_t sequence) const;

  std::shared_ptr<const Scenario> scenario_;
  uint64_t key_;
  std::vector<GroupMember> members_;
  bool overNics_;
  std::vector<int> classes_;            ///< of each member: see sortIntoClasses()
  std::vector<FaultList> classFaults_;  ///< of the devices of each class
  std::vector<int> corrupting_;         ///< members that a fault makes wrong at some time
  std::vector<Fault> networkFaults_;
  std::vector<Fault> flapping_;  ///< those of NICs that the group uses
  std::vector<double> changes_;  ///< when a fault begins or ends: between two of them all rates stay the same
  mutable std::map<std::pair<bool, size_t>, double> rates_;  ///< slowestLink() of those spans
  struct PairRate {
    int a = -1, b = -1;
    double at = 0, rate = 0;
  };
  mutable PairRate lastPair_;
  int nodes_ = 1;
  int largestShare_ = 1;  ///< most members on one node
};

}  // namespace muster::sim
