// SPDX-License-Identifier: Apache-2.0
// Test "latency": seconds of one load that depends on the load before it, by a pointer chase.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/checks/pointer_chase.h"
#include "kernels/checks/timing.h"
#include "plugins/memory/params.h"
#include "plugins/memory/tests.h"
#include "runner/core/units.h"

namespace muster::memory {
namespace {

constexpr uint64_t kCacheShare = 8;             ///< a ring is at least this many times the last-level cache
constexpr uint64_t kLeastBytes = 256ull << 20;  ///< and at least this large

Result<uint64_t> chooseBytes(Device& device, uint64_t wanted) {
  if (wanted > 0) return wanted;
  MUSTER_TRY(uint64_t free, device.freeBytes());
  return std::min(std::max(kCacheShare * device.info().lastLevelCacheBytes, kLeastBytes), free / 2);
}

/// A ring in memory, followed piece by piece; each piece must end where the ring says.
class Chase {
 public:
  Chase(Device& device, Buffer& buffer, const LatencyParams& params, uint64_t seed)
      : device_(device),
        buffer_(buffer),
        steps_(params.steps),
        stride_(params.stride),
        ring_{chaseLines(buffer.bytes(), params.stride), seed} {}

  Status follow() {
    const uint64_t from = ring_.line(turn_) * stride_;
    MUSTER_TRY(uint64_t reached, device_.chase(buffer_, from, steps_));
    turn_ = (turn_ + steps_) % ring_.lines;
    wrong_ += reached != ring_.line(turn_) * stride_;
    return {};
  }
  [[nodiscard]] uint64_t lines() const { return ring_.lines; }
  [[nodiscard]] uint64_t wrong() const { return wrong_; }

 private:
  Device& device_;
  Buffer& buffer_;
  uint64_t steps_;
  uint64_t stride_;
  ChaseRing ring_;
  uint64_t turn_ = 0;
  uint64_t wrong_ = 0;
};

}  // namespace

Status runLatency(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(const LatencyParams params, sdk::readParams<LatencyParams>(json));
  MUSTER_TRY(uint64_t bytes, chooseBytes(bench.device, params.bytes));
  MUSTER_TRY(std::unique_ptr<Buffer> buffer, bench.device.allocate(bytes));
  MUSTER_CHECK_OK(bench.device.fillRing(*buffer, params.stride, seed));
  Chase chase(bench.device, *buffer, params, seed);
  MUSTER_TRY(Sampling sampling, sampleWork(
                                    bench.device, [&] { return chase.follow(); }, params.sampling,
                                    [&](double fraction) {
                                      bench.host.progress(fraction, "following pointers");
                                      return !bench.host.cancelled();
                                    }));
  std::vector<double> latencies;
  for (double seconds : sampling.seconds) latencies.push_back(seconds / static_cast<double>(params.steps));
  const double now = bench.device.now();
  MUSTER_CHECK_OK(bench.host.measurement("latency", "s", latencies, {}, now));
  MUSTER_CHECK_OK(bench.host.measurement("latency_ring", "B",
                                         {static_cast<double>(chase.lines() * params.stride)}, {}, now));
  return bench.host.measurement("latency_wrong_ends", "count", {static_cast<double>(chase.wrong())}, {}, now);
}

}  // namespace muster::memory
