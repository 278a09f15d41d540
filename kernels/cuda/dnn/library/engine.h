// SPDX-License-Identifier: Apache-2.0
// What all operations of a program share: the GPU, its libraries' handles, types, and workspace.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/cuda/dnn/device/kernels.h"
#include "kernels/cuda/dnn/library/dnn_plan.h"
#include "kernels/interfaces/nn.h"

namespace muster::cuda {

/// One program's view of the GPU. Its handles queue work on the device's stream.
class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(CudaDevice& device, const ProgramOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  CudaDevice& device;
  const cudaStream_t stream;
  const Dtype dtype;           ///< f32, tf32, bf16 or f16
  const Element element;       ///< how activations, and the weights that products read, are kept
  const bool deterministic;    ///< no algorithm is chosen by its time, none adds in a changing order
  int64_t columnBlocks = 264;  ///< two blocks for each multiprocessor
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t blas = nullptr;
  void* workspace = nullptr;  ///< for the libraries; operations run one after the other
  uint64_t workspaceBytes = 0;

  /// Elements that channels of images are padded to: 16 bytes.
  [[nodiscard]] int64_t channelUnit() const { return 16 / bytesOf(element); }
  [[nodiscard]] cudaDataType_t blasType() const {
    if (element == Element::kF16) return CUDA_R_16F;
    return element == Element::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
  }
  [[nodiscard]] DnnTarget target() const { return {cudnn, nullptr, dtype, deterministic}; }
  /// A matrix for sums over its columns; scratch is the plan's.
  [[nodiscard]] Columns columns(int64_t rows, int64_t count, void* scratch) const {
    return {rows, count, columnBlocks, static_cast<float*>(scratch), stream};
  }
  /// Bytes of scratch that `sums` sums of each column take.
  [[nodiscard]] uint64_t columnBytes(int64_t rows, int64_t count, int sums) const;

  /// Which of `count` candidates to take: the fastest of a few timed runs each; in deterministic mode the
  /// first that runs, since times differ from run to run. Remembered by `key` until the process ends, so that
  /// equal layers do the same. Candidates that fail are left out; if all do, the first one's error.
  Result<size_t> choose(const std::string& key, size_t count, const std::function<Status(size_t)>& run);

 private:
  Engine(CudaDevice& device, const ProgramOptions& options);
  Status start();
  Result<double> secondsOf(const std::function<Status()>& run);
};

/// Library versions: "cudnn 9.19.0, cublaslt 13.0.2".
std::string libraryVersions();

}  // namespace muster::cuda
