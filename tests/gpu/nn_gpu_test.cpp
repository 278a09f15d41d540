// SPDX-License-Identifier: Apache-2.0
// Every layer of training on the GPU against the host: outputs and gradients at odd sizes, in every type.
#include "tests/gpu/nn_pair.h"

namespace muster::gpu {
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

/// Tokens [n, t] as rows of `width`.
Tensor embedded(Network& network, int64_t n, int64_t t, int64_t width, int64_t rows = 11) {
  return network.add(Embedding{.name = "e", .positions = "p", .rows = rows, .width = width},
                     network.indices({n, t}, rows));
}

void expectRight(const Network& network, bool deterministic) {
  const Status status = network.check();
  ASSERT_TRUE(status.ok()) << status.error().text();
  for (Dtype dtype : gpuDtypes()) {
    SCOPED_TRACE(dtypeName(dtype));
    NnPair pair(network, {dtype, deterministic});
    pair.expectOutputs(Pass::kTraining);
    pair.expectGradients();
    pair.expectGradients();  // the second time a graph is captured, the third time replayed
    pair.expectGradients();
    pair.expectStatistics();
    pair.expectOutputs(Pass::kEvaluation);
  }
}
void expectRight(const Network& network) {
  expectRight(network, true);
  expectRight(network, false);
}

struct ConvolutionCase {
  const char* name;
  int64_t batch, inChannels, size, channels, kernel, stride, padding;
};
class GpuConvolutions : public ::testing::TestWithParam<ConvolutionCase> {
 protected:
  static Convolution tested(bool relu) {
    const ConvolutionCase& c = GetParam();
    return {.name = "b",
            .channels = c.channels,
            .kernel = c.kernel,
            .stride = c.stride,
            .padding = c.padding,
            .relu = relu};
  }
};

TEST_P(GpuConvolutions, AreRightAlone) {
  const ConvolutionCase& c = GetParam();
  for (bool bias : {false, true}) {
    Network network;
    Tensor x = network.images(c.batch, c.inChannels, c.size, c.size);
    x = network.add(Convolution{.name = "a", .channels = c.channels, .kernel = 1, .bias = true}, x);
    Convolution spec = tested(true);
    spec.bias = bias;
    classify(network, network.add(spec, x));
    expectRight(network);
  }
}

TEST_P(GpuConvolutions, AreRightWithNorm) {
  const ConvolutionCase& c = GetParam();
  for (bool relu : {false, true}) {
    Network network;
    Tensor x = network.images(c.batch, c.inChannels, c.size, c.size);
    x = network.add(
        Convolution{
            .name = "a", .norm = "na", .channels = c.channels, .kernel = 3, .padding = 1, .relu = true},
        x);
    Convolution spec = tested(relu);
    spec.norm = "nb";
    classify(network, network.add(spec, x));
    expectRight(network);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuConvolutions,
                         ::testing::Values(ConvolutionCase{"OddChannels", 8, 3, 7, 5, 3, 1, 1},
                                           ConvolutionCase{"Stride", 8, 3, 9, 17, 3, 2, 1},
                                           ConvolutionCase{"OneByOne", 8, 3, 5, 16, 1, 1, 0},
                                           ConvolutionCase{"OneByOneStride", 8, 4, 6, 20, 1, 2, 0},
                                           ConvolutionCase{"BatchOfOne", 1, 3, 12, 8, 3, 1, 1},
                                           ConvolutionCase{"NoPadding", 8, 1, 6, 33, 3, 1, 0},
                                           ConvolutionCase{"WideKernel", 8, 3, 23, 6, 7, 2, 3},
                                           ConvolutionCase{"ManyChannels", 4, 3, 6, 300, 1, 1, 0},
                                           ConvolutionCase{"Large", 32, 3, 56, 64, 3, 1, 1}),
                         [](const auto& info) { return info.param.name; });

Network residualNetwork(int64_t batch, int64_t channels, bool project) {
  Network network;
  Tensor x = network.images(batch, 3, 9, 9);
  x = network.add(
      Convolution{.name = "s", .norm = "ns", .channels = channels, .kernel = 3, .padding = 1, .relu = true},
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
  classify(network,
           network.add(Convolution{.name = "d", .norm = "nd", .channels = channels, .residual = x}, again));
  return network;
}

TEST(GpuResiduals, AreRightAsIdentity) {
  expectRight(residualNetwork(8, 18, false));
}
TEST(GpuResiduals, AreRightThroughAConvolution) {
  expectRight(residualNetwork(8, 7, true));
}
TEST(GpuResiduals, TakeMoreThanTwoUsersOfOneTensor) {
  Network network;
  Tensor x = network.images(8, 3, 5, 5);
  x = network.add(Convolution{.name = "s", .norm = "ns", .channels = 6, .relu = true}, x);
  const Tensor a =
      network.add(Convolution{.name = "a", .norm = "na", .channels = 6, .relu = true, .residual = x}, x);
  const Tensor b = network.add(Convolution{.name = "b", .norm = "nb", .channels = 6, .residual = a}, x);
  classify(network, network.add(Convolution{.name = "c", .norm = "nc", .channels = 6, .residual = x}, b));
  expectRight(network);
}

TEST(GpuPools, AreRight) {
  for (const auto& [kernel, stride, padding] : {std::array{2, 2, 0}, {3, 2, 1}, {3, 1, 1}, {2, 3, 0}}) {
    Network network;
    Tensor x = network.images(8, 2, 11, 11);
    x = network.add(Convolution{.name = "a", .channels = 21, .bias = true}, x);
    x = network.add(MaxPool{.name = "p", .kernel = kernel, .stride = stride, .padding = padding}, x);
    classify(network, x);
    expectRight(network);
  }
}

TEST(GpuLinear, IsRightWithEveryEnding) {
  for (int64_t features : {1, 7, 24, 256})
    for (Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
      Network network;
      const Tensor x = embedded(network, 5, 7, 24);
      const Tensor y = network.add(
          Linear{.name = "a", .features = features, .bias = features != 7, .activation = activation}, x);
      classifyRows(network, y);
      expectRight(network);
    }
}

TEST(GpuLinear, AddsResiduals) {
  Network network;
  const Tensor x = embedded(network, 4, 6, 16);
  const Tensor a = network.add(Linear{.name = "a", .features = 16, .residual = x}, x);
  const Tensor b = network.add(Linear{.name = "b", .features = 16, .bias = false, .residual = x}, a);
  classifyRows(network, network.add(Linear{.name = "c", .features = 16, .residual = a}, b));
  expectRight(network);
}

TEST(GpuLayerNorm, IsRightAtAnyWidth) {
  for (int64_t width : {1, 2, 5, 32, 33, 768, 1024}) {
    Network network;
    const Tensor x = embedded(network, 3, 5, width);
    const Tensor a = network.layerNorm("n", x);
    classifyRows(network, network.add(Linear{.name = "l", .features = width, .residual = x}, a));
    expectRight(network);
  }
}

TEST(GpuEmbedding, SumsRepeatedTokens) {
  for (int64_t rows : {1, 2, 11, 1000}) {
    Network network;
    classifyRows(network, embedded(network, 6, 9, 20, rows));
    expectRight(network);
  }
}

struct AttentionCase {
  int64_t batch, time, heads, width;
};
TEST(GpuAttention, IsRightCausalAndNot) {
  for (const AttentionCase& c :
       {AttentionCase{2, 1, 1, 8}, AttentionCase{2, 5, 2, 3}, AttentionCase{3, 64, 2, 16},
        AttentionCase{1, 65, 3, 32}, AttentionCase{2, 200, 2, 64}, AttentionCase{1, 512, 2, 128}})
    for (bool causal : {true, false}) {
      SCOPED_TRACE(std::to_string(c.time) + " tokens, width " + std::to_string(c.width));
      Network network;
      const int64_t width = c.heads * c.width;
      const Tensor x = embedded(network, c.batch, c.time, width);
      const Tensor qkv = network.add(Linear{.name = "qkv", .features = 3 * width}, x);
      classifyRows(network, network.add(Attention{.name = "a", .heads = c.heads, .causal = causal}, qkv));
      expectRight(network);
    }
}

/// All of our kernels on small sizes, for compute-sanitizer.
TEST(GpuNn, SanitizedNetworksAreRight) {
  expectRight(residualNetwork(3, 7, true));
  Network network;
  Tensor x = embedded(network, 2, 9, 24);
  x = network.layerNorm("n", x);
  const Tensor qkv = network.add(Linear{.name = "qkv", .features = 72}, x);
  const Tensor attended = network.add(Attention{.name = "a", .heads = 3}, qkv);
  x = network.add(Linear{.name = "o", .features = 24, .residual = x}, attended);
  classifyRows(network, network.add(Linear{.name = "f", .features = 40, .activation = Activation::kGelu}, x));
  expectRight(network);
}

TEST(GpuClassifier, IsRightAtAnyNumberOfClasses) {
  for (int64_t classes : {2, 3, 255, 1000, 32000, 50257}) {
    Network network;
    classifyRows(network, embedded(network, 8, 16, 64), classes);
    expectRight(network);
  }
}

}  // namespace
}  // namespace muster::gpu
