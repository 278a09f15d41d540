// SPDX-License-Identifier: Apache-2.0
// Small models trained on an emulated GPU beside the host: loss curves, the same bits twice, graphs that
// replay, libraries that lack an epilogue. Layers one by one are in tests/gpu/nn_gpu_test.cpp.
#include <cudnn.h>
#include <gmock/gmock.h>

#include <cmath>

#include "tests/gpu/nn_pair.h"
#include "tests/kernels/cuda/emulation/libraries.h"

namespace muster::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 6;

/// How far the loss may be from the host's after some steps, as a share.
double shareOf(Dtype dtype) {
  return dtype == Dtype::kBf16 ? 0.1 : 1e-3;
}

/// A residual network of images with its pools.
Network imageNetwork() {
  Network network;
  Tensor x = network.images(6, 3, 10, 10);
  const auto conv = [&](const char* name, const char* norm, Tensor from, Tensor residual) {
    Convolution spec{.name = name, .norm = norm, .channels = 12, .kernel = 3, .padding = 1, .relu = true};
    spec.residual = residual;
    return network.add(spec, from);
  };
  x = conv("stem", "stem.norm", x, {});
  x = network.add(MaxPool{.name = "pool", .kernel = 3, .stride = 2, .padding = 1}, x);
  const Tensor inner = conv("a", "a.norm", x, {});
  x = network.globalAveragePool(conv("b", "b.norm", inner, x));
  network.crossEntropy(network.add(Linear{.name = "fc", .features = 5}, x), network.indices({6}, 5));
  return network;
}

/// One block of a transformer.
Network textNetwork() {
  Network network;
  Tensor x = network.add(Embedding{.name = "e", .positions = "p", .rows = 19, .width = 24},
                         network.indices({3, 10}, 19));
  const Tensor qkv = network.add(Linear{.name = "qkv", .features = 72}, network.layerNorm("n1", x));
  const Tensor attended = network.add(Attention{.name = "a", .heads = 3}, qkv);
  x = network.add(Linear{.name = "o", .features = 24, .residual = x}, attended);
  const Tensor inner = network.add(Linear{.name = "up", .features = 40, .activation = Activation::kGelu},
                                   network.layerNorm("n2", x));
  x = network.add(Linear{.name = "down", .features = 24, .residual = x}, inner);
  network.crossEntropy(network.add(Linear{.name = "head", .features = 19}, x), network.indices({3, 10}, 19));
  return network;
}

struct Case {
  const char* name;
  Network (*network)();
  OptimizerKind optimizer;
  double rate;
};
class EmulatedTraining : public ::testing::TestWithParam<Case> {
 protected:
  static std::vector<double> curve(Program& program) {
    OptimizerSpec spec;
    spec.kind = GetParam().optimizer;
    spec.weightDecay = 0.01;
    EXPECT_TRUE(program.setOptimizer(spec).ok());
    std::vector<double> losses;
    for (int i = 0; i < kSteps; ++i) {
      for (const Status& status :
           {program.forward(Pass::kTraining), program.backward(), program.step(GetParam().rate)})
        EXPECT_TRUE(status.ok()) << status.error().text();
      const auto loss = program.loss();
      losses.push_back(loss.ok() ? *loss : NAN);
    }
    return losses;
  }
  /// The bits of every parameter.
  static std::vector<std::vector<float>> parametersOf(Program& program) {
    std::vector<std::vector<float>> all;
    for (size_t i = 0; i < program.network().parameters().size(); ++i)
      all.push_back(readOf(program.readParameter(static_cast<int>(i))));
    return all;
  }
};

/// Rounding grows from step to step: the first loss is as near as one pass is, the last tells the same story.
TEST_P(EmulatedTraining, FollowsTheHostsLoss) {
  for (Dtype dtype : trainingDtypes()) {
    SCOPED_TRACE(dtypeName(dtype));
    NnPair pair(GetParam().network(), {dtype, false});
    const auto found = curve(pair.gpu()), wanted = curve(pair.host());
    EXPECT_NEAR(found[0], wanted[0], boundsOf(dtype).output * (1 + wanted[0]));
    for (size_t i = 1; i < found.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], shareOf(dtype) * (0.2 + wanted[i])) << i;
    EXPECT_LT(found.back(), found.front());
  }
}

