// SPDX-License-Identifier: Apache-2.0
// The models as networks: published parameter counts, shapes, and how parameters start.
#include "plugins/train/models/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace muster::train {
namespace {

Model built(const ModelSpec& spec) {
  auto model = buildModel(spec);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return std::move(*model);
}

ModelSpec resnet(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.batch = 2;
  return spec;
}

TEST(Models, HaveThePublishedParameterCounts) {
  EXPECT_EQ(built(resnet("resnet18")).network.parameterElements(), 11689512);
  EXPECT_EQ(built(resnet("resnet50")).network.parameterElements(), 25557032);
}

TEST(Models, CostThePublishedOperations) {
  // Multiply-adds of one 224x224 image as torchvision states them; two operations each.
  EXPECT_NEAR(built(resnet("resnet18")).network.forwardFlops() / 2, 2 * 1.814e9, 2 * 0.01e9);
  EXPECT_NEAR(built(resnet("resnet50")).network.forwardFlops() / 2, 2 * 4.089e9, 2 * 0.01e9);
}

TEST(Models, StrideInTheBottlenecksThreeByThree) {
  const Model model = built(resnet("resnet50"));
  for (const Layer& layer : model.network.layers()) {
    const int64_t stride = layer.convolution.stride;
    if (layer.name == "layer2.0.conv1") {
      EXPECT_EQ(stride, 1);
    } else if (layer.name == "layer2.0.conv2") {
      EXPECT_EQ(stride, 2);
    }
  }
}

TEST(Models, CountATransformersParametersByItsSizes) {
  ModelSpec spec;
  spec.name = "transformer";
  spec.batch = 1;
  const int64_t d = 1024;
  const int64_t block = 3 * d * d + 3 * d + d * d + d + 2 * 4 * d * d + 4 * d + d + 4 * d;
  const int64_t ends = 2 * 32000 * d + 512 * d + 2 * d;
  EXPECT_EQ(built(spec).network.parameterElements(), 12 * block + ends);
}

TEST(Models, TakeEverySizeFromTheirSpec) {
  ModelSpec spec = resnet("resnet18");
  spec.width = 8;
  spec.classes = 7;
  spec.imageSize = 33;
  const Model model = built(spec);
  EXPECT_EQ(model.network.shape(model.logits), (Shape{2, 7}));
  EXPECT_EQ(model.network.shape(model.input), (Shape{2, 3, 33, 33}));
  EXPECT_EQ(model.network.parameters().front().shape, (Shape{8, 3, 7, 7}));
}

TEST(Models, NameTheSizeThatDoesNotFit) {
  ModelSpec spec;
  spec.name = "transformer";
  spec.heads = 5;
  const auto wrong = buildModel(spec);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::kUsage);
  EXPECT_NE(wrong.error().message.find("5 heads"), std::string::npos) << wrong.error().text();
  EXPECT_FALSE(buildModel(resnet("vgg")).ok());
}

/// Keeps how each parameter is started.
class StartKeeper : public Program {
 public:
  explicit StartKeeper(const Network& network) : network_(network), starts(network.parameters().size()) {}
  [[nodiscard]] const Network& network() const override { return network_; }
  Status fillParameter(int parameter, const InitialValues& values) override {
    starts[static_cast<size_t>(parameter)] = values;
    return {};
  }
  Status writeParameter(int, std::span<const float>) override { return no(); }
  Result<std::vector<float>> readParameter(int) override { return no(); }
  Result<std::vector<float>> readGradient(int) override { return no(); }
  Result<std::vector<float>> readStatistics(int) override { return no(); }
  Status writeStatistics(int, std::span<const float>) override { return no(); }
  Result<std::vector<float>> readTensor(Tensor) override { return no(); }
  Status writeInput(Tensor, std::span<const float>) override { return no(); }
  Status writeInput(Tensor, std::span<const int32_t>) override { return no(); }
  Status forward(Pass) override { return no(); }
  Status backward(const GradientsReady&) override { return no(); }
  Status setOptimizer(const OptimizerSpec&) override { return no(); }
  Status step(double, double) override { return no(); }
  Result<double> loss() override { return no(); }
  Result<int64_t> correct() override { return no(); }
  Buffer& gradients() override { std::abort(); }
  Buffer& parameters() override { std::abort(); }
  [[nodiscard]] uint64_t gradientElements() const override { return 0; }
  [[nodiscard]] ElementRange range(int) const override { return {}; }
  [[nodiscard]] std::string layout() const override { return ""; }
  [[nodiscard]] uint64_t memoryBytes() const override { return 0; }
  [[nodiscard]] std::string implementation() const override { return ""; }

