// SPDX-License-Identifier: Apache-2.0
// Networks in f64: the textbook's loops.
#include "tests/kernels/host_nn/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster::testing {
namespace {

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

double normalBelow(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

}  // namespace

Reference::Reference(const Network& network) : values(at(network.tensorCount())), network_(network) {
  for (const Parameter& parameter : network.parameters())
    parameters.emplace_back(at(parameter.elements()), 0.0);
}

double Reference::forward() {
  double loss = 0;
  for (const Layer& layer : network_.layers()) loss = compute(layer);
  return loss;
}

double Reference::compute(const Layer& layer) {
  if (layer.output.there()) of(layer.output).assign(at(elementsOf(network_.shape(layer.output))), 0.0);
  switch (layer.kind) {
    case LayerKind::kConvolution:
      convolution(layer);
      break;
    case LayerKind::kMaxPool:
      maxPool(layer);
      break;
    case LayerKind::kGlobalAveragePool:
      averagePool(layer);
      break;
    case LayerKind::kLinear:
      linear(layer);
      break;
    case LayerKind::kEmbedding:
      embedding(layer);
      break;
    case LayerKind::kLayerNorm:
      layerNorm(layer);
      break;
    case LayerKind::kAttention:
      attention(layer);
      break;
    case LayerKind::kCrossEntropy:
      return crossEntropy(layer);
  }
  return 0;
}

double Reference::slope(int parameter, size_t index) {
  constexpr double kStep = 1e-5;
  double& value = parameters[at(parameter)][index];
  const double kept = value;
  value = kept + kStep;
  const double above = forward();
  value = kept - kStep;
  const double below = forward();
  value = kept;
  return (above - below) / (2 * kStep);
}

void Reference::convolution(const Layer& layer) {
  const Convolution& spec = layer.convolution;
  const Shape& in = network_.shape(layer.inputs[0]);
  const Shape& out = network_.shape(layer.output);
  const std::vector<double>& x = of(layer.inputs[0]);
  const std::vector<double>& w = parameter(layer.weight);
  std::vector<double>& y = of(layer.output);
  size_t to = 0;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t o = 0; o < out[1]; ++o)
      for (int64_t r = 0; r < out[2]; ++r)
        for (int64_t c = 0; c < out[3]; ++c, ++to) {
          double sum = layer.bias >= 0 ? parameter(layer.bias)[at(o)] : 0;
          for (int64_t i = 0; i < in[1]; ++i)
            for (int64_t kr = 0; kr < spec.kernel; ++kr)
              for (int64_t kc = 0; kc < spec.kernel; ++kc) {
                const int64_t row = r * spec.stride - spec.padding + kr;
                const int64_t column = c * spec.stride - spec.padding + kc;
                if (row < 0 || column < 0 || row >= in[2] || column >= in[3]) continue;
                sum += x[at(((n * in[1] + i) * in[2] + row) * in[3] + column)] *
                       w[at(((o * in[1] + i) * spec.kernel + kr) * spec.kernel + kc)];
              }
          y[to] = sum;
        }
  if (layer.normScale >= 0) batchNorm(layer, y);
  if (layer.residual.there())
    for (size_t i = 0; i < y.size(); ++i) y[i] += of(layer.residual)[i];
  if (spec.relu)
    for (double& value : y) value = value < 0 ? 0 : value;
}

void Reference::batchNorm(const Layer& layer, std::vector<double>& y) const {
  const Shape& shape = network_.shape(layer.output);
  const int64_t pixels = shape[2] * shape[3];
  const auto each = [&](int64_t channel, auto body) {
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t i = 0; i < pixels; ++i) body(y[at((n * shape[1] + channel) * pixels + i)]);
  };
  for (int64_t channel = 0; channel < shape[1]; ++channel) {
    double mean = 0;
    double variance = 0;
    const auto count = static_cast<double>(shape[0] * pixels);
    each(channel, [&](double value) { mean += value / count; });
    each(channel, [&](double value) { variance += (value - mean) * (value - mean) / count; });
    const double scale = parameter(layer.normScale)[at(channel)] / std::sqrt(variance + kNormEpsilon);
    const double shift = parameter(layer.normShift)[at(channel)];
    each(channel, [&](double& value) { value = (value - mean) * scale + shift; });
  }
}

void Reference::maxPool(const Layer& layer) {
  const MaxPool& spec = layer.maxPool;
  const Shape& in = network_.shape(layer.inputs[0]);
  const Shape& out = network_.shape(layer.output);
  size_t to = 0;
  for (int64_t plane = 0; plane < out[0] * out[1]; ++plane)
    for (int64_t r = 0; r < out[2]; ++r)
      for (int64_t c = 0; c < out[3]; ++c, ++to) {
        double best = -std::numeric_limits<double>::infinity();
        for (int64_t row = r * spec.stride - spec.padding; row < r * spec.stride - spec.padding + spec.kernel;
             ++row)
          for (int64_t column = c * spec.stride - spec.padding;
               column < c * spec.stride - spec.padding + spec.kernel; ++column) {
            if (row < 0 || column < 0 || row >= in[2] || column >= in[3]) continue;
            best = std::max(best, of(layer.inputs[0])[at((plane * in[2] + row) * in[3] + column)]);
          }
        of(layer.output)[to] = best;
      }
}

