// SPDX-License-Identifier: Apache-2.0
// See layer_cost.h.
#include "kernels/sim/layer_cost.h"

#include <algorithm>

namespace muster::sim {
namespace {

double elements(const Network& network, Tensor tensor) {
  return static_cast<double>(elementsOf(network.shape(tensor)));
}

/// Activations that a forward pass moves, in elements.
double movedForward(const Network& network, const Layer& layer) {
  const double in = elements(network, layer.inputs[0]);
  const double out = elements(network, layer.output);
  double moved = in + out;
  if (layer.statistics >= 0) moved += 3 * out;
  if (layer.residual.there()) moved += out;
  // Flash-style attention keeps its scores on chip; the loss passes over its logits and writes their
  // gradient.
  if (layer.kind == LayerKind::kCrossEntropy) moved += in;
  return moved;
}

double weightBytes(const Network& network, const Layer& layer) {
  if (layer.weight < 0 || layer.kind == LayerKind::kEmbedding) return 0;
  return 4 * static_cast<double>(network.parameters()[static_cast<size_t>(layer.weight)].elements());
}

double longer(double flops, double bytes, const Roofline& roofline) {
  return std::max(flops / roofline.flops, bytes / roofline.memory);
}

}  // namespace

double forwardSeconds(const Network& network, const Layer& layer, const Roofline& roofline) {
  const double bytes = movedForward(network, layer) * static_cast<double>(roofline.element);
  return longer(layerFlops(network, layer), bytes + weightBytes(network, layer), roofline);
}

double backwardSeconds(const Network& network, const Layer& layer, const Roofline& roofline) {
  const double products = network.isInput(layer.inputs[0]) ? 1 : 2;
  const double bytes = 2 * movedForward(network, layer) * static_cast<double>(roofline.element);
  return longer(products * layerFlops(network, layer), bytes + 2 * weightBytes(network, layer), roofline);
}

}  // namespace muster::sim
