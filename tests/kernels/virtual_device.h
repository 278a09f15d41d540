// SPDX-License-Identifier: Apache-2.0
// A Device in virtual time whose only ability is to let time pass: for tests of what measures with one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/interfaces/device.h"

namespace muster::testing {

class VirtualDevice : public Device {
 public:
  VirtualDevice() { info_.id = "virtual0"; }

  /// Work: takes what `cost(now, run)` says.
  std::function<double(double, size_t)> cost = [](double, size_t) { return 0.001; };
  bool clockStands = false;  ///< time() tells durations, now() stays where it is
  size_t runs = 0;

  Status work() {
    const double seconds = cost(clock_, runs++);
    spent_ += seconds;
    if (!clockStands) clock_ += seconds;
    return {};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] double now() const override { return clock_; }
  void sleep(double seconds) override { clock_ += seconds; }
  Result<double> time(const std::function<Status()>& queued) override {
    const double before = spent_;
    MUSTER_CHECK_OK(queued());
    return spent_ - before;
  }
  Status synchronize() override { return {}; }

  Result<std::unique_ptr<Buffer>> allocate(uint64_t) override { return no(); }
  Result<uint64_t> freeBytes() override { return no(); }
  Status fillNormal(Buffer&, Dtype, uint64_t) override { return no(); }
  Status fillPattern(Buffer&, const PatternPart&) override { return no(); }
  Result<Mismatch> checkPattern(const Buffer&, const PatternPart&) override { return no(); }
  Result<Mismatch> compareBits(const Buffer&, const Buffer&, Dtype) override { return no(); }
  Result<uint64_t> hash(const Buffer&) override { return no(); }
  Status memoryOp(MemoryOp, Buffer&, const Buffer*, const Buffer*) override { return no(); }

 private:
  static Error no() { return {ErrorCode::kUnsupported, "a virtual device has no memory", ""}; }
  DeviceInfo info_;
  double clock_ = 1000;
  double spent_ = 0;
};

}  // namespace muster::testing
