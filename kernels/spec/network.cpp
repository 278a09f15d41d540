// SPDX-License-Identifier: Apache-2.0
// Building networks: shapes, parameters and the mistakes one can make.
#include "kernels/spec/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace muster {
namespace {

int64_t windowOutput(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  return (size + 2 * padding - kernel) / stride + 1;
}

/// Whether a window of this kind can be laid over an image of this size.
bool windowFits(const Shape& image, int64_t kernel, int64_t stride, int64_t padding) {
  return kernel > 0 && stride > 0 && padding >= 0 && padding < kernel && image[2] + 2 * padding >= kernel &&
         image[3] + 2 * padding >= kernel;
}

Layer layerOf(LayerKind kind, const std::string& name, std::vector<Tensor> inputs) {
  Layer layer;
  layer.kind = kind;
  layer.name = name;
  layer.inputs = std::move(inputs);
  return layer;
}

}  // namespace

int64_t elementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string shapeText(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

const char* layerKindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
      return "convolution";
    case LayerKind::kMaxPool:
      return "max pool";
    case LayerKind::kGlobalAveragePool:
      return "global average pool";
    case LayerKind::kLinear:
      return "linear";
    case LayerKind::kEmbedding:
      return "embedding";
    case LayerKind::kLayerNorm:
      return "layer norm";
    case LayerKind::kAttention:
      return "attention";
    case LayerKind::kCrossEntropy:
      return "cross-entropy";
  }
  return "?";
}

Tensor Network::value(Shape shape, int64_t limit, bool input) {
  tensors_.push_back({std::move(shape), limit, input});
  return {static_cast<int>(tensors_.size()) - 1};
}

Tensor Network::finish(Layer layer, Shape shape) {
  layer.output = value(std::move(shape));
  layers_.push_back(std::move(layer));
  return layers_.back().output;
}

int Network::parameter(const std::string& name, Shape shape, ParameterRole role) {
  parameters_.push_back({name, std::move(shape), role});
  return static_cast<int>(parameters_.size()) - 1;
}

/// Keeps the first mistake: later ones follow from it.
bool Network::wrong(const std::string& layer, const std::string& what) {
  if (mistake_.empty()) mistake_ = "layer \"" + layer + "\": " + what;
  return false;
}

bool Network::fits(const std::string& layer, Tensor x, size_t dimensions) {
  if (!layers_.empty() && layers_.back().kind == LayerKind::kCrossEntropy)
    return wrong(layer, "follows the loss, which ends a network");
  if (x.id < 0 || x.id >= tensorCount())
    return wrong(layer,
                 "its input is not a tensor of this network; an earlier layer is wrong, or it was left out");
  if (dimensions != 0 && shape(x).size() != dimensions)
    return wrong(layer,
                 fmt::format("its input is {}, expected {} dimensions", shapeText(shape(x)), dimensions));
  return true;
}

Tensor Network::images(int64_t batch, int64_t channels, int64_t height, int64_t width) {
  const Shape shape = {batch, channels, height, width};
  if (*std::min_element(shape.begin(), shape.end()) < 1) {
    wrong("images", shapeText(shape) + " is empty");
    return {};
  }
  return value(shape, 0, true);
}

Tensor Network::indices(const Shape& shape, int64_t limit) {
  if (shape.empty() || *std::min_element(shape.begin(), shape.end()) < 1 || limit < 1) {
    wrong("indices", fmt::format("{} below {} is empty", shapeText(shape), limit));
    return {};
  }
  return value(shape, limit, true);
}

