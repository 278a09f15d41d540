// SPDX-License-Identifier: Apache-2.0
// Collectives in virtual time. What others do is what the scenario says of them.
#include "kernels/sim/sim_communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/checks/collective_values.h"
#include "kernels/sim/chance.h"
#include "kernels/sim/sim_inventory.h"
#include "kernels/sim/sim_network.h"
#include "runner/core/units.h"

namespace muster::sim {
namespace {

constexpr uint64_t kReducedTag = 0x72656475;   // "redu"
constexpr uint64_t kExchangeTag = 0x65786368;  // "exch"
constexpr uint64_t kToldTag = 0x746f6c64;      // "told"

/// What a group's calls share: its network, its own stream's clock, and how much it has carried.
class SimGroup {
 public:
  SimGroup(SimDevice& device, const CommunicatorSpec& spec, SimNetwork network, uint64_t key)
      : device_(device), rank_(spec.rank), network_(std::move(network)), key_(key) {}

  [[nodiscard]] SimDevice& device() const { return device_; }
  [[nodiscard]] const SimNetwork& network() const { return network_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] uint64_t key() const { return key_; }

  /// Queues a collective; its number, from 1.
  Result<uint64_t> collective(const CollectiveSpec& spec) {
    MUSTER_TRY(const double at, start());
    began_ = at;
    busyUntil_ = at + network_.collectiveSeconds(spec, at, ++sequence_);
    const auto bytes = network_.carriedBy(spec);
    carried_.intra += bytes.intra;
    carried_.inter += bytes.inter;
    return sequence_;
  }
  Status exchange(int peer, uint64_t sendBytes, uint64_t receiveBytes) {
    MUSTER_TRY(const double at, start());
    // Both ends count their exchanges with each other, and so agree on the noise.
    const auto low = static_cast<uint64_t>(std::min(rank_, peer));
    const auto high = static_cast<uint64_t>(std::max(rank_, peer));
    const uint64_t number = mix(mix(low, high), ++exchanges_[peer]);
    busyUntil_ = at + network_.exchangeSeconds(rank_, peer, sendBytes, receiveBytes, at, number);
    (network_.sameNode(rank_, peer) ? carried_.intra : carried_.inter) += static_cast<double>(sendBytes);
    return {};
  }
  /// The device waits for what is queued here.
  void join() { device_.sleep(busyUntil_ - device_.now()); }
  [[nodiscard]] const SimNetwork::Carried& carried() const { return carried_; }
  /// When the last collective began.
  [[nodiscard]] double began() const { return began_; }

 private:
  Result<double> start() {
    const double at = std::max(device_.now(), busyUntil_);
    MUSTER_CHECK_OK(device_.unit().faults.strike(Work::kCollective, at));
    return at;
  }

  SimDevice& device_;
  int rank_;
  SimNetwork network_;
  uint64_t key_;
  double busyUntil_ = 0;
  double began_ = 0;
  uint64_t sequence_ = 0;
  std::map<int, uint64_t> exchanges_;
  SimNetwork::Carried carried_;
};

class SimCollective : public Collective {
 public:
  SimCollective(SimGroup& group, const CollectiveSpec& spec, std::vector<std::unique_ptr<Buffer>> memory)
      : group_(group), spec_(spec), memory_(std::move(memory)) {}

