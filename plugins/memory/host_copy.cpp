// SPDX-License-Identifier: Apache-2.0
// Test "host_copy": how fast a device and its host's pinned memory exchange data, each way and both at once.
#include <fmt/format.h>

#include <algorithm>

#include "plugins/memory/copy_sampling.h"
#include "plugins/memory/tests.h"

namespace muster::memory {
namespace {

/// One NUMA node to measure from, by the name that its figures carry.
struct Place {
  std::string name;  ///< near, far; unknown where the host does not say how far
  int node = 0;
};

/// The nearest node, and the farthest if it is another one and was asked for.
std::vector<Place> choosePlaces(const std::vector<HostNode>& nodes, const std::vector<std::string>& wanted) {
  const auto asked = [&](const char* name) {
    return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  const auto farthest =
      std::max_element(nodes.begin(), nodes.end(),
                       [](const HostNode& a, const HostNode& b) { return a.distance < b.distance; });
  std::vector<Place> places;
  const bool known = nodes.size() == 1 || nodes.front().distance > 0;
  if (asked("near") || !known) places.push_back({known ? "near" : "unknown", nodes.front().node});
  if (known && asked("far") && farthest->distance > nodes.front().distance)
    places.push_back({"far", farthest->node});
  return places;
}

/// Buffers for both directions between a device and one NUMA node.
class HostPath {
 public:
  static Result<HostPath> prepare(const Bench& bench, Copies& copies, const Place& place, uint64_t bytes) {
    HostPath path(bench, copies, place);
    for (auto* buffer : {&path.hostSource_, &path.hostTarget_}) {
      MUSTER_TRY(*buffer, copies.allocatePinned(bytes, place.node));
    }
    for (auto* buffer : {&path.deviceSource_, &path.deviceTarget_}) {
      MUSTER_TRY(*buffer, bench.device.allocate(bytes));
    }
    return path;
  }

  [[nodiscard]] Transfer toDevice() const { return {deviceTarget_.get(), hostSource_.get()}; }
  [[nodiscard]] Transfer toHost() const { return {hostTarget_.get(), deviceSource_.get()}; }
  [[nodiscard]] const Place& place() const { return place_; }

  /// New data in the sources, other data in the targets: a copy that did nothing is found.
  Status refill(uint64_t seed) {
    seed_ = seed;
    MUSTER_CHECK_OK(copies_.fillPinned(*hostSource_, randomPattern(seed, 0)));
    MUSTER_CHECK_OK(copies_.fillPinned(*hostTarget_, randomPattern(seed, 1)));
    MUSTER_CHECK_OK(bench_.device.fillPattern(*deviceSource_, randomPattern(seed, 2)));
    MUSTER_CHECK_OK(bench_.device.fillPattern(*deviceTarget_, randomPattern(seed, 3)));
    return bench_.device.synchronize();
  }

  Status checkDevice(CopyEngine engine, WrongBytes& wrong) {
    MUSTER_TRY(Mismatch mismatch, bench_.device.checkPattern(*deviceTarget_, randomPattern(seed_, 0)));
    wrong.add(bench_, mismatch, name("to", engine));
    return {};
  }
  /// What reached the host, sent back and compared on the device: the host itself would take several times as
  /// long as the copy and fill its caches with it.
  Status checkSentBack(CopyEngine engine, WrongBytes& wrong) {
    MUSTER_CHECK_OK(copies_.copy({{deviceTarget_.get(), hostTarget_.get()}}, engine));
    MUSTER_TRY(Mismatch mismatch, bench_.device.checkPattern(*deviceTarget_, randomPattern(seed_, 2)));
    wrong.add(bench_, mismatch, name("from", engine));
    return {};
  }
  Status checkHost(CopyEngine engine, WrongBytes& wrong) {
    MUSTER_TRY(Mismatch mismatch, copies_.checkPinned(*hostTarget_, randomPattern(seed_, 2)));
    wrong.add(bench_, mismatch, name("from", engine));
    return {};
  }

 private:
  HostPath(const Bench& bench, Copies& copies, Place place)
      : bench_(bench), copies_(copies), place_(std::move(place)) {}
  [[nodiscard]] std::string name(const char* way, CopyEngine engine) const {
    return fmt::format("pinned memory of NUMA node {} {} {} by {}", place_.node, way, bench_.device.info().id,
                       copyEngineName(engine));
  }

  const Bench& bench_;
  Copies& copies_;
  Place place_;
  uint64_t seed_ = 0;
  std::unique_ptr<Buffer> hostSource_, hostTarget_, deviceSource_, deviceTarget_;
};

/// The directions that are timed, and the metric of each.
struct Direction {
  const char* metric;
  bool toDevice, toHost;
};
constexpr Direction kDirections[] = {{"host_to_device_bandwidth", true, false},
                                     {"device_to_host_bandwidth", false, true},
                                     {"host_bidirectional_bandwidth", true, true}};

class HostCopyTest {
 public:
  HostCopyTest(const Bench& bench, Copies& copies, const CopyParams& params, uint64_t seed)
      : bench_(bench), copies_(copies), params_(params), seed_(seed) {}

  Status run(const std::vector<Place>& places) {
    Steps steps(bench_.host, places.size() * params_.engines.size() * std::size(kDirections));
    for (const Place& place : places) {
      MUSTER_TRY(HostPath path, HostPath::prepare(bench_, copies_, place, params_.bytes));
      for (CopyEngine engine : params_.engines)
        for (const Direction& direction : kDirections)
          MUSTER_CHECK_OK(measure(path, engine, direction, steps));
      MUSTER_CHECK_OK(
          bench_.host.fact("host_copy_numa_node", std::to_string(place.node), {{"numa", place.name}}));
    }
    return bench_.host.measurement("host_copy_wrong_bytes", "count", {wrong_.take()}, {},
                                   bench_.device.now());
  }

 private:
  Status measure(HostPath& path, CopyEngine engine, const Direction& direction, Steps& steps) {
    MUSTER_CHECK_OK(path.refill(seed_++));
    std::vector<Transfer> transfers;
    if (direction.toDevice) transfers.push_back(path.toDevice());
    if (direction.toHost) transfers.push_back(path.toHost());
    SamplingOptions sampling = params_.sampling;
    sampling.check = [&]() -> Status {
      if (direction.toDevice) MUSTER_CHECK_OK(path.checkDevice(engine, wrong_));
      return direction.toHost ? path.checkSentBack(engine, wrong_) : Status();
    };
    MUSTER_TRY(std::vector<double> rates,
               sampleCopy(bench_, copies_, transfers, engine, sampling, steps.next(direction.metric)));
    if (direction.toHost) MUSTER_CHECK_OK(path.checkHost(engine, wrong_));
    return bench_.host.measurement(direction.metric, "B/s", rates,
                                   {{"engine", copyEngineName(engine)}, {"numa", path.place().name}},
                                   bench_.device.now());
  }

  const Bench& bench_;
  Copies& copies_;
  const CopyParams& params_;
  uint64_t seed_;
  WrongBytes wrong_;
};

}  // namespace

Status runHostCopy(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(const HostCopyParams params, sdk::readParams<HostCopyParams>(json));
  MUSTER_TRY(std::unique_ptr<Copies> copies, bench.backend.copies(bench.device));
  MUSTER_TRY(std::vector<HostNode> nodes, copies->hostNodes());
  if (nodes.empty())
    return Error{ErrorCode::kIo, "the host shows no NUMA node with memory", bench.device.info().id};
  const std::vector<Place> places = choosePlaces(nodes, params.numa);
  if (places.empty())
    return Error{ErrorCode::kUnsupported,
                 "only \"far\" was requested, but all memory of this host is equally near",
                 bench.device.info().id};
  HostCopyTest test(bench, *copies, params, seed);
  return inTurn(bench, params.turnTimeout, [&] { return test.run(places); });
}

}  // namespace muster::memory
