// SPDX-License-Identifier: Apache-2.0
// What all operations share: the plan of memory and gradients.
#include "kernels/host/nn/op.h"

namespace muster::host {

memory::desc Plan::imageDesc(const Shape& shape) const {
  const auto tag = lanes == 16 ? memory::format_tag::nChw16c : memory::format_tag::nChw8c;
  return {memory::dims(shape.begin(), shape.end()), type, tag};
}

ImageBlocks Plan::blocksOf(const Shape& shape) const {
  return {shape[0], (shape[1] + lanes - 1) / lanes, shape[2] * shape[3], lanes};
}

Result<void*> Plan::makeOutput(Tensor tensor, const memory::desc& desc) {
  Value& value = of(tensor);
  value.desc = desc;
  MUSTER_TRY(value.data, storage.keep(floatsOf(desc)));
  return value.data;
}

Result<void*> Plan::newPart(Tensor tensor) {
  Value& value = of(tensor);
  MUSTER_TRY(void* part, storage.take(floatsOf(value.desc)));
  value.parts.push_back(part);
  return part;
}

Result<Incoming> takeGradient(Plan& plan, Tensor tensor, size_t limit) {
  std::vector<void*> parts = std::move(plan.of(tensor).parts);
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
  plan.storage.give(incoming.second);
  for (void* part : incoming.others) plan.storage.give(part);
}

Result<std::unique_ptr<Op>> makeOp(const Layer& layer, Plan& plan) {
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return makeConvolution(layer, plan);
    case LayerKind::kMaxPool:
      return makeMaxPool(layer, plan);
    case LayerKind::kGlobalAveragePool:
      return makeAveragePool(layer, plan);
    case LayerKind::kLinear:
      return makeLinear(layer, plan);
    case LayerKind::kEmbedding:
      return makeEmbedding(layer, plan);
    case LayerKind::kLayerNorm:
      return makeLayerNorm(layer, plan);
    case LayerKind::kAttention:
      return makeAttention(layer, plan);
    case LayerKind::kCrossEntropy:
      return std::unique_ptr<Op>(makeCrossEntropy(layer, plan));
  }
  return Error{ErrorCode::kInternal, "a layer of unknown kind", layer.name};
}

}  // namespace muster::host
