// SPDX-License-Identifier: Apache-2.0
// Whole models in bf16 on this CPU: their losses stay near f32's, step after step.
#include <algorithm>
#include <cmath>
#include <random>

#include "plugins/train/models/model.h"
#include "tests/plugins/train/host_training.h"

namespace muster::train {
namespace {

ModelSpec small(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.batch = 32;
  spec.classes = 10;
  spec.imageSize = 48;
  spec.width = 16;
  spec.vocabulary = 61;
  spec.dimension = 64;
  spec.heads = 4;
  spec.layers = 2;
  spec.feedForward = 128;
  spec.sequence = 32;
  return spec;
}

class Bf16 : public HostTraining {
 protected:
  static constexpr int kSteps = 40;

  void SetUp() override {
    HostTraining::SetUp();
    if (HasFatalFailure()) return;
    const auto dtypes = nn_->dtypes();
    if (std::find(dtypes.begin(), dtypes.end(), Dtype::kBf16) == dtypes.end())
      GTEST_SKIP() << "this processor does not multiply bf16";
  }

  /// One batch, seen again and again: random, so that there is nothing to learn but the batch itself.
  static void feed(const Model& model, Program& program) {
    std::minstd_rand random(7);
    for (const Tensor input : {model.input, model.labels}) {
      const auto count = static_cast<size_t>(elementsOf(model.network.shape(input)));
      const auto limit = static_cast<uint64_t>(model.network.limit(input));
      std::vector<int32_t> indices(count);
      std::vector<float> values(count);
      for (size_t i = 0; i < count; ++i) {
        if (limit > 0)
          indices[i] = static_cast<int32_t>(random() % limit);
        else
          values[i] = static_cast<float>(random() % 2001) / 1000.0F - 1;
      }
      const Status written =
          limit > 0 ? program.writeInput(input, indices) : program.writeInput(input, values);
      ASSERT_TRUE(written.ok()) << written.error().text();
    }
  }

  std::vector<double> lossesIn(const Model& model, Dtype dtype) {
    const ModelSpec spec = small(GetParam());
    auto program = nn_->compile(model.network, {.dtype = dtype});
    EXPECT_TRUE(program.ok()) << program.error().text();
    if (!program.ok()) return {};
    EXPECT_TRUE(initialise(spec, 5, **program).ok());
    feed(model, **program);
    OptimizerSpec optimizer;
    if (spec.readsTokens()) optimizer.kind = OptimizerKind::kAdamW;
    EXPECT_TRUE((*program)->setOptimizer(optimizer).ok());
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_TRUE((*program)->forward(Pass::kTraining).ok());
      losses.push_back(*(*program)->loss());
      EXPECT_TRUE((*program)->backward().ok());
      EXPECT_TRUE((*program)->step(2e-3).ok());
    }
    return losses;
  }
};

/// A layer rounds to bf16 at most seven times (weights, what is normalised and the output; on the way back
/// weights, two gradients and their sum), each time by at most 2^-8. Such errors are independent and add up
/// as a random walk, of which two standard deviations are allowed, as a share of the first loss.
double boundOf(const Model& model) {
  return 2 * std::sqrt(7.0 * static_cast<double>(model.network.layers().size())) * 0x1p-8;
}

TEST_P(Bf16, LossesStayNearThoseOfF32) {
  const Model model = std::move(buildModel(small(GetParam()))).value();
  const std::vector<double> f32 = lossesIn(model, Dtype::kF32);
  const std::vector<double> bf16 = lossesIn(model, Dtype::kBf16);
  ASSERT_EQ(f32.size(), bf16.size());
  EXPECT_LT(f32.back(), 0.5 * f32.front());
  EXPECT_NE(f32, bf16);
  for (size_t i = 0; i < f32.size(); ++i)
    EXPECT_NEAR(bf16[i], f32[i], boundOf(model) * f32.front()) << "step " << i;
}

INSTANTIATE_TEST_SUITE_P(Models, Bf16, ::testing::Values("resnet18", "resnet50", "transformer"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::train