  /// Each rank's own work: only that of the device itself slows it down.
  Status prepare(uint64_t) override {
    const auto& memory = group_.device().unit().scenario->figures.memory;
    const auto write = memory.find(MemoryOp::kWrite);
    const double bytes =
        static_cast<double>(spec_.sendCount(group_.network().size()) * dtypeBits(spec_.dtype)) / 8;
    MUSTER_CHECK_OK(
        group_.device().perform(Work::kCollective, write == memory.end() ? 0 : bytes / write->second));
    prepared_ = true;
    ran_ = false;
    return {};
  }
  Status run() override {
    if (!prepared_) return Error{ErrorCode::kInternal, "run() before prepare()", collectiveOpName(spec_.op)};
    MUSTER_TRY(run_, group_.collective(spec_));
    ran_ = true;
    return {};
  }
  Status record(int runs) override {
    recorded_ = runs;
    return {};
  }
  Status replay() override {
    if (recorded_ == 0)
      return Error{ErrorCode::kInternal, "replay() before record()", collectiveOpName(spec_.op)};
    for (int i = 0; i < recorded_; ++i) MUSTER_CHECK_OK(run());
    return {};
  }
  /// A reduction spreads one rank's wrong element to all who get the result; else only its own block is
  /// wrong.
  Result<CollectiveMismatch> check() override {
    if (!ran_) return Error{ErrorCode::kInternal, "check() before run()", collectiveOpName(spec_.op)};
    group_.join();
    CollectiveMismatch mismatch;
    const Fault* fault = nullptr;
    const int source = group_.network().corruptor(run_, group_.began(), &fault);
    if (source < 0 || !hasResult(spec_, group_.rank())) return mismatch;
    const int ranks = group_.network().size();
    const uint64_t count = spec_.receiveCount(ranks);
    const uint64_t element = fault->offset * 8 / dtypeBits(spec_.dtype);
    for (uint64_t block = 0; block < count; block += spec_.count) {
      const uint64_t candidate = block + element % spec_.count;
      const int from = originOf(spec_, group_.rank(), ranks, candidate).rank;
      if (from >= 0 && from != source) continue;
      return CollectiveMismatch{1, candidate, candidate, source, false};
    }
    return mismatch;
  }

 private:
  SimGroup& group_;
  CollectiveSpec spec_;
  std::vector<std::unique_ptr<Buffer>> memory_;  ///< only takes up the device's
  bool prepared_ = false;
  int recorded_ = 0;
  bool ran_ = false;
  uint64_t run_ = 0;  ///< number of the last run among all of the group: faults count those
};

class SimCommunicator : public Communicator {
 public:
  SimCommunicator(SimDevice& device, const CommunicatorSpec& spec, SimNetwork network, uint64_t key)
      : device_(device), group_(device, spec, std::move(network), key) {
    const bool confirms = device.unit().scenario->network.confirmsSettings;
    for (const auto& [name, value] : spec.settings) {
      if (confirms) settings_.taken.push_back(name + "=" + value);
      if (!confirms) settings_.unsaid.push_back(name);
    }
  }

  [[nodiscard]] int rank() const override { return group_.rank(); }
  [[nodiscard]] int size() const override { return group_.network().size(); }
  [[nodiscard]] std::string implementation() const override { return "sim " + device_.unit().scenario->name; }
  Result<std::unique_ptr<Collective>> collective(const CollectiveSpec& spec) override;
  Status allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype, ReduceOp reduce) override;
  Status broadcast(Buffer& buffer, uint64_t bytes, int root) override;
  Status exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                  uint64_t receiveBytes) override;
  Status join() override {
    MUSTER_CHECK_OK(alive());
    group_.join();
    return {};
  }
  Status barrier() override {
    MUSTER_CHECK_OK(alive());
    CollectiveSpec spec;
    spec.count = 1;
    MUSTER_TRY([[maybe_unused]] const uint64_t number, group_.collective(spec));
    return join();
  }
  Status synchronize() override { return join(); }
  Result<double> time(const std::function<Status()>& work) override {
    MUSTER_CHECK_OK(join());
    const double start = device_.now();
    MUSTER_CHECK_OK(work());
    MUSTER_CHECK_OK(join());
    return device_.now() - start;
  }
  Result<std::vector<double>> maxOverRanks(const std::vector<double>& values) override {
    MUSTER_CHECK_OK(join());
    return values;  // a collective takes as long on all ranks
  }
  [[nodiscard]] bool ranksTalk() const override { return false; }
  [[nodiscard]] bool isSteady() const override { return group_.network().isSteadyFrom(device_.now()); }
  Result<double> exchangeBetween(int a, int b, uint64_t bytesToB, uint64_t bytesToA, uint64_t draw) override;
  Result<std::vector<TransportUse>> transports() override;
  Result<SettingsUse> settingsUse() override { return settings_; }
  void abort() override { aborted_ = true; }