TEST_P(EmulatedTraining, GivesTheSameBitsTwiceAndReplaysGraphs) {
  for (Dtype dtype : trainingDtypes()) {
    SCOPED_TRACE(dtypeName(dtype));
    std::vector<std::vector<std::vector<float>>> runs;
    for (int run = 0; run < 2; ++run) {
      NnPair pair(GetParam().network(), {dtype, true});
      curve(pair.gpu());
      runs.push_back(parametersOf(pair.gpu()));
      EXPECT_NE(pair.gpu().implementation().find("CUDA graphs of the steps"), std::string::npos);
    }
    EXPECT_EQ(runs[0], runs[1]);
  }
}

/// cuBLASLt sums a bias' gradient for some types only; our own kernel does it for the others.
TEST_P(EmulatedTraining, SumsBiasGradientsItselfWhereTheLibraryDoesNot) {
  emulation::offerBiasGradients(false);
  for (Dtype dtype : trainingDtypes()) {
    SCOPED_TRACE(dtypeName(dtype));
    NnPair pair(GetParam().network(), {dtype, true});
    pair.expectGradients();
  }
  emulation::offerBiasGradients(true);
}

TEST_P(EmulatedTraining, LetsNoNanGoByUnseen) {
  for (Dtype dtype : gpuDtypes()) {
    NnPair pair(GetParam().network(), {dtype, true});
    auto values = readOf(pair.gpu().readParameter(0));
    for (float& value : values) value = NAN;
    ASSERT_TRUE(pair.gpu().writeParameter(0, values).ok());
    ASSERT_TRUE(pair.gpu().forward(Pass::kTraining).ok());
    EXPECT_TRUE(std::isnan(*pair.gpu().loss()));
  }
}

/// What a network is made of on an emulated GPU.
std::string implementationOf(const Network& network, const ProgramOptions& options) {
  OpenedNn on(true);
  return on.compile(network, options)->implementation();
}

TEST(EmulatedAttention, SaysWhyItIsNotFused) {
  EXPECT_THAT(
      implementationOf(textNetwork(), {Dtype::kBf16, true}),
      HasSubstr(
          "attention by batched products (not fused: attention: cudnnBackendFinalize(raw_): an error of "
          "the emulated cuDNN"));
  EXPECT_THAT(implementationOf(textNetwork(), {Dtype::kF32, true}),
              HasSubstr("attention by batched products (not fused: attention is fused in bf16 only)"));
}

/// A driver that fails, say, must not look like a GPU without fused attention.
TEST(EmulatedAttention, FailsWhereCudnnFailsOtherwise) {
  for (const cudnnStatus_t status : {CUDNN_STATUS_INTERNAL_ERROR, CUDNN_STATUS_BAD_PARAM}) {
    emulation::answerGraphs(status);
    OpenedNn on(true);
    const auto compiled = on.nn->compile(textNetwork(), {Dtype::kBf16, true});
    EXPECT_FALSE(compiled.ok());
    if (compiled.ok()) continue;
    EXPECT_EQ(compiled.error().code, ErrorCode::kInternal);
    EXPECT_THAT(compiled.error().text(), HasSubstr("attention"));
  }
  emulation::answerGraphs(0);
}

/// Of the emulated engines 62 rounds its inputs to TF32 and 20 adds in any order; 5 makes no plan.
TEST(EmulatedConvolutions, TakeEnginesThatKeepTheTypesPromises) {
  const std::string exact = implementationOf(imageNetwork(), {Dtype::kF32, true});
  for (const char* product : {"output", "input gradient", "filter gradient"})
    EXPECT_THAT(exact, HasSubstr(std::string("convolution ") + product + " by cudnn engine 1,"));
  EXPECT_THAT(exact, Not(HasSubstr("engine 62")));
  EXPECT_THAT(implementationOf(imageNetwork(), {Dtype::kF32, false}), HasSubstr("output by cudnn engine 20"));
  EXPECT_THAT(implementationOf(imageNetwork(), {Dtype::kTf32, true}),
              HasSubstr("output by cudnn engine 62 (k2=17 k14=3)"));
}

INSTANTIATE_TEST_SUITE_P(Models, EmulatedTraining,
                         ::testing::Values(Case{"Images", imageNetwork, OptimizerKind::kSgd, 0.02},
                                           Case{"Text", textNetwork, OptimizerKind::kAdamW, 2e-3}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster::gpu
