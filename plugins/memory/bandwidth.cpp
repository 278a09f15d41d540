// SPDX-License-Identifier: Apache-2.0
// Test "bandwidth": the rate at which the device reads, writes, copies and combines memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/checks/timing.h"
#include "plugins/memory/params.h"
#include "plugins/memory/tests.h"
#include "runner/core/units.h"

namespace muster::memory {
namespace {

constexpr uint64_t kCacheShare = 4;           ///< a buffer is at least this many times the last-level cache
constexpr uint64_t kLeastBytes = 128u << 20;  ///< and at least this large, so that one pass takes long enough
constexpr uint64_t kBuffers = 3;
constexpr uint64_t kPage = 4096;

/// Three equal buffers, each larger than the caches: every pass begins in another one than the last.
class Buffers {
 public:
  static Result<Buffers> allocate(Device& device, uint64_t bytes, uint64_t seed) {
    Buffers buffers;
    for (auto& buffer : buffers.all_) {
      MUSTER_TRY(buffer, device.allocate(bytes));
      MUSTER_CHECK_OK(device.fillNormal(*buffer, Dtype::kF64, seed++));
    }
    buffers.seed_ = seed;
    return buffers;
  }

  [[nodiscard]] uint64_t bytes() const { return all_[0]->bytes(); }  ///< of each

  /// Goes before the passes of `op`. Copies hand one buffer's random data on; triads take turns in which of
  /// their sources they scale, so that two results are right.
  Status begin(Device& device, MemoryOp op) {
    turn_ = 0;
    for (uint64_t& hash : triads_) {
      if (op != MemoryOp::kTriad) break;
      MUSTER_CHECK_OK(triad(device, turn_++));
      MUSTER_TRY(hash, device.hash(*all_[2]));
    }
    if (op != MemoryOp::kCopy) return {};
    MUSTER_CHECK_OK(device.fillNormal(*all_[0], Dtype::kF64, seed_));
    MUSTER_TRY(copied_, device.hash(*all_[0]));
    return {};
  }

  /// Queues one pass. A copy's source is the last one's target, so what goes wrong in any of them stays
  /// wrong.
  Status pass(Device& device, MemoryOp op) {
    const size_t turn = turn_++;
    if (op == MemoryOp::kTriad) return triad(device, turn);
    Buffer& buffer = *all_[turn % kBuffers];
    if (op == MemoryOp::kCopy) return device.memoryOp(op, *all_[turn_ % kBuffers], &buffer, nullptr);
    return device.memoryOp(op, buffer, nullptr, nullptr);
  }

  /// Words that the passes of `op` left wrong: all copies since the beginning, the last three writes, the
  /// last triad.
  Result<Mismatch> check(Device& device, MemoryOp op) {
    MUSTER_CHECK_OK(device.synchronize());
    if (op == MemoryOp::kCopy) return checkCopies(device);
    if (op == MemoryOp::kTriad) return checkTriad(device);
    const bool unwritten = op == MemoryOp::kWrite && turn_ < kBuffers;  // not yet written by this op
    if (op == MemoryOp::kRead || unwritten) return Mismatch{};
    MUSTER_TRY(Mismatch mismatch, device.compareBits(*all_[0], *all_[1], Dtype::kF64));
    if (mismatch.wrong > 0) return mismatch;
    return device.compareBits(*all_[1], *all_[2], Dtype::kF64);
  }

 private:
  Status triad(Device& device, size_t turn) {
    return device.memoryOp(MemoryOp::kTriad, *all_[2], all_[turn % 2].get(), all_[1 - turn % 2].get());
  }

  Result<Mismatch> checkCopies(Device& device) {
    Buffer& last = *all_[turn_ % kBuffers];
    MUSTER_TRY(const uint64_t hash, device.hash(last));
    if (hash == copied_) return Mismatch{};
    Buffer& expected = *all_[(turn_ + 1) % kBuffers];
    MUSTER_CHECK_OK(device.fillNormal(expected, Dtype::kF64, seed_));
    return device.compareBits(expected, last, Dtype::kF64);
  }

  /// Equal to the last bit to the first one that was computed in the same way.
  Result<Mismatch> checkTriad(Device& device) {
    MUSTER_TRY(const uint64_t last, device.hash(*all_[2]));
    Mismatch mismatch;
    mismatch.wrong = last == triads_[(turn_ - 1) % 2] ? 0 : 1;  // how many cannot be told from their hashes
    return mismatch;
  }