Tensor Network::add(const Convolution& spec, Tensor x) {
  if (!fits(spec.name, x, 4)) return {};
  const Shape in = shape(x);
  if (spec.channels < 1 || !windowFits(in, spec.kernel, spec.stride, spec.padding)) {
    wrong(spec.name,
          fmt::format("{} channels of {}x{} windows, stride {}, padding {} do not fit {}", spec.channels,
                      spec.kernel, spec.kernel, spec.stride, spec.padding, shapeText(in)));
    return {};
  }
  const Shape out = {in[0], spec.channels, windowOutput(in[2], spec.kernel, spec.stride, spec.padding),
                     windowOutput(in[3], spec.kernel, spec.stride, spec.padding)};
  if (spec.norm.empty() && spec.residual.there()) wrong(spec.name, "a residual needs batch normalisation");
  if (!spec.norm.empty() && spec.bias) wrong(spec.name, "a bias before batch normalisation has no effect");
  if (spec.residual.there() && (spec.residual.id >= tensorCount() || shape(spec.residual) != out))
    wrong(spec.name, "its residual is not " + shapeText(out));
  if (!mistake_.empty()) return {};
  Layer layer = layerOf(LayerKind::kConvolution, spec.name, {x});
  layer.residual = spec.residual;
  layer.convolution = spec;
  layer.weight = parameter(spec.name + ".weight", {spec.channels, in[1], spec.kernel, spec.kernel},
                           ParameterRole::kWeight);
  if (spec.bias) layer.bias = parameter(spec.name + ".bias", {spec.channels}, ParameterRole::kBias);
  if (!spec.norm.empty()) {
    layer.normScale = parameter(spec.norm + ".weight", {spec.channels}, ParameterRole::kScale);
    layer.normShift = parameter(spec.norm + ".bias", {spec.channels}, ParameterRole::kShift);
    layer.statistics = static_cast<int>(statistics_.size());
    statistics_.push_back({spec.norm, spec.channels});
  }
  return finish(std::move(layer), out);
}

Tensor Network::add(const MaxPool& spec, Tensor x) {
  if (!fits(spec.name, x, 4)) return {};
  const Shape in = shape(x);
  if (!windowFits(in, spec.kernel, spec.stride, spec.padding) || 2 * spec.padding > spec.kernel) {
    wrong(spec.name, fmt::format("{}x{} windows, stride {}, padding {} do not fit {}", spec.kernel,
                                 spec.kernel, spec.stride, spec.padding, shapeText(in)));
    return {};
  }
  Layer layer = layerOf(LayerKind::kMaxPool, spec.name, {x});
  layer.maxPool = spec;
  return finish(std::move(layer), {in[0], in[1], windowOutput(in[2], spec.kernel, spec.stride, spec.padding),
                                   windowOutput(in[3], spec.kernel, spec.stride, spec.padding)});
}

Tensor Network::globalAveragePool(Tensor x) {
  if (!fits("average pool", x, 4)) return {};
  const Shape in = shape(x);
  return finish(layerOf(LayerKind::kGlobalAveragePool, "avgpool", {x}), {in[0], in[1]});
}

Tensor Network::add(const Linear& spec, Tensor x) {
  if (!fits(spec.name, x, 0)) return {};
  Shape out = shape(x);
  if (out.size() < 2 || spec.features < 1 || limit(x) > 0) {
    wrong(spec.name,
          fmt::format("{} features of {}, expected rows of numbers", spec.features, shapeText(out)));
    return {};
  }
  const int64_t in = out.back();
  out.back() = spec.features;
  if (spec.residual.there() && (spec.residual.id >= tensorCount() || shape(spec.residual) != out)) {
    wrong(spec.name, "its residual is not " + shapeText(out));
    return {};
  }
  if (spec.residual.there() && spec.activation != Activation::kNone) {
    wrong(spec.name, "takes an activation or a residual, not both");
    return {};
  }
  Layer layer = layerOf(LayerKind::kLinear, spec.name, {x});
  layer.residual = spec.residual;
  layer.linear = spec;
  layer.weight = parameter(spec.name + ".weight", {spec.features, in}, ParameterRole::kWeight);
  if (spec.bias) layer.bias = parameter(spec.name + ".bias", {spec.features}, ParameterRole::kBias);
  return finish(std::move(layer), out);
}