 private:
  [[nodiscard]] Status alive() const {
    if (!aborted_) return {};
    return Error{ErrorCode::kIo, "the group was aborted", device_.info().id};
  }
  /// Leaves in `buffer` what every rank of the group gets.
  void share(Buffer& buffer, uint64_t sequence) const {
    static_cast<SimBuffer&>(buffer).content = {mix(mix(kReducedTag, group_.key()), sequence), {}};
  }

  SimDevice& device_;
  SimGroup group_;
  SettingsUse settings_;
  bool aborted_ = false;
};

Result<double> SimCommunicator::exchangeBetween(int a, int b, uint64_t bytesToB, uint64_t bytesToA,
                                                uint64_t draw) {
  MUSTER_CHECK_OK(alive());
  if (a < 0 || b < 0 || a >= size() || b >= size() || a == b)
    return Error{ErrorCode::kUsage, fmt::format("a group of {} has no pair {} and {}", size(), a, b),
                 "exchange"};
  const uint64_t pair = mix(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
  return group_.network().exchangeSeconds(a, b, bytesToB, bytesToA, device_.now(),
                                          mix(mix(kToldTag, pair), draw));
}

Result<std::unique_ptr<Collective>> SimCommunicator::collective(const CollectiveSpec& spec) {
  MUSTER_CHECK_OK(alive());
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  const auto bytes = [&](uint64_t count) { return std::max<uint64_t>(1, count * dtypeBits(spec.dtype) / 8); };
  const uint64_t send = bytes(spec.sendCount(size()));
  const uint64_t receive = bytes(spec.receiveCount(size()));
  std::vector<std::unique_ptr<Buffer>> memory(1);
  MUSTER_TRY(memory[0], device_.allocate(spec.inPlace ? std::max(send, receive) : send + receive));
  return std::unique_ptr<Collective>(std::make_unique<SimCollective>(group_, spec, std::move(memory)));
}

/// A corruption of this rank's leaves its own copy different from the others'.
Status SimCommunicator::allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype,
                                  ReduceOp reduce) {
  MUSTER_CHECK_OK(alive());
  CollectiveSpec spec;
  spec.dtype = dtype;
  spec.reduce = reduce;
  spec.count = count;
  spec.inPlace = true;
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  if ((first + count) * dtypeBits(dtype) > buffer.bytes() * 8)
    return Error{ErrorCode::kUsage,
                 fmt::format("elements {} to {} are not in a buffer of {} bytes", first, first + count,
                             buffer.bytes()),
                 "all_reduce"};
  MUSTER_TRY(const uint64_t sequence, group_.collective(spec));
  Content& content = static_cast<SimBuffer&>(buffer).content;
  const Content before = content;
  if (before.alike) {
    content.tag = mix(kReducedTag, before.tag);
  } else {
    share(buffer, sequence);
  }
  const Flaw flaw = device_.flawOf(Work::kCollective, sequence, buffer.bytes());
  if (flaw.there) content.flaw = flaw;
  return {};
}

Status SimCommunicator::broadcast(Buffer& buffer, uint64_t bytes, int root) {
  MUSTER_CHECK_OK(alive());
  CollectiveSpec spec;
  spec.op = CollectiveOp::kBroadcast;
  spec.dtype = Dtype::kI8;
  spec.count = bytes;
  spec.root = root;
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  MUSTER_TRY(const uint64_t sequence, group_.collective(spec));
  share(buffer, sequence);
  return {};
}

