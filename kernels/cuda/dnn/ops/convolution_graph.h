// SPDX-License-Identifier: Apache-2.0
// The three products of a convolution as graphs of cuDNN's, and the shape of a convolution.
#pragma once

#include <string>

#include "kernels/cuda/dnn/device/layout.h"
#include "kernels/cuda/dnn/library/dnn_graph.h"
#include "kernels/spec/network.h"

namespace muster::cuda {

/// Of a tensor [n, c, h, w] whose channels are padded to a multiple of `unit`.
ImageShape imageShape(const Shape& shape, int64_t unit);

/// Padded NHWC images, padded KRSC filters.
struct ConvolutionShape {
  ImageShape in, out;
  FilterShape filter;
  int64_t stride = 1, padding = 0;
};
ConvolutionShape convolutionShape(const Network& network, const Layer& layer, int64_t unit);

/// One of the products.
class ConvolutionGraph {
 public:
  /// `added`: to what the product is written over.
  ConvolutionGraph(const DnnTarget& target, const ConvolutionShape& shape, ConvolutionProduct product,
                   bool added = false);

  /// Finds plans; kUnsupported where cuDNN has none.
  Status build();
  [[nodiscard]] const std::vector<DnnPlan>& plans() const { return graph_.plans(); }
  /// "output of 32x64x56x56 by 64x64x3x3, stride 1, padding 1"
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t workspaceBytes() const { return graph_.workspaceBytes(); }
  /// Where image, filter and output, or their gradients, lie.
  Status bind(const void* x, const void* w, const void* y, void* workspace);
  Status run(size_t plan) { return graph_.run(plan); }

  void choose(size_t plan) { chosen_ = plan; }
  Status run() { return graph_.run(chosen_); }
  /// "convolution output by cudnn engine 62"
  [[nodiscard]] std::string method() const;

 private:
  DnnGraph graph_;
  ConvolutionProduct product_;
  std::string name_;
  std::vector<int> tensors_;
  size_t chosen_ = 0;
};

}  // namespace muster::cuda
