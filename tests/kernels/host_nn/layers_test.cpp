// SPDX-License-Identifier: Apache-2.0
// Every layer against the f64 reference: outputs, and gradients by finite differences, at odd sizes.
#include "tests/kernels/host_nn/fixture.h"
#include "tests/kernels/host_nn/networks.h"

namespace muster::testing {
namespace {

void expectRight(const Network& network, int threads = 1) {
  SCOPED_TRACE("threads " + std::to_string(threads));
  const Status status = network.check();
  ASSERT_TRUE(status.ok()) << status.error().text();
  OpenNn open(threads);
  Pair pair(open, network);
  pair.expectForward();
  pair.expectGradients();
}

class Convolutions : public ::testing::TestWithParam<ConvolutionCase> {};
TEST_P(Convolutions, AreRightAlone) {
  expectRight(plainNetwork(GetParam()));
}

TEST_P(Convolutions, AreRightWithNormAndRelu) {
  expectRight(normNetwork(GetParam()));
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
                                           ConvolutionCase{"OnePixel", 4, 16, 1, 32, 3, 1, 1},
                                           ConvolutionCase{"OnePixelOddChannels", 4, 7, 1, 13, 3, 1, 1},
                                           ConvolutionCase{"FourPixels", 4, 16, 2, 32, 3, 1, 1},
                                           ConvolutionCase{"StrideToOnePixel", 4, 16, 2, 24, 3, 2, 1}),
                         [](const auto& info) { return info.param.name; });

#ifdef __x86_64__
/// Its general code takes a hundred times as long: a step of ResNet-18 over small images took 15 s.
TEST(SmallConvolutions, TakeNoGeneralCodeOfOneDnn) {
  OpenNn open;
  for (const ConvolutionCase& c : {ConvolutionCase{"OnePixel", 4, 3, 1, 32, 3, 1, 1},
                                   ConvolutionCase{"FourPixels", 4, 3, 2, 32, 3, 1, 1},
                                   ConvolutionCase{"StrideToOnePixel", 4, 3, 2, 64, 3, 2, 1}}) {
    const std::string used = open.compile(normNetwork(c))->implementation();
    EXPECT_EQ(used.find("any"), std::string::npos) << c.name << ": " << used;  // "ref:any"
  }
}
#endif

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
  expectRight(manyUsersNetwork(6));
}

class Pools : public ::testing::TestWithParam<PoolCase> {};
TEST_P(Pools, AreRight) {
  expectRight(poolNetwork(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Shapes, Pools,
                         ::testing::Values(PoolCase{7, 3, 2, 1}, PoolCase{6, 2, 2, 0}, PoolCase{5, 3, 1, 1},
                                           PoolCase{5, 2, 3, 0}));

TEST(LinearLayers, AreRightWithEachActivation) {
  for (Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu})
    for (int64_t width : {1, 5, 16, 37}) {
      SCOPED_TRACE("activation " + std::to_string(static_cast<int>(activation)) + " width " +
                   std::to_string(width));
      expectRight(linearNetwork(activation, width != 5, width));
    }
}

/// Shapes at which oneDNN's own gradient of the input crashes (linear.cpp), and their neighbours.
TEST(LinearLayers, AreRightWithFewInputsAndManyOutputs) {
  for (int64_t width : {1, 32})
    for (int64_t classes : {1024, 2048}) {
      SCOPED_TRACE("width " + std::to_string(width) + " classes " + std::to_string(classes));
      expectRight(wideClassifier(6, width, classes), 2);
    }
  expectRight(wideClassifier(6, 16, 32000), 2);
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
    const Network network = attentionNetwork(causal);
    OpenNn open(2);
    Pair pair(open, network);
    pair.expectForward();
    pair.expectGradients(12);
  }
}

}  // namespace
}  // namespace muster::testing