Status SimCommunicator::exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                                 uint64_t receiveBytes) {
  MUSTER_CHECK_OK(alive());
  if (peer < 0 || peer >= size() || peer == rank())
    return Error{ErrorCode::kUsage, fmt::format("rank {} of {} has no peer {}", rank(), size(), peer),
                 "exchange"};
  if (sendBytes > send.bytes() || receiveBytes > receive.bytes())
    return Error{ErrorCode::kUsage,
                 fmt::format("{} and {} bytes are not in buffers of {} and {}", sendBytes, receiveBytes,
                             send.bytes(), receive.bytes()),
                 "exchange"};
  MUSTER_CHECK_OK(group_.exchange(peer, sendBytes, receiveBytes));
  if (receiveBytes > 0)
    static_cast<SimBuffer&>(receive).content = {mix(kExchangeTag, static_cast<uint64_t>(peer)), {}};
  return {};
}

Result<std::vector<TransportUse>> SimCommunicator::transports() {
  MUSTER_CHECK_OK(alive());
  const Fabric& network = device_.unit().scenario->network;
  std::vector<TransportUse> uses;
  for (const auto& [name, bytes] : {std::pair(network.interTransport, group_.carried().inter),
                                    std::pair(network.intraTransport, group_.carried().intra)})
    if (bytes > 0)
      uses.push_back(
          {name, bytes, fmt::format("simulated counters of {}: +{}", name, formatQuantity(bytes, "B"))});
  if (uses.empty())
    return Error{ErrorCode::kNotFound, "nothing was sent yet, so the transport is not confirmed",
                 device_.info().id};
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return uses;
}

/// See CommunicatorSpec::members.
std::vector<GroupMember> membersOf(const CommunicatorSpec& spec, const Scenario& scenario, int own) {
  if (!spec.members.empty()) return spec.members;
  const auto size = static_cast<size_t>(spec.size);
  const bool alone = size <= devicePlaces(scenario, own).size();
  std::vector<GroupMember> members;
  for (int node = alone ? own : 0; members.size() < size; ++node) {
    std::vector<int> places = devicePlaces(scenario, node);
    if (places.empty()) places.push_back(0);  // a node without devices has no ranks; this ends the loop
    for (const int place : places)
      if (members.size() < size) members.push_back({node, place});
  }
  return members;
}

/// NCCL's ranks use the network inside of a node, too, where both other ways are off.
bool isOverNics(const std::map<std::string, std::string>& settings) {
  const auto isOff = [&](const char* name) {
    const auto found = settings.find(name);
    return found != settings.end() && found->second == "1";
  };
  return isOff("NCCL_P2P_DISABLE") && isOff("NCCL_SHM_DISABLE");
}

}  // namespace

Result<std::unique_ptr<Communicator>> makeCommunicator(SimDevice& device, const CommunicatorSpec& spec,
                                                       uint64_t key, int node) {
  const auto& scenario = device.unit().scenario;
  if (!scenario->network.there)
    return Error{ErrorCode::kUnsupported,
                 "the scenario \"" + scenario->name + "\" has no [network], so its devices cannot talk",
                 device.info().id};
  if (spec.size < 1 || spec.rank < 0 || spec.rank >= spec.size ||
      (!spec.members.empty() && spec.members.size() != static_cast<size_t>(spec.size)))
    return Error{ErrorCode::kUsage,
                 fmt::format("rank {} of {} with {} members forms no group", spec.rank, spec.size,
                             spec.members.size()),
                 spec.name};
  const uint64_t own = mix(mix(mix(scatter(scenario->seed), scenario->name), key), spec.name);
  SimNetwork network(scenario, own, membersOf(spec, *scenario, node), isOverNics(spec.settings));
  return std::unique_ptr<Communicator>(
      std::make_unique<SimCommunicator>(device, spec, std::move(network), own));
}

}  // namespace muster::sim