Tensor Network::add(const Embedding& spec, Tensor tokens) {
  if (!fits(spec.name, tokens, 2)) return {};
  Shape out = shape(tokens);
  if (spec.rows < 1 || spec.width < 1 || limit(tokens) != spec.rows) {
    wrong(spec.name,
          fmt::format("a table of {}x{} for indices below {}", spec.rows, spec.width, limit(tokens)));
    return {};
  }
  out.push_back(spec.width);
  Layer layer = layerOf(LayerKind::kEmbedding, spec.name, {tokens});
  layer.embedding = spec;
  layer.weight = parameter(spec.name + ".weight", {spec.rows, spec.width}, ParameterRole::kWeight);
  if (!spec.positions.empty())
    layer.bias = parameter(spec.positions + ".weight", {out[1], spec.width}, ParameterRole::kWeight);
  return finish(std::move(layer), out);
}

Tensor Network::layerNorm(const std::string& name, Tensor x) {
  if (!fits(name, x, 0)) return {};
  const Shape out = shape(x);
  if (out.size() < 2 || limit(x) > 0) {
    wrong(name, shapeText(out) + " has no rows of numbers");
    return {};
  }
  Layer layer = layerOf(LayerKind::kLayerNorm, name, {x});
  layer.weight = parameter(name + ".weight", {out.back()}, ParameterRole::kScale);
  layer.bias = parameter(name + ".bias", {out.back()}, ParameterRole::kShift);
  return finish(std::move(layer), out);
}

Tensor Network::add(const Attention& spec, Tensor x) {
  if (!fits(spec.name, x, 3)) return {};
  Shape out = shape(x);
  if (spec.heads < 1 || out[2] % (3 * spec.heads) != 0) {
    wrong(spec.name, fmt::format("{} wide does not hold q, k and v of {} heads", out[2], spec.heads));
    return {};
  }
  out[2] /= 3;
  Layer layer = layerOf(LayerKind::kAttention, spec.name, {x});
  layer.attention = spec;
  return finish(std::move(layer), out);
}

Tensor Network::crossEntropy(Tensor logits, Tensor labels) {
  if (!fits("loss", logits, 0) || !fits("loss", labels, 0)) return {};
  Shape rows = shape(logits);
  const int64_t classes = rows.back();
  rows.pop_back();
  if (limit(logits) > 0 || shape(labels) != rows || limit(labels) < 1 || limit(labels) > classes) {
    wrong("loss", fmt::format("labels {} below {} do not fit logits {}", shapeText(shape(labels)),
                              limit(labels), shapeText(shape(logits))));
    return {};
  }
  return finish(layerOf(LayerKind::kCrossEntropy, "loss", {logits, labels}), {});
}

Status Network::check() const {
  if (!mistake_.empty()) return Error{ErrorCode::kUsage, mistake_, ""};
  if (layers_.empty() || layers_.back().kind != LayerKind::kCrossEntropy)
    return Error{ErrorCode::kUsage, "the network has no loss; end it with crossEntropy()", ""};
  return {};
}

int64_t Network::parameterElements() const {
  int64_t sum = 0;
  for (const Parameter& parameter : parameters_) sum += parameter.elements();
  return sum;
}

double layerFlops(const Network& network, const Layer& layer) {
  const auto out = static_cast<double>(elementsOf(network.shape(layer.output)));
  const Shape& in = network.shape(layer.inputs[0]);
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return 2 * out * static_cast<double>(in[1] * layer.convolution.kernel * layer.convolution.kernel);
    case LayerKind::kLinear:
      return 2 * out * static_cast<double>(in.back());
    case LayerKind::kAttention:  // scores and their product with v; a causal mask halves what is needed
      return (layer.attention.causal ? 2 : 4) * out * static_cast<double>(in[1]);
    default:
      return 0;
  }
}

double Network::forwardFlops() const {
  double sum = 0;
  for (const Layer& layer : layers_) sum += layerFlops(*this, layer);
  return sum;
}

/// Backward costs as much for the weights as forward does, and again for the input; attention has no weights
/// but twice the products.
double Network::trainingFlops() const {
  double sum = 0;
  for (const Layer& layer : layers_) sum += layerFlops(*this, layer) * (isInput(layer.inputs[0]) ? 2 : 3);
  return sum;
}

}  // namespace muster
