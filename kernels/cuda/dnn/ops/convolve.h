// SPDX-License-Identifier: Apache-2.0
// The three products of one convolution by cuDNN, each by the algorithm that was chosen for it.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda/dnn/library/engine.h"

namespace muster::cuda {

/// Padded NHWC images, padded KRSC filters.
struct ConvolutionShape {
  ImageShape in, out;
  FilterShape filter;
  int64_t stride = 1, padding = 0;
};

/// An algorithm of cuDNN's, as the three enums number them.
struct ConvolutionAlgorithm {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  size_t workspace = 0;
};

/// Runs y = w * x, dx = w^T * dy (+ dx) and dw = dy * x.
class Convolver {
 public:
  static Result<std::unique_ptr<Convolver>> make(Engine& engine, const ConvolutionShape& shape,
                                                 bool inputGradient);
  ~Convolver();
  Convolver(const Convolver&) = delete;
  Convolver& operator=(const Convolver&) = delete;

  /// The most that any candidate wants; bounded.
  [[nodiscard]] uint64_t workspaceBytes() const;

  /// Choose algorithms by running them on these arrays.
  Status tuneForward(const void* x, const void* w, void* y);
  Status tuneInputGradient(const void* w, const void* dy, void* dx, bool keep);
  Status tuneFilterGradient(const void* x, const void* dy, void* dw);

  Status forward(const void* x, const void* w, void* y) { return forwardBy(forward_.chosen(), x, w, y); }
  Status inputGradient(const void* w, const void* dy, void* dx, bool keep) {
    return inputGradientBy(input_.chosen(), w, dy, dx, keep);
  }
  Status filterGradient(const void* x, const void* dy, void* dw) {
    return filterGradientBy(filter_.chosen(), x, dy, dw);
  }

 private:
  struct Candidates {
    std::vector<ConvolutionAlgorithm> all;
    size_t index = 0;
    [[nodiscard]] const ConvolutionAlgorithm& chosen() const { return all[index]; }
  };

  Convolver(Engine& engine, const ConvolutionShape& shape) : engine_(engine), shape_(shape) {}
  Status describe();
  Status findAlgorithms(bool inputGradient);
  /// Keeps what fits the type, the bound on workspace, and deterministic mode.
  template <typename Performance>
  Status take(const char* what, const std::vector<Performance>& offered, Candidates& to);
  [[nodiscard]] std::string key(const char* what) const;
  Status forwardBy(const ConvolutionAlgorithm& a, const void* x, const void* w, void* y);
  Status inputGradientBy(const ConvolutionAlgorithm& a, const void* w, const void* dy, void* dx, bool keep);
  Status filterGradientBy(const ConvolutionAlgorithm& a, const void* x, const void* dy, void* dw);

  Engine& engine_;
  ConvolutionShape shape_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  Candidates forward_, input_, filter_;
};

}  // namespace muster::cuda
