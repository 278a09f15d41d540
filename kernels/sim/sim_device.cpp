// SPDX-License-Identifier: Apache-2.0
// A simulated device.
#include "kernels/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/checks/operands.h"
#include "kernels/sim/chance.h"
#include "kernels/spec/pattern.h"
#include "runner/core/units.h"

namespace muster::sim {
namespace {

constexpr double kColdSpeed = 0.6;            ///< share of the clock with which a cold device starts
constexpr double kDriverShare = 0.01;         ///< memory that the driver keeps for itself
constexpr uint64_t kNormalTag = 0x6e6f726d;   // "norm"
constexpr uint64_t kPatternTag = 0x70617474;  // "patt"
constexpr uint64_t kWriteTag = 0x77726974;    // "writ"
constexpr uint64_t kTriadTag = 0x74726961;    // "tria"
constexpr uint64_t kRingTag = 0x72696e67;     // "ring"

/// Bytes that STREAM counts for one pass over buffers of `bytes`.
double counted(MemoryOp op, uint64_t bytes) {
  int streams = op == MemoryOp::kTriad ? 3 : op == MemoryOp::kCopy ? 2 : 1;
  return static_cast<double>(bytes) * streams;
}

const SimBuffer& sim(const Buffer& buffer) {
  return static_cast<const SimBuffer&>(buffer);
}
SimBuffer& sim(Buffer& buffer) {
  return static_cast<SimBuffer&>(buffer);
}

Error sizesDiffer(const std::string& device, uint64_t a, uint64_t b) {
  return {ErrorCode::kUsage, fmt::format("buffers of {} and {} bytes do not fit together", a, b), device};
}

}  // namespace

Mismatch difference(const Content& expected, const Content& actual, uint64_t elements, size_t bits) {
  Mismatch mismatch;
  const uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  const bool sameSource = expected.tag == actual.tag;
  if (sameSource && expected.flaw == actual.flaw) return mismatch;
  const Flaw& flaw = actual.flaw.there ? actual.flaw : expected.flaw;
  mismatch.wrong = sameSource ? 1 : elements;
  mismatch.firstOffset = sameSource ? flaw.offset : 0;
  // The words at this place are made up from the tag; only what differs in them has a meaning.
  mismatch.expectedBits = mix(expected.tag, mismatch.firstOffset) & mask;
  mismatch.actualBits = sameSource ? mismatch.expectedBits ^ (1ull << (static_cast<size_t>(flaw.bit) % bits))
                                   : mix(actual.tag, uint64_t{0}) & mask;
  return mismatch;
}

SimDevice::SimDevice(SimUnit unit, double start)
    : unit_(std::move(unit)),
      clock_(start),
      loadClock_(unit_.scenario->climate.loadClock / unit_.scenario->figures.clock) {}

void SimDevice::sleep(double seconds) {
  clock_ += std::max(0.0, seconds);
}

/// What arithmetic limits follows the clock of the cores; memory and links have clocks of their own.
double SimDevice::clockShare(Work work) const {
  if (work != Work::kGemm && work != Work::kTraining) return 1;
  const Climate& climate = unit_.scenario->climate;
  return climate.throttlesAt(clock_) ? loadClock_ * climate.clockShare(clock_) : loadClock_;
}

/// Called hundreds of millions of times in a burn-in: a healthy device is not asked for faults.
Status SimDevice::perform(Work work, double seconds) {
  const bool healthy = unit_.faults.all().empty();
  if (!healthy) MUSTER_CHECK_OK(unit_.faults.strike(work, clock_));
  const Figures& figures = unit_.scenario->figures;
  // Past 40 times the ramp, the difference to 1 is below what a double holds.
  const bool warm = busy_ >= 40 * figures.ramp;
  const double ramp = warm ? 1 : 1 - (1 - kColdSpeed) * std::exp(-busy_ / figures.ramp);
  double noise = 1 + figures.noise * normal(mix(unit_.key, clock_));
  const double left = healthy ? 1 : unit_.faults.speed(work, clock_);
  double speed = ramp * unit_.speed * left * clockShare(work);
  double took = (figures.overhead + seconds * noise) / speed;
  busy_ += took;
  clock_ += took;
  return {};
}

double SimDevice::transfer(MemoryOp op, uint64_t bytes) const {
  return counted(op, bytes) / unit_.scenario->figures.memory.at(op);
}

Flaw SimDevice::flawOf(Work work, uint64_t run, uint64_t bytes) const {
  if (unit_.faults.all().empty()) return {};
  const Fault* fault = unit_.faults.corruption(work, run, clock_);
  if (fault == nullptr || bytes < 8) return {};
  return {true, fault->offset % bytes / 8 * 8, fault->bit, run};
}

Result<std::unique_ptr<Buffer>> SimDevice::allocate(uint64_t bytes) {
  MUSTER_TRY(uint64_t free, freeBytes());
  if (bytes > 0 && bytes <= free)
    return std::unique_ptr<Buffer>(std::make_unique<SimBuffer>(bytes, used_, unit_.place));
  return Error{ErrorCode::kIo,
               fmt::format("out of device memory: required {}, free are {}",
                           formatQuantity(static_cast<double>(bytes), "B"),
                           formatQuantity(static_cast<double>(free), "B")),
               unit_.info.id};
}

Result<uint64_t> SimDevice::freeBytes() {
  auto usable = static_cast<uint64_t>(static_cast<double>(unit_.info.memoryBytes) * (1 - kDriverShare));
  return usable - std::min(usable, *used_);
}

Status SimDevice::fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) {
  MUSTER_CHECK_OK(perform(Work::kMemory, transfer(MemoryOp::kWrite, buffer.bytes())));
  sim(buffer).content = {mix(mix(kNormalTag, static_cast<uint64_t>(dtype)), seed), {}};
  return {};
}

