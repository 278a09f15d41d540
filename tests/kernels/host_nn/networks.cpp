// SPDX-License-Identifier: Apache-2.0
// The small networks in which every layer is tried.
#include "tests/kernels/host_nn/networks.h"

namespace muster::testing {
namespace {

/// Ends a network of images: pooled, classified, with a loss.
void classify(Network& network, Tensor x, int64_t classes = 3) {
  const int64_t batch = network.shape(x)[0];
  const Tensor pooled = network.globalAveragePool(x);
  network.crossEntropy(network.add(Linear{.name = "fc", .features = classes}, pooled),
                       network.indices({batch}, classes));
}

void classifyRows(Network& network, Tensor x, int64_t classes = 5) {
  Shape rows = network.shape(x);
  rows.pop_back();
  const Tensor logits = network.add(Linear{.name = "head", .features = classes}, x);
  network.crossEntropy(logits, network.indices(rows, classes));
}

}  // namespace

Network plainNetwork(const ConvolutionCase& c) {
  Network network;
  Tensor x = network.images(c.batch, c.inChannels, c.size, c.size);
  x = network.add(Convolution{.name = "a", .channels = c.first(), .kernel = 1, .bias = true}, x);
  x = network.add(Convolution{.name = "b",
                              .channels = c.channels,
                              .kernel = c.kernel,
                              .stride = c.stride,
                              .padding = c.padding,
                              .relu = true},
                  x);
  classify(network, x);
  return network;
}

Network normNetwork(const ConvolutionCase& c) {
  Network network;
  Tensor x = network.images(c.batch, c.inChannels, c.size, c.size);
  x = network.add(
      Convolution{.name = "a", .norm = "na", .channels = c.first(), .kernel = 3, .padding = 1, .relu = true},
      x);
  x = network.add(Convolution{.name = "b",
                              .norm = "nb",
                              .channels = c.channels,
                              .kernel = c.kernel,
                              .stride = c.stride,
                              .padding = c.padding,
                              .relu = true},
                  x);
  classify(network, x);
  return network;
}

Network poolNetwork(const PoolCase& c) {
  Network network;
  Tensor x = network.images(2, 2, c.size, c.size);
  x = network.add(Convolution{.name = "a", .channels = c.stem > 0 ? c.stem : 21, .bias = true}, x);
  x = network.add(MaxPool{.name = "p", .kernel = c.kernel, .stride = c.stride, .padding = c.padding}, x);
  classify(network, x);
  return network;
}

Network residualNetwork(int64_t batch, int64_t channels, bool project) {
  Network network;
  Tensor x = network.images(batch, 3, 5, 5);
  x = network.add(
      Convolution{
          .name = "stem", .norm = "ns", .channels = channels, .kernel = 3, .padding = 1, .relu = true},
      x);
  x = network.add(MaxPool{.name = "pool", .kernel = 3, .stride = 2, .padding = 1}, x);
  const Tensor inner = network.add(
      Convolution{.name = "a", .norm = "na", .channels = channels, .kernel = 3, .padding = 1, .relu = true},
      x);
  const Tensor identity =
      project ? network.add(Convolution{.name = "p", .norm = "np", .channels = channels}, x) : x;
  x = network.add(Convolution{.name = "b",
                              .norm = "nb",
                              .channels = channels,
                              .kernel = 3,
                              .padding = 1,
                              .relu = true,
                              .residual = identity},
                  inner);
  const Tensor again =
      network.add(Convolution{.name = "c", .norm = "nc", .channels = channels, .relu = true}, x);
  x = network.add(Convolution{.name = "d", .norm = "nd", .channels = channels, .residual = x}, again);
  classify(network, x);
  return network;
}

Network manyUsersNetwork(int64_t channels) {
  Network network;
  Tensor x = network.images(2, 3, 5, 5);
  x = network.add(Convolution{.name = "s", .norm = "ns", .channels = channels, .relu = true}, x);
  const Tensor a = network.add(
      Convolution{.name = "a", .norm = "na", .channels = channels, .relu = true, .residual = x}, x);
  const Tensor b = network.add(
      Convolution{.name = "b", .norm = "nb", .channels = channels, .relu = true, .residual = a}, x);
  classify(network,
           network.add(Convolution{.name = "c", .norm = "nc", .channels = channels, .residual = x}, b));
  return network;
}

Network linearNetwork(Activation activation, bool bias, int64_t width) {
  Network network;
  const Tensor tokens = network.indices({2, 3}, 7);
  Tensor x = network.add(Embedding{.name = "table", .rows = 7, .width = width}, tokens);
  const Tensor inner =
      network.add(Linear{.name = "a", .features = width + 3, .bias = bias, .activation = activation}, x);
  x = network.add(Linear{.name = "b", .features = width, .bias = bias, .residual = x}, inner);
  classifyRows(network, x);
  return network;
}

Network wideClassifier(int64_t rows, int64_t width, int64_t classes) {
  Network network;
  const Tensor x = network.add(Embedding{.name = "e", .positions = "p", .rows = 11, .width = width},
                               network.indices({1, rows}, 11));
  classifyRows(network, x, classes);
  return network;
}

Network transformer(int64_t batch, int64_t time, int64_t width, int64_t heads, bool causal) {
  Network network;
  const Tensor tokens = network.indices({batch, time}, 11);
  Tensor x = network.add(Embedding{.name = "wte", .positions = "wpe", .rows = 11, .width = width}, tokens);
  for (const std::string layer : {"h0.", "h1."}) {
    Tensor y = network.layerNorm(layer + "ln1", x);
    y = network.add(Linear{.name = layer + "qkv", .features = 3 * width}, y);
    y = network.add(Attention{.name = layer + "attention", .heads = heads, .causal = causal}, y);
    x = network.add(Linear{.name = layer + "proj", .features = width, .residual = x}, y);
    y = network.layerNorm(layer + "ln2", x);
    y = network.add(Linear{.name = layer + "fc", .features = 2 * width, .activation = Activation::kGelu}, y);
    x = network.add(Linear{.name = layer + "out", .features = width, .residual = x}, y);
  }
  classifyRows(network, network.layerNorm("lnf", x), 11);
  return network;
}

Network attentionNetwork(bool causal) {
  Network network;
  const Tensor tokens = network.indices({1, 150}, 4);
  Tensor x = network.add(Embedding{.name = "t", .positions = "p", .rows = 4, .width = 6}, tokens);
  x = network.add(Attention{.name = "a", .heads = 1, .causal = causal}, x);
  classifyRows(network, x);
  return network;
}

}  // namespace muster::testing
