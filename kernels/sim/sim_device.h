// SPDX-License-Identifier: Apache-2.0
// A simulated device: buffers are tags in place of bytes, work advances a virtual clock.
#pragma once

#include <array>
#include <memory>

#include "kernels/checks/pointer_chase.h"
#include "kernels/interfaces/device.h"
#include "kernels/sim/scenario/fault.h"
#include "kernels/sim/scenario/scenario.h"

namespace muster::sim {

/// What one simulated device is made of.
struct SimUnit {
  std::shared_ptr<const Scenario> scenario;
  DeviceInfo info;
  FaultList faults;
  uint64_t key = 0;  ///< of its chances: scenario seed, run seed, node rank and place
  double speed = 1;  ///< its own share of the model's figures
  int place = 0;     ///< in the node, missing devices counted
};

/// A wrong element that a fault left in some content.
struct Flaw {
  bool there = false;
  uint64_t offset = 0;  ///< bytes
  int bit = 0;
  uint64_t run = 0;  ///< which run left it: no two are wrong in the same way

  bool operator==(const Flaw&) const = default;
};

/// What a buffer or a GEMM result holds: equal contents have equal tags.
struct Content {
  uint64_t tag = 0;
  Flaw flaw = {};
  bool alike =
      false;  ///< every rank holds the same (gradients of one program): their sum is a function of it
};

/// How `actual` differs from `expected`, two contents of `elements` elements of `bits` bits each.
Mismatch difference(const Content& expected, const Content& actual, uint64_t elements, size_t bits);

/// Memory of a simulated device.
class SimBuffer : public Buffer {
 public:
  SimBuffer(uint64_t bytes, std::shared_ptr<uint64_t> used, int place)
      : bytes_(bytes), used_(std::move(used)), place_(place) {
    *used_ += bytes;
  }
  ~SimBuffer() override { *used_ -= bytes_; }
  SimBuffer(const SimBuffer&) = delete;
  SimBuffer& operator=(const SimBuffer&) = delete;
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }
  /// The device's place in the node that it belongs to; negative: pinned memory of the host, on NUMA node -1
  /// - place.
  [[nodiscard]] int place() const { return place_; }

  Content content;

 private:
  uint64_t bytes_;
  std::shared_ptr<uint64_t> used_;
  int place_;
};

/// What fillPattern() leaves in a buffer, and what checkPattern() finds in one of `bytes` bytes.
Content patternContent(const PatternPart& part);
Mismatch checkContent(const Content& content, const PatternPart& part, uint64_t bytes);

class SimDevice : public Device {
 public:
  SimDevice(SimUnit unit, double start);

  [[nodiscard]] const DeviceInfo& info() const override { return unit_.info; }
  [[nodiscard]] double now() const override { return clock_; }
  void sleep(double seconds) override;
  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override;
  [[nodiscard]] Result<uint64_t> freeBytes() override;
  Status fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) override;
  Status fillPattern(Buffer& buffer, const PatternPart& part) override;
  Result<Mismatch> checkPattern(const Buffer& buffer, const PatternPart& part) override;
  Result<Mismatch> compareBits(const Buffer& a, const Buffer& b, Dtype dtype) override;
  Result<uint64_t> hash(const Buffer& buffer) override;
  Status memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) override;
  Status fillRing(Buffer& buffer, uint64_t stride, uint64_t seed) override;
  Result<uint64_t> chase(const Buffer& buffer, uint64_t from, uint64_t steps) override;
  Status synchronize() override { return {}; }
  Result<double> time(const std::function<Status()>& work) override;

  /// Does work that a healthy, warm device of this model ends in `seconds`; faults strike here.
  Status perform(Work work, double seconds);
  /// The flaw that a fault now leaves in run number `run` of `work`, whose result has `bytes`.
  [[nodiscard]] Flaw flawOf(Work work, uint64_t run, uint64_t bytes) const;
  /// The same for the device's next run of `work`, whatever object it is a run of.
  [[nodiscard]] Flaw flawOfNext(Work work, uint64_t bytes) {
    return flawOf(work, ++runs_[static_cast<size_t>(work)], bytes);
  }
  [[nodiscard]] const SimUnit& unit() const { return unit_; }

 private:
  [[nodiscard]] double transfer(MemoryOp op, uint64_t bytes) const;
  /// Share of the figures' rates that clock and temperature leave.
  [[nodiscard]] double clockShare(Work work) const;

  SimUnit unit_;
  double clock_;
  double loadClock_;  ///< of warm cores, as a share of the clock at which the figures hold
  double busy_ = 0;   ///< seconds of work since the device was opened: its clock rises with it
  std::array<uint64_t, static_cast<size_t>(Work::kPeerCopy) + 1> runs_{};  ///< by Work
  ChaseRing ring_{1, 0};                                                   ///< the last one that was filled
  uint64_t stride_ = 0;
  uint64_t turn_ = 0;  ///< where the last chase ended
  std::shared_ptr<uint64_t> used_ = std::make_shared<uint64_t>(0);
};

}  // namespace muster::sim
