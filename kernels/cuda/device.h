// SPDX-License-Identifier: Apache-2.0
// One GPU as a Device, through the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/cuda/handles.h"
#include "kernels/cuda/stream_shapes.h"
#include "kernels/interfaces/device.h"

namespace muster::cuda {

/// A GPU that is open for work. Every call makes it current in the calling thread. Work is queued on one
/// stream of its own. The modules beside backend_cuda.so use stream() and ordinal(); both are the driver's,
/// so every copy of the runtime understands them. Work on other streams must be joined to this one by events,
/// for time().
class CudaDevice : public Device {
 public:
  /// An error that says what to do: a driver too old for this runtime, a GPU that CUDA does not see.
  static Result<std::unique_ptr<CudaDevice>> open(const DeviceInfo& info);
  ~CudaDevice() override;

  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] int ordinal() const { return ordinal_; }                      ///< for cudaSetDevice()
  [[nodiscard]] int computeCapability() const { return computeCapability_; }  ///< 90 for 9.0
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] double now() const override;
  void sleep(double seconds) override;
  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override;
  [[nodiscard]] Result<uint64_t> freeBytes() override;
  Status fillNormal(Buffer& buffer, Dtype dtype, uint64_t seed) override;
  Status fillPattern(Buffer& buffer, const PatternPart& part) override;
  Result<Mismatch> checkPattern(const Buffer& buffer, const PatternPart& part) override;
  Result<Mismatch> compareBits(const Buffer& a, const Buffer& b, Dtype dtype) override;
  Result<std::unique_ptr<Tally>> tally() override;
  Status countDifferences(const Buffer& a, const Buffer& b, Dtype dtype, Tally& found) override;
  Result<uint64_t> hash(const Buffer& buffer) override;
  Status memoryOp(MemoryOp op, Buffer& a, const Buffer* b, const Buffer* c) override;
  Status fillRing(Buffer& buffer, uint64_t stride, uint64_t seed) override;
  Result<uint64_t> chase(const Buffer& buffer, uint64_t from, uint64_t steps) override;
  Result<std::unique_ptr<Pin>> pin(void* memory, uint64_t bytes) override;
  Status synchronize() override;
  /// By events on stream(), around work that is queued while a kernel holds the stream: gaps between launches
  /// do not count. The hold ends when `work` waits for the GPU through this Device, or after kHoldLimit.
  Result<double> time(const std::function<Status()>& work) override;
  Result<std::unique_ptr<Mark>> mark() override;
  Result<double> seconds(const Mark& from, const Mark& to) override;

 private:
  class EventMark;
  class RegisteredPin;
  class PartsTally;
  CudaDevice(const DeviceInfo& info, int ordinal) : info_(info), ordinal_(ordinal) {}
  Status start();
  [[nodiscard]] Status use() const;
  void letGo();
  [[nodiscard]] int blocks() const;
  [[nodiscard]] Status queued(cudaError_t code, const char* what) const;
  Status clearFound(const DeviceMemory& found);
  Status countInto(const DeviceMemory& found, const Buffer& a, const Buffer& b, Dtype dtype);
  Result<Mismatch> collectFound(const DeviceMemory& found);
  Result<double> elapsed(const std::function<Status()>& work);
  Result<StreamShape> shapeFor(StreamOp op, const StreamArrays& at);

  DeviceInfo info_;
  int ordinal_;
  int computeCapability_ = 0;
  int multiprocessors_ = 0;
  Stream stream_;
  Event begin_, end_;
  DeviceMemory parts_;      ///< what blocks found, kMaxParts of them
  PinnedMemory hostParts_;  ///< the same on the host
  DeviceMemory word_;       ///< 8 bytes: the sink of reads, the place of a chase
  PinnedMemory gate_;       ///< not 0: held work may go
  StreamShapes shapes_;
};

}  // namespace muster::cuda
