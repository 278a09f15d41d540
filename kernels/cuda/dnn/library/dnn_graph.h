// SPDX-License-Identifier: Apache-2.0
// A graph of operations that cuDNN computes as one: its backend API in the few words that attention and
// convolutions need.
#pragma once

#include <array>
#include <vector>

#include "kernels/cuda/dnn/library/dnn_plan.h"

namespace muster::cuda {

using Dims = std::array<int64_t, 4>;

/// Where a tensor's values are.
enum class Holding {
  kMemory,   ///< on the GPU
  kVirtual,  ///< nowhere: between two operations
  kValue,    ///< one number on the host, read when the graph runs
};

struct GraphTensor {
  Dims dims{};
  Dims strides{};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Holding holding = Holding::kVirtual;
};

/// The three products of a convolution with filter w: y = w * x, dx = w^T * dy and dw = dy * x.
enum class ConvolutionProduct { kOutput, kInputGradient, kFilterGradient };

/// Operations are added in any order; tensors are named by the numbers that tensor() gives. The first failure
/// is kept and returned by build().
class DnnGraph {
 public:
  explicit DnnGraph(const DnnTarget& target) : target_(target) {}

  int tensor(const GraphTensor& spec);
  /// Adds an operation; `to` is what it writes. pointwise: `b` and `select` where the mode has them.
  void matmul(int a, int b, int to);
  void pointwise(cudnnPointwiseMode_t mode, int a, int b, int select, int to,
                 cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  void index(int like, int64_t axis, int to);
  void reduce(cudnnReduceTensorOp_t op, int x, int to);
  void reshape(int x, int to);
  /// `x` and `y` stand for their gradients too. `added`: to what the written tensor holds.
  void convolution(ConvolutionProduct product, int x, int w, int y, int64_t stride, int64_t padding,
                   bool added);

  /// Makes up to `most` plans: see findPlans().
  Status build(size_t most = 1);
  /// Once it is built.
  [[nodiscard]] const std::vector<DnnPlan>& plans() const { return plans_; }
  /// The most that any plan wants.
  [[nodiscard]] uint64_t workspaceBytes() const;
  /// Where each tensor that is not virtual lies; then run() may be called.
  Status bind(const std::vector<int>& tensors, const std::vector<void*>& data, void* workspace);
  Status run(size_t plan = 0);

 private:
  void note(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  Status addTensor(const GraphTensor& spec, Descriptor& to, int64_t id);
  Status addPointwise(cudnnPointwiseMode_t mode, int64_t axis, const std::array<int, 3>& inputs, int to,
                      cudnnDataType_t precision);
  Status addMatmul(int a, int b, int to);
  Status addReduction(cudnnReduceTensorOp_t op, int x, int to);
  Status addReshape(int x, int to);
  Status addConvolution(ConvolutionProduct product, const std::array<int, 3>& xwy, int64_t stride,
                        int64_t padding, bool added);
  Status describeConvolution(Descriptor& how, int64_t stride, int64_t padding);
  Status compile(size_t most);
  [[nodiscard]] const Descriptor& at(int tensor) const { return tensors_[static_cast<size_t>(tensor)]; }

  DnnTarget target_;
  Status status_;
  std::vector<Descriptor> tensors_, operations_, helpers_;
  std::vector<DnnPlan> plans_;
  Descriptor pack_;
};

}  // namespace muster::cuda
