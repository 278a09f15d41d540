// SPDX-License-Identifier: Apache-2.0
// One NUMA node of this machine as a Device: its processors work, its memory is measured.
#pragma once

#include <memory>
#include <vector>

#include "kernels/host/stream_kernels.h"
#include "kernels/host/thread_pool.h"
#include "kernels/interfaces/device.h"

namespace muster::host {

/// Opens the device for this process: binds the calling thread to its processors, so that threads which
/// libraries start later stay there too. Work is done when a call returns, so synchronize() has nothing to
/// wait for.
class HostDevice : public Device {
 public:
  static Result<std::unique_ptr<HostDevice>> open(const DeviceInfo& info);

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] int threads() const { return static_cast<int>(pool_.size()); }
  [[nodiscard]] double now() const override;
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

 private:
  HostDevice(const DeviceInfo& info, const std::vector<int>& cpus) : info_(info), pool_(cpus) {}

  DeviceInfo info_;
  ThreadPool pool_;
  const StreamKernels& kernels_ = streamKernels();
};

}  // namespace muster::host
