// SPDX-License-Identifier: Apache-2.0
// Every layer against the f64 reference: outputs, and gradients by finite differences, at odd sizes.
#include "tests/kernels/host_nn/fixture.h"

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

void expectRight(const Network& network, int threads = 1) {
  SCOPED_TRACE("threads " + std::to_string(threads));
  const Status status = network.check();
  ASSERT_TRUE(status.ok()) << status.error().text();
  OpenNn open(threads);
  Pair pair(open, network);
  pair.expectForward();
  pair.expectGradients();
}

struct ConvolutionCase {
  const char* name;
  int64_t batch, inChannels, size, channels, kernel, stride, padding;
};
class Convolutions : public ::testing::TestWithParam<ConvolutionCase> {
 protected:
  /// conv (with bias) -> conv -> pool: the first one's gradients prove the second one's gradient of its
  /// input.
  static Network plainNetwork(const ConvolutionCase& c) {
    Network network;
    Tensor x = network.images(c.batch, c.inChannels, c.size, c.size);
    x = network.add(Convolution{.name = "a", .channels = c.channels, .kernel = 1, .bias = true}, x);
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
};

TEST_P(Convolutions, AreRightAlone) {
  expectRight(plainNetwork(GetParam()));
}

TEST_P(Convolutions, AreRightWithNormAndRelu) {
  const ConvolutionCase& c = GetParam();
  Network network;
  Tensor x = network.images(c.batch, c.inChannels, c.size, c.size);
  x = network.add(
      Convolution{.name = "a", .norm = "na", .channels = c.channels, .kernel = 3, .padding = 1, .relu = true},
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
  expectRight(network);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolutions,
                         ::testing::Values(ConvolutionCase{"OddChannels", 2, 3, 7, 5, 3, 1, 1},
                                           ConvolutionCase{"Stride", 2, 3, 9, 17, 3, 2, 1},
                                           ConvolutionCase{"OneByOne", 3, 3, 5, 16, 1, 1, 0},
                                           ConvolutionCase{"OneByOneStride", 2, 4, 6, 20, 1, 2, 0},
                                           ConvolutionCase{"BatchOfOne", 1, 3, 6, 8, 3, 1, 1},
                                           ConvolutionCase{"NoPadding", 2, 1, 6, 33, 3, 1, 0},
                                           ConvolutionCase{"WideKernel", 2, 3, 11, 6, 7, 2, 3},
                                           ConvolutionCase{"Whole", 4, 2, 4, 19, 4, 1, 0},
                                           ConvolutionCase{"OnePixel", 4, 16, 1, 32, 3, 1, 1}),
                         [](const auto& info) { return info.param.name; });

/// A bottleneck as in ResNets: two paths, one of them with a convolution of its own.
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
  const Tensor again = network.add(Convolution{.name = "c", .norm = "nc", .channels = channels}, x);
  x = network.add(Convolution{.name = "d", .norm = "nd", .channels = channels, .residual = x}, again);
  classify(network, x);
  return network;
}

TEST(Residuals, AreRightAsIdentity) {
  expectRight(residualNetwork(2, 18, false));
}
TEST(Residuals, AreRightThroughAConvolution) {
  expectRight(residualNetwork(2, 7, true));
}
TEST(Residuals, AreRightOnAnyNumberOfThreads) {
  for (int threads : {2, 3, 5}) expectRight(residualNetwork(2, 19, true), threads);
}
TEST(Residuals, TakeMoreThanTwoUsersOfOneTensor) {
  Network network;
  Tensor x = network.images(2, 3, 5, 5);
  x = network.add(Convolution{.name = "s", .norm = "ns", .channels = 6, .relu = true}, x);
  const Tensor a =
      network.add(Convolution{.name = "a", .norm = "na", .channels = 6, .relu = true, .residual = x}, x);
  const Tensor b = network.add(Convolution{.name = "b", .norm = "nb", .channels = 6, .residual = a}, x);
  classify(network, network.add(Convolution{.name = "c", .norm = "nc", .channels = 6, .residual = x}, b));
  expectRight(network);
}

struct PoolCase {
  int64_t size, kernel, stride, padding;
};
class Pools : public ::testing::TestWithParam<PoolCase> {};
TEST_P(Pools, AreRight) {
  Network network;
  Tensor x = network.images(2, 2, GetParam().size, GetParam().size);
  x = network.add(Convolution{.name = "a", .channels = 21, .bias = true}, x);
  x = network.add(MaxPool{.name = "p",
                          .kernel = GetParam().kernel,
                          .stride = GetParam().stride,
                          .padding = GetParam().padding},
                  x);
  classify(network, x);
  expectRight(network);
}
INSTANTIATE_TEST_SUITE_P(Shapes, Pools,
                         ::testing::Values(PoolCase{7, 3, 2, 1}, PoolCase{6, 2, 2, 0}, PoolCase{5, 3, 1, 1},
                                           PoolCase{5, 2, 3, 0}));

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

TEST(LinearLayers, AreRightWithEachActivation) {
  for (Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu})
    for (int64_t width : {1, 5, 16, 37}) {
      SCOPED_TRACE("activation " + std::to_string(static_cast<int>(activation)) + " width " +
                   std::to_string(width));
      expectRight(linearNetwork(activation, width != 5, width));
    }
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

TEST(Transformers, AreRight) {
  expectRight(transformer(2, 5, 12, 3, true));
  expectRight(transformer(1, 3, 34, 2, false));
}
TEST(Transformers, AreRightOnSeveralThreads) {
  expectRight(transformer(2, 4, 16, 2, true), 3);
}

/// More rows than one block of scores holds, causal and not.
TEST(Attentions, AreRightOverSeveralBlocks) {
  for (bool causal : {true, false}) {
    Network network;
    const Tensor tokens = network.indices({1, 150}, 4);
    Tensor x = network.add(Embedding{.name = "t", .positions = "p", .rows = 4, .width = 6}, tokens);
    x = network.add(Attention{.name = "a", .heads = 1, .causal = causal}, x);
    classifyRows(network, x);
    OpenNn open(2);
    Pair pair(open, network);
    pair.expectForward();
    pair.expectGradients(12);
  }
}

}  // namespace
}  // namespace muster::testing