Content patternContent(const PatternPart& part) {
  return {mix(mix(kPatternTag, part.pattern), part.first), {}};
}

Mismatch checkContent(const Content& content, const PatternPart& part, uint64_t bytes) {
  Mismatch mismatch;
  if (content.tag != patternContent(part).tag) {
    mismatch.wrong = bytes;
    mismatch.expectedBits = part.word(0);
    mismatch.actualBits = content.tag;
  } else if (content.flaw.there) {
    mismatch.wrong = 1;
    mismatch.firstOffset = content.flaw.offset;
    mismatch.expectedBits = part.word(content.flaw.offset / 8);
    mismatch.actualBits = mismatch.expectedBits ^ (1ull << content.flaw.bit);
  }
  return mismatch;
}

Status SimDevice::fillPattern(Buffer& buffer, const PatternPart& part) {
  MUSTER_CHECK_OK(perform(Work::kPattern, transfer(MemoryOp::kWrite, buffer.bytes())));
  sim(buffer).content = patternContent(part);
  sim(buffer).content.flaw = flawOfNext(Work::kPattern, buffer.bytes());
  return {};
}

Result<Mismatch> SimDevice::checkPattern(const Buffer& buffer, const PatternPart& part) {
  MUSTER_CHECK_OK(perform(Work::kPattern, transfer(MemoryOp::kRead, buffer.bytes())));
  return checkContent(sim(buffer).content, part, buffer.bytes());
}

Result<Mismatch> SimDevice::compareBits(const Buffer& a, const Buffer& b, Dtype dtype) {
  if (a.bytes() != b.bytes()) return sizesDiffer(unit_.info.id, a.bytes(), b.bytes());
  MUSTER_CHECK_OK(perform(Work::kMemory, transfer(MemoryOp::kRead, 2 * a.bytes())));
  return difference(sim(b).content, sim(a).content, a.bytes() * 8 / dtypeBits(dtype), dtypeBits(dtype));
}

Result<uint64_t> SimDevice::hash(const Buffer& buffer) {
  MUSTER_CHECK_OK(perform(Work::kMemory, transfer(MemoryOp::kRead, buffer.bytes())));
  const Content& content = sim(buffer).content;
  const uint64_t clean = mix(mix(content.tag, buffer.bytes()), uint64_t{content.flaw.there});
  return content.flaw.there ? mix(mix(clean, content.flaw.offset), content.flaw.run) : clean;
}

Status SimDevice::memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) {
  for (const Buffer* other : {b, c}) {
    if (other != nullptr && other->bytes() != a.bytes())
      return sizesDiffer(unit_.info.id, a.bytes(), other->bytes());
  }
  bool needsB = op == MemoryOp::kCopy || op == MemoryOp::kTriad;
  if ((needsB && b == nullptr) || (op == MemoryOp::kTriad && c == nullptr))
    return Error{ErrorCode::kInternal, "a copy needs a source, a triad two", unit_.info.id};
  MUSTER_CHECK_OK(perform(Work::kMemory, transfer(op, a.bytes())));
  if (op == MemoryOp::kRead) return {};
  Content& out = sim(a).content;
  if (op == MemoryOp::kWrite) out = {kWriteTag, {}};
  if (op == MemoryOp::kCopy) out = sim(*b).content;
  if (op == MemoryOp::kTriad) out = {mix(mix(kTriadTag, sim(*b).content.tag), sim(*c).content.tag), {}};
  if (Flaw flaw = flawOfNext(Work::kMemory, a.bytes()); flaw.there) out.flaw = flaw;
  return {};
}

/// The ring needs no bytes: where a chase ends is a function of the ring.
Status SimDevice::fillRing(Buffer& buffer, uint64_t stride, uint64_t seed) {
  MUSTER_CHECK_OK(checkRing(buffer, stride, unit_.info.id));
  MUSTER_CHECK_OK(perform(Work::kMemory, transfer(MemoryOp::kWrite, buffer.bytes())));
  ring_ = {chaseLines(buffer.bytes(), stride), seed};
  stride_ = stride;
  turn_ = 0;
  sim(buffer).content = {mix(mix(kRingTag, stride), seed), {}};
  return {};
}

Result<uint64_t> SimDevice::chase(const Buffer& buffer, uint64_t from, uint64_t steps) {
  if (unit_.scenario->copies.latency <= 0)
    return Error{ErrorCode::kUnsupported, "the scenario has no `latency` in [figures]", unit_.info.id};
  if (sim(buffer).content.tag != mix(mix(kRingTag, stride_), ring_.seed))
    return Error{ErrorCode::kUsage, "the buffer holds no ring to chase", unit_.info.id};
  MUSTER_CHECK_OK(perform(Work::kMemory, static_cast<double>(steps) * unit_.scenario->copies.latency));
  if (ring_.line(turn_) * stride_ != from) {  // else it goes on where the last one ended
    turn_ = 0;
    while (turn_ < ring_.lines && ring_.line(turn_) * stride_ != from) ++turn_;
  }
  turn_ = (turn_ + steps) % ring_.lines;
  return ring_.line(turn_) * stride_;
}

Result<double> SimDevice::time(const std::function<Status()>& work) {
  double start = clock_;
  MUSTER_CHECK_OK(work());
  return clock_ - start;
}

}  // namespace muster::sim
