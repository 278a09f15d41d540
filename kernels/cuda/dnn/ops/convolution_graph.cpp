// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN.
#include "kernels/cuda/dnn/ops/convolution_graph.h"

#include <fmt/format.h>

namespace muster::cuda {
namespace {

constexpr size_t kMostPlans = 8;

const char* nameOf(ConvolutionProduct product) {
  switch (product) {
    case ConvolutionProduct::kOutput:
      return "output";
    case ConvolutionProduct::kInputGradient:
      return "input gradient";
    default:
      return "filter gradient";
  }
}

GraphTensor tensorOf(const ImageShape& s, cudnnDataType_t type) {
  return {
      {s.n, s.padded, s.h, s.w}, {s.h * s.w * s.padded, 1, s.w * s.padded, s.padded}, type, Holding::kMemory};
}
GraphTensor tensorOf(const FilterShape& s, cudnnDataType_t type) {
  return {{s.paddedK, s.paddedC, s.r, s.s},
          {s.r * s.s * s.paddedC, 1, s.s * s.paddedC, s.paddedC},
          type,
          Holding::kMemory};
}

}  // namespace

ImageShape imageShape(const Shape& shape, int64_t unit) {
  return {shape[0], shape[1], shape[2], shape[3], padTo(shape[1], unit)};
}

ConvolutionShape convolutionShape(const Network& network, const Layer& layer, int64_t unit) {
  const Convolution& spec = layer.convolution;
  ConvolutionShape shape;
  shape.in = imageShape(network.shape(layer.inputs[0]), unit);
  shape.out = imageShape(network.shape(layer.output), unit);
  shape.filter = {spec.channels, shape.in.c, spec.kernel, spec.kernel, shape.out.padded, shape.in.padded};
  shape.stride = spec.stride;
  shape.padding = spec.padding;
  return shape;
}

ConvolutionGraph::ConvolutionGraph(const DnnTarget& target, const ConvolutionShape& shape,
                                   ConvolutionProduct product, bool added)
    : graph_(target), product_(product) {
  const FilterShape& f = shape.filter;
  name_ = fmt::format("{}{} of {}x{}x{}x{} by {}x{}x{}x{}, stride {}, padding {}", added ? "added " : "",
                      nameOf(product), shape.in.n, shape.in.padded, shape.in.h, shape.in.w, f.paddedK,
                      f.paddedC, f.r, f.s, shape.stride, shape.padding);
  const int x = graph_.tensor(tensorOf(shape.in, target.type()));
  const int w = graph_.tensor(tensorOf(shape.filter, target.type()));
  const int y = graph_.tensor(tensorOf(shape.out, target.type()));
  graph_.convolution(product, x, w, y, shape.stride, shape.padding, added);
  tensors_ = {x, w, y};
}

Status ConvolutionGraph::build() {
  return graph_.build(kMostPlans).context(name_);
}

Status ConvolutionGraph::bind(const void* x, const void* w, const void* y, void* workspace) {
  const auto plain = [](const void* data) {
    return const_cast<void*>(data);
  };  // cuDNN's interface has no const
  return graph_.bind(tensors_, {plain(x), plain(w), plain(y)}, workspace);
}

std::string ConvolutionGraph::method() const {
  return fmt::format("convolution {} by cudnn {}", nameOf(product_), plans()[chosen_].name());
}

}  // namespace muster::cuda
