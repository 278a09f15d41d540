// SPDX-License-Identifier: Apache-2.0
// First-order model of collectives: a latency, and bytes over the slowest link on the way.
#include "kernels/sim/sim_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "kernels/sim/chance.h"

namespace muster::sim {
namespace {

constexpr double kUnbound = std::numeric_limits<double>::infinity();
constexpr double kInstant = 1e-9;  ///< seconds: what rounding may make of none

bool isEither(int wanted, int a, int b) {
  return wanted == a || wanted == b;
}

/// -1 in a fault stands for any.
bool matches(int wanted, int actual) {
  return wanted < 0 || wanted == actual;
}

bool joins(const Fault& link, const GroupMember& a, const GroupMember& b) {
  const auto isEnd = [](int node, int device, const GroupMember& m) {
    return matches(node, m.node) && matches(device, m.device);
  };
  const int otherNode = link.peerNode < 0 ? link.node : link.peerNode;
  if (link.peerNode < 0 && a.node != b.node) return false;  // a link inside of each node that it is on
  return (isEnd(link.node, link.device, a) && isEnd(otherNode, link.peerDevice, b)) ||
         (isEnd(link.node, link.device, b) && isEnd(otherNode, link.peerDevice, a));
}

bool flaps(const Fault& fault, int node, int rail) {
  return fault.kind == FaultKind::kFlappingNic && fault.node == node && matches(fault.rail, rail);
}

/// Seconds from `at` until this flapping NIC is up again; 0: it is.
double downFor(const Fault& fault, double at) {
  if (!fault.isOn(at)) return 0;
  const double phase = std::fmod(at - fault.from, fault.period);
  return std::max(0.0, std::min(fault.down - phase, fault.until - at));
}

/// When it goes down next, if it is up at `at`.
double nextDown(const Fault& fault, double at) {
  if (at < fault.from) return fault.from;
  const double next = at + fault.period - std::fmod(at - fault.from, fault.period);
  return next < fault.until ? next : kUnbound;
}

}  // namespace

double linkShare(const std::vector<Fault>& faults, const GroupMember& a, const GroupMember& b, double at) {
  double share = 1;
  for (const Fault& fault : faults)
    if (fault.kind == FaultKind::kSlowLink && fault.isOn(at) && joins(fault, a, b)) share *= fault.factor;
  return share;
}

double uplinkShare(const std::vector<Fault>& faults, int nodesPerLeaf, int a, int b, double at) {
  double share = 1;
  for (const Fault& fault : faults)
    if (fault.kind == FaultKind::kSlowUplink && nodesPerLeaf > 0 && fault.isOn(at) &&
        a / nodesPerLeaf != b / nodesPerLeaf && isEither(fault.leaf, a / nodesPerLeaf, b / nodesPerLeaf))
      share *= fault.factor;
  return share;
}

double nicShare(const std::vector<Fault>& faults, int node, int rail, double at) {
  double share = 1;
  for (const Fault& fault : faults)
    if (fault.kind == FaultKind::kSlowNic && fault.isOn(at) && fault.node == node &&
        matches(fault.rail, rail))
      share *= fault.factor;
  return share;
}

double hcaShare(const std::vector<RdmaFault>& faults, int node, int hca, double at) {
  double share = 1;
  for (const RdmaFault& fault : faults)
    if (fault.kind == RdmaFaultKind::kSlow && fault.concerns(node, hca) && at >= fault.from &&
        at < fault.until)
      share *= fault.factor;
  return share;
}

double timesDown(const std::vector<Fault>& faults, int node, int rail, double at) {
  double times = 0;
  for (const Fault& fault : faults)
    if (flaps(fault, node, rail) && fault.down > 0 && at >= fault.from)
      times += std::floor((at < fault.until ? at - fault.from : fault.until - fault.from - kInstant) /
                          fault.period) +
               1;
  return times;
}

SimNetwork::SimNetwork(std::shared_ptr<const Scenario> scenario, uint64_t key,
                       std::vector<GroupMember> members, bool overNics)
    : scenario_(std::move(scenario)), key_(key), members_(std::move(members)), overNics_(overNics) {
  std::map<int, int> share;
  if (!overNics_)
    for (const GroupMember& m : members_) largestShare_ = std::max(largestShare_, ++share[m.node]);
  nodes_ = overNics_ ? size() : static_cast<int>(share.size());
  std::copy_if(scenario_->faults.begin(), scenario_->faults.end(), std::back_inserter(networkFaults_),
               [](const Fault& fault) { return fault.isOfNetwork(); });
  for (const Fault& fault : scenario_->faults) changes_.insert(changes_.end(), {fault.from, fault.until});
  for (const RdmaFault& fault : scenario_->rdma.faults)
    changes_.insert(changes_.end(), {fault.from, fault.until});
  std::sort(changes_.begin(), changes_.end());
  sortIntoClasses();
  for (const Fault& fault : networkFaults_)
    if (isUsed(fault, members_)) flapping_.push_back(fault);
}

/// What faults can tell members apart by: place, node and leaf, as far as a fault names them. Members of one
/// class have the same faults, and the rate between two members is one of their classes and of whether they
/// are on the same node.
void SimNetwork::sortIntoClasses() {
  std::set<int> nodes, leaves;
  for (const Fault& fault : scenario_->faults) {
    nodes.insert({fault.node, fault.peerNode});
    if (fault.kind == FaultKind::kSlowUplink) leaves.insert(fault.leaf);
  }
  const int perLeaf = scenario_->network.nodesPerLeaf;
  std::map<std::pair<int, int>, std::map<int, int>> classes;  // node and leaf -> device -> class
  std::map<int, int>* ofNode = nullptr;
  for (int rank = 0; rank < size(); ++rank) {
    const auto& [node, device] = member(rank);
    if (rank == 0 || !sameNode(rank, rank - 1)) {
      const bool isLeafNamed = perLeaf > 0 && leaves.count(node / perLeaf) > 0;
      ofNode = &classes[{nodes.count(node) > 0 ? node : -1, isLeafNamed ? node / perLeaf : -1}];
    }
    const auto [at, isNew] = ofNode->try_emplace(device, static_cast<int>(classFaults_.size()));
    if (isNew) classFaults_.emplace_back(scenario_->faults, device, node);
    classes_.push_back(at->second);
    const auto& faults = faultsOf(rank).all();
    if (std::any_of(faults.begin(), faults.end(),
                    [](const Fault& f) { return f.kind == FaultKind::kCorruption; }))
      corrupting_.push_back(rank);
  }
}

double SimNetwork::deviceSpeed(int rank, double at) const {
  return faultsOf(rank).speed(Work::kCollective, at);
}

double SimNetwork::linkRate(int from, int to, double at) const {
  const Fabric& network = scenario_->network;
  const GroupMember& a = member(from);
  const GroupMember& b = member(to);
  const double ends =
      std::min(deviceSpeed(from, at), deviceSpeed(to, at)) * linkShare(networkFaults_, a, b, at);
  if (sameNode(from, to)) return network.intraBandwidth * ends;
  const auto nic = [&](const GroupMember& m) {
    const int rail = m.device % network.rails;
    return nicShare(networkFaults_, m.node, rail, at) * hcaShare(scenario_->rdma.faults, m.node, rail, at);
  };
  const double rate = network.railBandwidth * ends * std::min(nic(a), nic(b));
  return rate * uplinkShare(networkFaults_, network.nodesPerLeaf, a.node, b.node, at);
}

/// All rails between neighbouring nodes together, each as fast as the slowest: their rings wait for each
/// other.
double SimNetwork::betweenNodes(double at) const {
  double slowest = kUnbound;
  for (int rank = 0; rank < size(); ++rank) {
    // On its rail each rank talks to its counterpart on the next node.
    const int next = (rank + largestShare_) % size();
    if (!sameNode(rank, next)) slowest = std::min(slowest, linkRate(rank, next, at));
  }
  return slowest * std::min(largestShare_, scenario_->network.rails);
}

/// Bus bandwidth of a large collective.
double SimNetwork::busRate(const CollectiveSpec& spec, double at) const {
  const bool allToAll = spec.op == CollectiveOp::kAllToAll;
  const auto span = std::upper_bound(changes_.begin(), changes_.end(), at) - changes_.begin();
  const auto [rate, isNew] = rates_.try_emplace({allToAll, static_cast<size_t>(span)});
  if (isNew) rate->second = slowestLink(allToAll, at);
  return rate->second;
}

double SimNetwork::slowestLink(bool allToAll, double at) const {
  const double n = size();
  if (allToAll) {
    const auto [within, between] = slowestPairs(at);
    // Each rank sends most of its data out through its own NIC.
    return nodes() == 1 ? within : std::min(within, between * (n - 1) / (n - largestShare_));
  }
  double rate = kUnbound;
  for (int rank = 0; rank < size(); ++rank) {
    const int next = (rank + 1) % size();
    if (sameNode(rank, next)) rate = std::min(rate, linkRate(rank, next, at));
  }
  return nodes() == 1 ? rate : std::min(rate, betweenNodes(at));
}

/// The slowest of all pairs on one node, and of all between two. Nodes whose members are of the same classes
/// are alike, so that two of each kind have all the rates that there are.
std::pair<double, double> SimNetwork::slowestPairs(double at) const {
  std::map<int, std::vector<int>> ranksOf;  // by node
  for (int rank = 0; rank < size(); ++rank) ranksOf[member(rank).node].push_back(rank);
  std::map<std::vector<int>, int> alike;
  std::vector<int> some;
  for (const auto& [node, ranks] : ranksOf) {
    std::vector<int> kind;
    for (const int rank : ranks) kind.push_back(classes_[static_cast<size_t>(rank)]);
    if (++alike[kind] <= 2) some.insert(some.end(), ranks.begin(), ranks.end());
  }
  double within = kUnbound, between = kUnbound;
  for (const int rank : some)
    for (const int peer : some) {
      if (peer == rank) continue;
      double& slowest = sameNode(rank, peer) ? within : between;
      slowest = std::min(slowest, linkRate(rank, peer, at));
    }
  return {within, between};
}

double SimNetwork::latency(const CollectiveSpec& spec) const {
  const Fabric& network = scenario_->network;
  const double hops = nodes() > 1 ? std::ceil(std::log2(nodes())) : 0;
  const double once = network.intraLatency + hops * network.interLatency;
  return spec.op == CollectiveOp::kAllReduce ? 2 * once : once;
}

bool SimNetwork::isUsed(const Fault& nic, const std::vector<GroupMember>& users) const {
  return nic.kind == FaultKind::kFlappingNic &&
         std::any_of(users.begin(), users.end(), [&](const GroupMember& m) {
           return flaps(nic, m.node, m.device % scenario_->network.rails);
         });
}

double SimNetwork::withOutages(double seconds, double at, const std::vector<Fault>& flapping) {
  if (flapping.empty()) return seconds;
  double now = at;
  for (double left = seconds; left > 0;) {
    double wait = 0;
    double next = kUnbound;
    for (const Fault& fault : flapping) wait = std::max(wait, downFor(fault, now));
    if (wait > kInstant) {
      now += wait;
      continue;
    }
    for (const Fault& fault : flapping) next = std::min(next, nextDown(fault, now));
    const double moved = std::min(left, next - now);
    now += std::max(moved, kInstant);
    left -= moved;
  }
  return now - at;
}

double SimNetwork::noise(uint64_t sequence) const {
  return 1 + scenario_->network.noise * normal(mix(key_, sequence));
}

double SimNetwork::collectiveSeconds(const CollectiveSpec& spec, double at, uint64_t sequence) const {
  const auto bytes = static_cast<double>(spec.bytes(size()));
  // A group of one copies.
  if (size() == 1)
    return scenario_->figures.overhead + 2 * bytes / scenario_->figures.memory.at(MemoryOp::kCopy);
  const double moving = bytes * spec.busFactor(size()) / busRate(spec, at);
  const double seconds = (latency(spec) + moving) * noise(sequence);
  return nodes() == 1 ? seconds : withOutages(seconds, at, flapping_);
}

double SimNetwork::exchangeSeconds(int a, int b, uint64_t aToB, uint64_t bToA, double at,
                                   uint64_t sequence) const {
  const Fabric& network = scenario_->network;
  // A pair exchanges many times in a row, and is as fast one way as the other.
  if (a != lastPair_.a || b != lastPair_.b || at != lastPair_.at) lastPair_ = {a, b, at, linkRate(a, b, at)};
  const double longest = static_cast<double>(std::max(aToB, bToA)) / lastPair_.rate;
  const bool within = sameNode(a, b);
  const double delay = within ? network.intraLatency / 2 : network.interLatency;
  const double seconds = (delay + longest) * noise(mix(sequence, uint64_t{1}));
  if (within || flapping_.empty()) return seconds;
  std::vector<Fault> used;
  for (const Fault& nic : flapping_)
    if (isUsed(nic, {member(a), member(b)})) used.push_back(nic);
  return withOutages(seconds, at, used);
}

bool SimNetwork::isSteadyFrom(double at) const {
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), at);
  return flapping_.empty() && (next == changes_.end() || *next == kUnbound);
}

SimNetwork::Carried SimNetwork::carriedBy(const CollectiveSpec& spec) const {
  const double wire = size() == 1 ? 0 : static_cast<double>(spec.bytes(size())) * spec.busFactor(size());
  if (nodes() == 1) return {wire, 0};
  const double inter = spec.op == CollectiveOp::kAllToAll
                           ? static_cast<double>(spec.bytes(size())) * (size() - largestShare_) / size()
                           : wire / largestShare_;
  return {wire - inter, inter};
}

int SimNetwork::corruptor(uint64_t run, double at, const Fault** fault) const {
  for (const int rank : corrupting_) {
    const Fault* found = faultsOf(rank).corruption(Work::kCollective, run, at);
    // Without `ops` a fault concerns the device's own work, not what others get from it.
    if (found == nullptr || found->ops.empty()) continue;
    *fault = found;
    return rank;
  }
  return -1;
}

}  // namespace muster::sim