 private:
  static Error no() { return {ErrorCode::kInternal, "not part of this test", ""}; }
  const Network& network_;

 public:
  std::vector<InitialValues> starts;
};

InitialValues startOf(const Model& model, const StartKeeper& keeper, const std::string& name) {
  for (size_t i = 0; i < keeper.starts.size(); ++i)
    if (model.network.parameters()[i].name == name) return keeper.starts[i];
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(Initialise, StartsAResnetAsTorchvisionDoes) {
  const ModelSpec spec = resnet("resnet18");
  const Model model = built(spec);
  StartKeeper keeper(model.network);
  ASSERT_TRUE(initialise(spec, 1, keeper).ok());
  const InitialValues convolution = startOf(model, keeper, "layer1.0.conv1.weight");
  EXPECT_EQ(convolution.kind, InitialKind::kNormal);
  EXPECT_DOUBLE_EQ(convolution.scale, std::sqrt(2.0 / (64 * 9)));
  for (const char* name : {"fc.weight", "fc.bias"}) {
    EXPECT_EQ(startOf(model, keeper, name).kind, InitialKind::kUniform);
    EXPECT_DOUBLE_EQ(startOf(model, keeper, name).scale, 1 / std::sqrt(512.0));
  }
  EXPECT_EQ(startOf(model, keeper, "layer1.0.bn1.weight").scale, 1);
  EXPECT_EQ(startOf(model, keeper, "layer1.0.bn1.bias").scale, 0);
  std::set<uint64_t> seeds;
  for (const InitialValues& values : keeper.starts) seeds.insert(values.seed);
  EXPECT_EQ(seeds.size(), keeper.starts.size()) << "two parameters start alike";
}

TEST(Initialise, ScalesTheEndsOfATransformersParts) {
  ModelSpec spec;
  spec.name = "transformer";
  spec.batch = 1;
  const Model model = built(spec);
  StartKeeper keeper(model.network);
  ASSERT_TRUE(initialise(spec, 1, keeper).ok());
  EXPECT_DOUBLE_EQ(startOf(model, keeper, "block.3.attn.qkv.weight").scale, 0.02);
  EXPECT_DOUBLE_EQ(startOf(model, keeper, "block.3.mlp.down.weight").scale, 0.02 / std::sqrt(24.0));
  EXPECT_EQ(startOf(model, keeper, "block.3.mlp.down.bias").scale, 0);
  EXPECT_EQ(startOf(model, keeper, "ln_f.weight").scale, 1);
}

TEST(InitialValues, HaveTheirDistribution) {
  for (InitialKind kind : {InitialKind::kNormal, InitialKind::kUniform}) {
    const auto values = computeInitialValues({kind, 0.5, 7}, 3000000);
    double sum = 0;
    double squares = 0;
    for (float value : values) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    const double sigma = kind == InitialKind::kNormal ? 0.5 : 0.5 / std::sqrt(3.0);
    EXPECT_NEAR(sum / 3e6, 0, 5 * sigma / std::sqrt(3e6));
    EXPECT_NEAR(std::sqrt(squares / 3e6), sigma, 0.002 * sigma);
  }
}

TEST(InitialValues, ArePrefixesOfEachOther) {
  const auto all = computeInitialValues({InitialKind::kNormal, 1, 3}, 2500000);
  const auto some = computeInitialValues({InitialKind::kNormal, 1, 3}, 1001);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  EXPECT_NE(computeInitialValues({InitialKind::kNormal, 1, 4}, 1)[0], all[0]);
}

}  // namespace
}  // namespace muster::train
