// SPDX-License-Identifier: Apache-2.0
// Test "bandwidth": the rate at which the device reads, writes, copies and combines memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/timing.h"
#include "plugins/memory/tests.h"
#include "runner/core/units.h"

namespace muster::memory {
namespace {

constexpr uint64_t kCacheShare = 4;           ///< a buffer is at least this many times the last-level cache
constexpr uint64_t kLeastBytes = 128u << 20;  ///< and at least this large, so that one pass takes long enough
constexpr uint64_t kBuffers = 3;
constexpr uint64_t kPage = 4096;

struct Op {
  const char* name;
  MemoryOp op;
  double streams;  ///< buffers that are read or written in one pass
};
constexpr std::array kOps = {Op{"read", MemoryOp::kRead, 1}, Op{"write", MemoryOp::kWrite, 1},
                             Op{"copy", MemoryOp::kCopy, 2}, Op{"triad", MemoryOp::kTriad, 3}};

struct Params {
  std::vector<Op> ops;
  double bytes = 0;
  SamplingOptions sampling;
};

Result<Params> readParams(const Json& json) {
  Params params;
  std::vector<std::string> names;
  JsonReader reader(json, "params");
  reader.read("ops", names);
  reader.read("bytes", params.bytes);
  reader.read("warmup", params.sampling.warmupMax);
  reader.read("min_time", params.sampling.minTime);
  reader.read("max_time", params.sampling.maxTime);
  MUSTER_CHECK_OK(reader.status());
  for (const std::string& name : names) {
    const auto* found = std::find_if(kOps.begin(), kOps.end(), [&](const Op& op) { return name == op.name; });
    if (found == kOps.end())
      return Error{ErrorCode::kUsage, "there is no memory kernel \"" + name + "\"", "params.ops"};
    params.ops.push_back(*found);
  }
  params.sampling.warmupMin = std::min(params.sampling.warmupMin, params.sampling.warmupMax);
  params.sampling.maxTime = std::max(params.sampling.maxTime, params.sampling.minTime);
  return params;
}

/// Three equal buffers: `target` is written, the sources keep their random data and take turns.
class Buffers {
 public:
  static Result<Buffers> allocate(Device& device, uint64_t bytes, uint64_t seed) {
    Buffers buffers;
    for (auto* buffer : {&buffers.target_, &buffers.sources_[0], &buffers.sources_[1]}) {
      MUSTER_TRY(*buffer, device.allocate(bytes));
      MUSTER_CHECK_OK(device.fillNormal(**buffer, Dtype::kF64, seed++));
    }
    return buffers;
  }

  /// Queues one pass. Each buffer exceeds the caches, and the next pass begins in another one.
  Status pass(Device& device, MemoryOp op) {
    const size_t turn = turn_++ % 2;
    Buffer& source = *sources_[turn];
    if (op == MemoryOp::kRead) return device.memoryOp(op, source, nullptr, nullptr);
    return device.memoryOp(op, *target_, &source, sources_[1 - turn].get());
  }

  /// Words that differ after a copy.
  Result<Mismatch> checkCopy(Device& device) {
    MUSTER_CHECK_OK(device.memoryOp(MemoryOp::kCopy, *target_, sources_[0].get(), nullptr));
    MUSTER_CHECK_OK(device.synchronize());
    return device.compareBits(*sources_[0], *target_, Dtype::kF64);
  }

 private:
  std::unique_ptr<Buffer> target_;
  std::array<std::unique_ptr<Buffer>, 2> sources_;
  size_t turn_ = 0;
};

/// The size that was asked for, or one past the caches; never so large that the machine is left without
/// memory.
Result<uint64_t> chooseBytes(const sdk::Host& host, Device& device, double wanted) {
  if (wanted >= 8) return static_cast<uint64_t>(wanted) / 8 * 8;
  MUSTER_TRY(uint64_t free, device.freeBytes());
  const uint64_t cache = kCacheShare * device.info().lastLevelCacheBytes;
  const uint64_t affordable = free / 2 / kBuffers / kPage * kPage;
  if (affordable < cache)
    host.log(MUSTER_LOG_WARNING,
             fmt::format("{}: buffers of {} are less than 4 times the last-level cache ({}): the figures "
                         "include the cache",
                         device.info().id, formatQuantity(static_cast<double>(affordable), "B"),
                         formatQuantity(static_cast<double>(device.info().lastLevelCacheBytes), "B")));
  return std::min(std::max(cache, kLeastBytes), affordable);
}

/// Times one kernel and reports it; `part` of `parts` for the progress.
Status timeOp(const sdk::Host& host, Device& device, Buffers& buffers, uint64_t bytes, const Op& op,
              const SamplingOptions& options, const std::function<bool(double)>& keepGoing) {
  MUSTER_TRY(Sampling sampling, sampleWork(
                                    device, [&] { return buffers.pass(device, op.op); }, options, keepGoing));
  std::vector<double> rates;
  for (double seconds : sampling.seconds) rates.push_back(op.streams * static_cast<double>(bytes) / seconds);
  const sdk::Host::LabelList labels = {{"op", op.name}};
  const double now = device.now();
  MUSTER_CHECK_OK(host.measurement("bandwidth", "B/s", rates, labels, now));
  MUSTER_CHECK_OK(host.measurement("bandwidth_warmup", "s", {sampling.warmup}, labels, now));
  MUSTER_CHECK_OK(host.measurement("bandwidth_steady", "bool", {sampling.plateau ? 1.0 : 0.0}, labels, now));
  return host.measurement("bandwidth_relative_error", "ratio", {sampling.relativeError}, labels, now);
}

Status reportCopyCheck(const sdk::Host& host, Device& device, Buffers& buffers) {
  MUSTER_TRY(Mismatch mismatch, buffers.checkCopy(device));
  if (mismatch.wrong > 0)
    host.log(MUSTER_LOG_ERROR, fmt::format("{}: {} words differ after a copy, the first at byte offset {}",
                                           device.info().id, mismatch.wrong, mismatch.firstOffset));
  return host.measurement("bandwidth_wrong_elements", "count", {static_cast<double>(mismatch.wrong)}, {},
                          device.now());
}

}  // namespace

Status runBandwidth(const Bench& bench, const Json& json, uint64_t seed) {
  const sdk::Host& host = bench.host;
  Device& device = bench.device;
  MUSTER_TRY(Params params, readParams(json));
  MUSTER_TRY(uint64_t bytes, chooseBytes(host, device, params.bytes));
  MUSTER_TRY(Buffers buffers, Buffers::allocate(device, bytes, seed));
  MUSTER_CHECK_OK(host.measurement("bandwidth_buffer", "B", {static_cast<double>(bytes)}, {}, device.now()));
  for (size_t i = 0; i < params.ops.size(); ++i) {
    const Op& op = params.ops[i];
    const auto keepGoing = [&](double fraction) {
      host.progress((static_cast<double>(i) + fraction) / static_cast<double>(params.ops.size()), op.name);
      return !host.cancelled();
    };
    MUSTER_CHECK_OK(timeOp(host, device, buffers, bytes, op, params.sampling, keepGoing));
  }
  return reportCopyCheck(host, device, buffers);
}

}  // namespace muster::memory
