// SPDX-License-Identifier: Apache-2.0
// What all operations share: the plan of memory and gradients.
#include "kernels/host/nn/op.h"

namespace muster::host {

memory::desc Plan::imageDesc(const Shape& shape) const {
  const auto tag = lanes == 16 ? memory::format_tag::nChw16c : memory::format_tag::nChw8c;
  return {memory::dims(shape.begin(), shape.end()), memory::data_type::f32, tag};
}

ImageBlocks Plan::blocksOf(const Shape& shape) const {
  return {shape[0], (shape[1] + lanes - 1) / lanes, shape[2] * shape[3], lanes};
}

Result<float*> Plan::newPart(Tensor tensor) {
  Value& value = of(tensor);
  MUSTER_TRY(float* part, storage.take(floatsOf(value.desc)));
  value.parts.push_back(part);
  return part;
}

Result<Incoming> takeGradient(Plan& plan, Tensor tensor, size_t limit) {
  std::vector<float*> parts = std::move(plan.of(tensor).parts);
  plan.of(tensor).parts.clear();
  if (parts.empty())
    return Error{ErrorCode::kUsage,
                 "a layer's output of " + shapeText(plan.network.shape(tensor)) +
                     " is used by no later layer; leave it out of the network",
                 ""};
  Incoming incoming;
  incoming.first = parts[0];
  if (limit > 1 && parts.size() > 1) incoming.second = parts[1];
  incoming.others.assign(parts.begin() + (incoming.second != nullptr ? 2 : 1), parts.end());
  return incoming;
}

void giveBack(Plan& plan, const Incoming& incoming) {
  plan.storage.give(incoming.first);
  plan.storage.give(const_cast<float*>(incoming.second));
  for (float* part : incoming.others) plan.storage.give(part);
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

}  // namespace muster::host
