// SPDX-License-Identifier: Apache-2.0
// One GPU as a Device, through the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/device.h"

namespace muster::cuda {

/// A GPU that is open for work, current in the thread that opened it. Work is queued on one stream of its
/// own. The modules beside backend_cuda.so use stream() and ordinal(); both are the driver's, so every copy
/// of the runtime understands them.
class CudaDevice : public Device {
 public:
  /// kUnsupported: a driver too old for this runtime, with what to do; kNotFound: no such GPU is visible.
  static Result<std::unique_ptr<CudaDevice>> open(const DeviceInfo& info);
  ~CudaDevice() override;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] int ordinal() const { return ordinal_; }                      ///< for cudaSetDevice()
  [[nodiscard]] int computeCapability() const { return computeCapability_; }  ///< 90 for 9.0

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] double now() const override;
  void sleep(double seconds) override;
  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override;
  [[nodiscard]] Result<uint64_t> freeBytes() override;
  Status fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) override;
  Status fillPattern(Buffer& buffer, uint64_t pattern) override;
  Result<Mismatch> checkPattern(const Buffer& buffer, uint64_t pattern) override;
  Result<Mismatch> compareBits(const Buffer& a, const Buffer& b, Dtype dtype) override;
  Result<uint64_t> hash(const Buffer& buffer) override;
  Status memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) override;
  Status synchronize() override;
  Result<double> time(const std::function<Status()>& work) override;

 private:
  CudaDevice(const DeviceInfo& info, int ordinal) : info_(info), ordinal_(ordinal) {}
  Status start();

  DeviceInfo info_;
  int ordinal_;
  int computeCapability_ = 0;
  cudaStream_t stream_ = nullptr;
};

}  // namespace muster::cuda