void Reference::averagePool(const Layer& layer) {
  const Shape& in = network_.shape(layer.inputs[0]);
  const int64_t pixels = in[2] * in[3];
  for (int64_t plane = 0; plane < in[0] * in[1]; ++plane)
    for (int64_t i = 0; i < pixels; ++i)
      of(layer.output)[at(plane)] +=
          of(layer.inputs[0])[at(plane * pixels + i)] / static_cast<double>(pixels);
}

void Reference::linear(const Layer& layer) {
  const int64_t in = network_.shape(layer.inputs[0]).back();
  const int64_t out = layer.linear.features;
  std::vector<double>& y = of(layer.output);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / out;
    const int64_t column = static_cast<int64_t>(i) % out;
    double sum = layer.bias >= 0 ? parameter(layer.bias)[at(column)] : 0;
    for (int64_t k = 0; k < in; ++k)
      sum += of(layer.inputs[0])[at(row * in + k)] * parameter(layer.weight)[at(column * in + k)];
    if (layer.linear.activation == Activation::kGelu) sum *= normalBelow(sum);
    if (layer.linear.activation == Activation::kRelu) sum = sum < 0 ? 0 : sum;
    y[i] = sum + (layer.residual.there() ? of(layer.residual)[i] : 0);
  }
}

void Reference::embedding(const Layer& layer) {
  const Shape& out = network_.shape(layer.output);
  std::vector<double>& y = of(layer.output);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / out[2];
    const int64_t column = static_cast<int64_t>(i) % out[2];
    const auto token = static_cast<int64_t>(of(layer.inputs[0])[at(row)]);
    y[i] = parameter(layer.weight)[at(token * out[2] + column)];
    if (layer.bias >= 0) y[i] += parameter(layer.bias)[at(row % out[1] * out[2] + column)];
  }
}

void Reference::layerNorm(const Layer& layer) {
  const int64_t width = network_.shape(layer.output).back();
  const std::vector<double>& x = of(layer.inputs[0]);
  std::vector<double>& y = of(layer.output);
  for (size_t row = 0; row < y.size(); row += at(width)) {
    double mean = 0;
    double variance = 0;
    for (size_t i = 0; i < at(width); ++i) mean += x[row + i] / static_cast<double>(width);
    for (size_t i = 0; i < at(width); ++i)
      variance += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(width);
    for (size_t i = 0; i < at(width); ++i)
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + kNormEpsilon) * parameter(layer.weight)[i] +
                   parameter(layer.bias)[i];
  }
}

void Reference::attention(const Layer& layer) {
  const Shape& out = network_.shape(layer.output);
  const int64_t heads = layer.attention.heads;
  const int64_t width = out[2] / heads;
  const std::vector<double>& x = of(layer.inputs[0]);
  const auto packed = [&](int64_t n, int64_t t, int64_t which, int64_t h, int64_t i) {
    return x[at(((n * out[1] + t) * 3 + which) * out[2] + h * width + i)];
  };
  std::vector<double> p(at(out[1]));
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t row = 0; row < out[1]; ++row) {
        const int64_t seen = layer.attention.causal ? row + 1 : out[1];
        double sum = 0;
        for (int64_t t = 0; t < seen; ++t) {
          double score = 0;
          for (int64_t i = 0; i < width; ++i) score += packed(n, row, 0, h, i) * packed(n, t, 1, h, i);
          p[at(t)] = std::exp(score / std::sqrt(static_cast<double>(width)));
          sum += p[at(t)];
        }
        for (int64_t i = 0; i < width; ++i) {
          double value = 0;
          for (int64_t t = 0; t < seen; ++t) value += p[at(t)] / sum * packed(n, t, 2, h, i);
          of(layer.output)[at((n * out[1] + row) * out[2] + h * width + i)] = value;
        }
      }
}

double Reference::crossEntropy(const Layer& layer) const {
  const size_t classes = at(network_.shape(layer.inputs[0]).back());
  const std::vector<double>& x = of(layer.inputs[0]);
  double loss = 0;
  for (size_t row = 0; row < x.size() / classes; ++row) {
    double sum = 0;
    for (size_t i = 0; i < classes; ++i) sum += std::exp(x[row * classes + i]);
    loss += std::log(sum) - x[row * classes + at(static_cast<int64_t>(of(layer.inputs[1])[row]))];
  }
  return loss / (static_cast<double>(x.size()) / static_cast<double>(classes));
}

}  // namespace muster::testing
