// SPDX-License-Identifier: Apache-2.0
// What all operations share: the plan of memory and gradients.
#include "kernels/cuda/dnn/ops/op.h"

#include "kernels/cuda/dnn/ops/convolution_graph.h"

namespace muster::cuda {

Status Plan::makeValue(Tensor tensor) {
  const Shape& shape = network.shape(tensor);
  Value& value = of(tensor);
  value.elements = elementsOf(shape);
  if (isImage(tensor)) {
    value.image = imageShape(shape, engine.channelUnit());
    value.elements = value.image.elements();
  }
  MUSTER_TRY(value.data, storage.keep(static_cast<uint64_t>(value.elements * bytesPerElement())));
  return {};
}

Result<Sink> Plan::sinkOf(Tensor tensor) {
  Value& value = of(tensor);
  if (!value.needsGradient)
    return Error{ErrorCode::kInternal, "a gradient for an input of the network was planned", ""};
  if (value.gradient != nullptr) return Sink{value.gradient, true};
  MUSTER_TRY(value.gradient, storage.take(static_cast<uint64_t>(value.elements * bytesPerElement())));
  return Sink{value.gradient, false};
}

Result<void*> Plan::takeGradient(Tensor tensor) {
  void* gradient = of(tensor).gradient;
  of(tensor).gradient = nullptr;
  if (gradient == nullptr)
    return Error{ErrorCode::kUsage,
                 "a layer's output of " + shapeText(network.shape(tensor)) +
                     " is used by no later layer; leave it out of the network",
                 ""};
  return gradient;
}

Status wantRows(const Plan& plan, const Layer& layer) {
  if (!plan.isImage(layer.inputs[0])) return {};
  return Error{ErrorCode::kUnsupported,
               std::string("a ") + layerKindName(layer.kind) + " layer over images of " +
                   shapeText(plan.network.shape(layer.inputs[0])) + "; pool them into rows first",
               layer.name};
}

Result<std::unique_ptr<Op>> makeOp(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return makeConvolution(layer);
    case LayerKind::kMaxPool:
      return makeMaxPool(layer);
    case LayerKind::kGlobalAveragePool:
      return makeAveragePool(layer);
    case LayerKind::kLinear:
      return makeLinear(layer);
    case LayerKind::kEmbedding:
      return makeEmbedding(layer);
    case LayerKind::kLayerNorm:
      return makeLayerNorm(layer);
    case LayerKind::kAttention:
      return makeAttention(layer);
    case LayerKind::kCrossEntropy:
      return std::unique_ptr<Op>(makeCrossEntropy(layer));
  }
  return Error{ErrorCode::kInternal, "a layer of unknown kind", layer.name};
}

}  // namespace muster::cuda