  std::array<std::unique_ptr<Buffer>, kBuffers> all_;
  uint64_t seed_ = 0;
  size_t turn_ = 0;
  uint64_t copied_ = 0;                  ///< hash of what the copies hand on
  std::array<uint64_t, 2> triads_ = {};  ///< hashes of the first two triads
};

/// The size that was asked for, or one past the caches; never so large that the machine is left without
/// memory.
Result<uint64_t> chooseBytes(const sdk::Host& host, Device& device, uint64_t wanted) {
  if (wanted >= 8) return wanted / 8 * 8;
  MUSTER_TRY(uint64_t free, device.freeBytes());
  const uint64_t cache = kCacheShare * device.info().lastLevelCacheBytes;
  const uint64_t affordable = free / 2 / kBuffers / kPage * kPage;
  if (affordable < cache)
    host.log(MUSTER_LOG_WARNING,
             fmt::format("{}: buffers of {} are smaller than 4 times the last-level cache ({}), so results "
                         "include the cache",
                         device.info().id, formatQuantity(static_cast<double>(affordable), "B"),
                         formatQuantity(static_cast<double>(device.info().lastLevelCacheBytes), "B")));
  return std::min(std::max(cache, kLeastBytes), affordable);
}

/// Checks what passes left, in between and at the end, counts the wrong words and logs the first of them.
class PassCheck {
 public:
  PassCheck(const sdk::Host& host, Device& device, Buffers& buffers, const Op& op)
      : host_(host), device_(device), buffers_(buffers), op_(op), start_(device.now()) {}

  /// After a sample. A GPU checks a sample's last passes in a hundredth of its time; where it takes longer,
  /// as on a CPU, most samples go unchecked. Copies hand their errors on, so the last one speaks for all.
  Status between() {
    if (op_.op == MemoryOp::kCopy) return {};
    const double begin = device_.now();
    if (spent_ > kMostChecking * (begin - start_)) return {};
    MUSTER_CHECK_OK(now());
    spent_ += device_.now() - begin;
    return {};
  }

  Status now() {
    MUSTER_TRY(const Mismatch mismatch, buffers_.check(device_, op_.op));
    if (mismatch.wrong > 0 && wrong_ == 0)
      host_.log(MUSTER_LOG_ERROR,
                fmt::format("{}: {} words or more are wrong after {}, the first at byte offset {}",
                            device_.info().id, mismatch.wrong, op_.name, mismatch.firstOffset));
    wrong_ += mismatch.wrong;
    return {};
  }

  [[nodiscard]] uint64_t wrong() const { return wrong_; }

 private:
  static constexpr double kMostChecking = 0.05;  ///< share of the time

  const sdk::Host& host_;
  Device& device_;
  Buffers& buffers_;
  const Op& op_;
  double start_;
  double spent_ = 0;
  uint64_t wrong_ = 0;
};

/// Times one kernel and reports it; the words that it left wrong.
Result<uint64_t> timeOp(const sdk::Host& host, Device& device, Buffers& buffers, const Op& op,
                        SamplingOptions options, const std::function<bool(double)>& keepGoing) {
  MUSTER_CHECK_OK(buffers.begin(device, op.op));
  PassCheck check(host, device, buffers, op);
  options.check = [&check] { return check.between(); };
  MUSTER_TRY(Sampling sampling, sampleWork(
                                    device, [&] { return buffers.pass(device, op.op); }, options, keepGoing));
  std::vector<double> rates;
  for (double seconds : sampling.seconds)
    rates.push_back(op.streams * static_cast<double>(buffers.bytes()) / seconds);
  const sdk::Host::LabelList labels = {{"op", op.name}};
  const double now = device.now();
  MUSTER_CHECK_OK(host.measurement("bandwidth", "B/s", rates, labels, now));
  MUSTER_CHECK_OK(host.measurement("bandwidth_warmup", "s", {sampling.warmup}, labels, now));
  MUSTER_CHECK_OK(host.measurement("bandwidth_steady", "bool", {sampling.plateau ? 1.0 : 0.0}, labels, now));
  MUSTER_CHECK_OK(
      host.measurement("bandwidth_relative_error", "ratio", {sampling.relativeError}, labels, now));
  MUSTER_CHECK_OK(check.now());
  return check.wrong();
}

}  // namespace

Status runBandwidth(const Bench& bench, const Json& json, uint64_t seed) {
  const sdk::Host& host = bench.host;
  Device& device = bench.device;
  MUSTER_TRY(const BandwidthParams params, sdk::readParams<BandwidthParams>(json));
  MUSTER_TRY(uint64_t bytes, chooseBytes(host, device, params.bytes));
  MUSTER_TRY(Buffers buffers, Buffers::allocate(device, bytes, seed));
  MUSTER_CHECK_OK(host.measurement("bandwidth_buffer", "B", {static_cast<double>(bytes)}, {}, device.now()));
  uint64_t wrong = 0;
  for (size_t i = 0; i < params.ops.size(); ++i) {
    const Op& op = params.ops[i];
    const auto keepGoing = [&](double fraction) {
      host.progress((static_cast<double>(i) + fraction) / static_cast<double>(params.ops.size()), op.name);
      return !host.cancelled();
    };
    MUSTER_TRY(const uint64_t found, timeOp(host, device, buffers, op, params.sampling, keepGoing));
    wrong += found;
  }
  return host.measurement("bandwidth_wrong_elements", "count", {static_cast<double>(wrong)}, {},
                          device.now());
}

}  // namespace muster::memory
