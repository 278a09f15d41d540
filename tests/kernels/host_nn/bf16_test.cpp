// SPDX-License-Identifier: Apache-2.0
// The same networks in bf16: outputs and gradients against the f64 reference, within what rounding to bf16
// costs; what a processor without bf16 answers.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/host/buffer.h"
#include "tests/kernels/host_nn/fixture.h"
#include "tests/kernels/host_nn/networks.h"

namespace muster::testing {
namespace {

/// Skips on processors that do not multiply bf16; Bf16Refusals says what they answer.
class Bf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    OpenNn open;
    if (open.nn->dtypes().size() < 2) GTEST_SKIP() << "this processor does not multiply bf16";
  }

  static void expectRight(const Network& network, int threads = 1) {
    const Status status = network.check();
    ASSERT_TRUE(status.ok()) << status.error().text();
    OpenNn open(threads);
    Pair pair(open, network, 1, Dtype::kBf16);
    pair.expectForward();
    pair.expectGradients(10);
  }
};

/// oneDNN blocks images by 16 channels, and has no fast bf16 code below that.
constexpr ConvolutionCase kConvolutions[] = {
    {"OddChannels", 2, 3, 7, 17, 3, 1, 1, 16}, {"Stride", 2, 3, 9, 18, 3, 2, 1, 32},
    {"OneByOne", 3, 3, 5, 16, 1, 1, 0, 16},    {"OneByOneStride", 2, 4, 6, 20, 1, 2, 0, 16},
    {"BatchOfOne", 1, 3, 6, 16, 3, 1, 1, 16},  {"NoPadding", 2, 1, 6, 33, 3, 1, 0, 48},
    {"WideKernel", 2, 3, 11, 32, 7, 2, 3, 16}, {"Whole", 4, 2, 4, 19, 4, 1, 0, 32},
};

TEST_F(Bf16, ImagesAreRight) {
  for (const ConvolutionCase& c : kConvolutions) {
    SCOPED_TRACE(c.name);
    expectRight(plainNetwork(c));
    expectRight(normNetwork(c));
  }
}

TEST_F(Bf16, ResidualsAreRight) {
  expectRight(residualNetwork(2, 16, false));
  expectRight(residualNetwork(2, 32, true), 3);
  expectRight(manyUsersNetwork(16));
}

TEST_F(Bf16, PoolingIsRight) {
  for (const PoolCase& c : {PoolCase{7, 3, 2, 1, 16}, PoolCase{6, 2, 2, 0, 32}, PoolCase{5, 3, 1, 1, 16}})
    expectRight(poolNetwork(c));
}

TEST_F(Bf16, LinearLayersAreRight) {
  for (Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu})
    for (int64_t width : {1, 5, 16, 37}) expectRight(linearNetwork(activation, width != 5, width));
}

TEST_F(Bf16, TransformersAreRight) {
  expectRight(transformer(2, 5, 12, 3, true));
  expectRight(transformer(1, 3, 34, 2, false), 3);
}

TEST_F(Bf16, AttentionIsRightOverSeveralBlocks) {
  for (bool causal : {true, false}) expectRight(attentionNetwork(causal), 2);
}

/// Every kind of image layer, and every kind of text layer.
std::vector<Network> bothKinds() {
  return {residualNetwork(2, 16, true), transformer(2, 5, 12, 3, true)};
}

TEST_F(Bf16, GivesTheSameBitsTwice) {
  for (int threads : {1, 3})
    for (const Network& network : bothKinds()) {
      OpenNn open(threads);
      std::vector<std::byte> results[2];
      for (std::vector<std::byte>& result : results) {
        Pair pair(open, network, 1, Dtype::kBf16);
        pair.trained({.kind = OptimizerKind::kAdamW, .weightDecay = 0.1}, 4, 1e-2);
        const Buffer& parameters = pair.program().parameters();
        result.assign(host::bytesOf(parameters), host::bytesOf(parameters) + parameters.bytes());
      }
      EXPECT_EQ(results[0], results[1]) << threads << " threads";
    }
}

/// Master weights: steps far below a weight's last place in bf16 add up.
TEST_F(Bf16, KeepsParametersInF32) {
  OpenNn open;
  const Network network = transformer(2, 5, 12, 3, true);
  Pair pair(open, network, 1, Dtype::kBf16);
  for (size_t i = 0; i < network.parameters().size(); ++i)
    EXPECT_EQ(got(pair.program().readParameter(static_cast<int>(i))),
              toFloat(pair.reference().parameters[i]));
  const auto before = got(pair.program().readParameter(0));
  const auto after = pair.trained({.momentum = 0}, 1, 1e-5).front();
  double moved = 0;
  for (size_t i = 0; i < before.size(); ++i)
    moved = std::max(moved, static_cast<double>(std::abs(after[i] - before[i])));
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 1e-4);
}

TEST_F(Bf16, LetsNanThroughFromEveryParameter) {
  OpenNn open;
  for (const Network& network : bothKinds())
    for (size_t i = 0; i < network.parameters().size(); ++i) {
      SCOPED_TRACE(network.parameters()[i].name);
      Pair pair(open, network, 1, Dtype::kBf16);
      const auto count = static_cast<size_t>(network.parameters()[i].elements());
      ASSERT_TRUE(pair.program().writeParameter(static_cast<int>(i), std::vector<float>(count, NAN)).ok());
      ASSERT_TRUE(pair.program().forward(Pass::kTraining).ok());
      EXPECT_TRUE(std::isnan(*pair.program().loss()));
    }
}

TEST_F(Bf16, SaysWhichInstructionsMultiply) {
  OpenNn open;
  const Network network = residualNetwork(2, 16, true);
  const auto f32 = open.compile(network)->implementation();
  const auto bf16 = open.compile(network, {.dtype = Dtype::kBf16})->implementation();
  EXPECT_EQ(f32.find("bf16"), std::string::npos) << f32;
  EXPECT_TRUE(bf16.find(" bf16 avx512_core_bf16") != std::string::npos ||
              bf16.find(" bf16 avx512_core_amx") != std::string::npos)
      << bf16;
}

TEST_F(Bf16, RefusesLayersThatHaveOnlyReferenceCode) {
  OpenNn open;
  const Network network = plainNetwork({"Narrow", 2, 3, 7, 16, 3, 1, 1, 5});
  const auto refused = open.nn->compile(network, {.dtype = Dtype::kBf16});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().text().find("convolution \"a\": oneDNN has only its slow reference code"),
            std::string::npos)
      << refused.error().text();
}

/// Run once more as on a processor without it.
TEST(Bf16Refusals, NameTheInstructionsThatAreMissing) {
  OpenNn open;
  const Network network = transformer(2, 5, 12, 3, true);
  const auto compiled = open.nn->compile(network, {.dtype = Dtype::kBf16});
  const std::vector<Dtype> dtypes = open.nn->dtypes();
  EXPECT_EQ(std::find(dtypes.begin(), dtypes.end(), Dtype::kBf16) != dtypes.end(), compiled.ok());
  if (const char* most = std::getenv("ONEDNN_MAX_CPU_ISA")) {
    ASSERT_FALSE(compiled.ok()) << "oneDNN uses no more than " << most;
  }
  if (compiled.ok()) return;
  EXPECT_EQ(compiled.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(compiled.error().message.find("needs AVX512_BF16 or AMX"), std::string::npos)
      << compiled.error().text();
}

}  // namespace
}  // namespace muster::testing
