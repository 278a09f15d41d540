// SPDX-License-Identifier: Apache-2.0
// What our models compute on this CPU beside what PyTorch computed in f64: losses, every gradient,
// updates. golden/make_golden.py made the files, and starts its models by the same formula.
#include <cmath>

#include "kernels/spec/pattern.h"
#include "plugins/train/models/model.h"
#include "tests/plugins/train/host_training.h"

namespace muster::train {
namespace {

constexpr double kTolerance = 1e-4;
/// As in make_golden.py, which says why these.
constexpr const char* kImages = "images 107";

/// FNV-1a (Fowler, Noll, Vo).
uint64_t nameKey(const std::string& name) {
  uint64_t key = 0xcbf29ce484222325u;
  for (char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return key;
}

std::vector<float> values(const std::string& name, int64_t count, double scale) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    const float unit = static_cast<float>(scatter(nameKey(name) + i) >> 40) / 0x1p23F - 1;
    out[i] = unit * static_cast<float>(scale);
  }
  return out;
}

std::vector<int32_t> indices(const std::string& name, int64_t count, uint64_t limit) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(scatter(nameKey(name) + i) % limit);
  return out;
}

std::vector<float> startOf(const Parameter& parameter) {
  const int64_t count = parameter.elements();
  if (parameter.shape.size() > 1)
    return values(parameter.name, count, std::sqrt(3.0 / static_cast<double>(count / parameter.shape[0])));
  if (parameter.role != ParameterRole::kScale) return values(parameter.name, count, 0.1);
  const float middle = parameter.name.ends_with("bn3.weight") ? 0.125F : 0.5F;
  auto scales = values(parameter.name, count, middle / 4);
  for (float& value : scales) value = middle + value;
  return scales;
}

ModelSpec specOf(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.batch = 4;
  spec.classes = 10;
  spec.imageSize = 48;
  spec.width = 8;
  spec.vocabulary = 97;
  spec.dimension = 32;
  spec.heads = 4;
  spec.layers = 2;
  spec.feedForward = 64;
  spec.sequence = 16;
  return spec;
}

/// A tensor beside what PyTorch says of it: elements within the tolerance of their own and of the mean
/// magnitude (an element near zero is the difference of larger ones), and the sums of all.
void expectLike(const std::vector<float>& ours, const Json& golden, const std::string& what) {
  double sum = 0;
  double magnitude = 0;
  for (float value : ours) {
    sum += value;
    magnitude += std::fabs(value);
  }
  const auto all = golden["magnitude"].get<double>();
  const double mean = all / static_cast<double>(ours.size());
  // A bias before a normalisation or a softmax that does not care has no gradient but rounding.
  const double floor = 1e-7;
  EXPECT_NEAR(magnitude, all, kTolerance * all + floor * static_cast<double>(ours.size())) << what;
  EXPECT_NEAR(sum, golden["sum"].get<double>(), kTolerance * all + floor * static_cast<double>(ours.size()))
      << what;
  for (const auto& [place, value] : golden["samples"].items()) {
    const auto wanted = value.get<double>();
    EXPECT_NEAR(ours[std::stoul(place)], wanted, kTolerance * (std::fabs(wanted) + mean) + floor)
        << what << "[" << place << "]";
  }
}

class Golden : public HostTraining {
 protected:
  void SetUp() override {
    HostTraining::SetUp();
    if (HasFatalFailure()) return;
    const auto path =
        testing::sourceDir() / "tests/plugins/train/golden" / (std::string(GetParam()) + ".json");
    golden_ = *parseJson(testing::readWhole(path));
  }

  void start(Program& program) {
    for (size_t i = 0; i < program.network().parameters().size(); ++i)
      ASSERT_TRUE(
          program.writeParameter(static_cast<int>(i), startOf(program.network().parameters()[i])).ok());
    OptimizerSpec optimizer;
    if (golden_["optimizer"] == "sgd") {
      optimizer.weightDecay = 1e-4;
    } else {
      optimizer.kind = OptimizerKind::kAdamW;
      optimizer.epsilon = 1e-5;
      optimizer.weightDecay = 0.01;
      optimizer.decayAll = false;
    }
    ASSERT_TRUE(program.setOptimizer(optimizer).ok());
  }

  static void feed(const Model& model, const ModelSpec& spec, Program& program) {
    const int64_t inputs = elementsOf(model.network.shape(model.input));
    const int64_t labels = elementsOf(model.network.shape(model.labels));
    if (spec.readsTokens()) {
      ASSERT_TRUE(
          program.writeInput(model.input, std::span<const int32_t>(indices("input", inputs, 97))).ok());
      ASSERT_TRUE(
          program.writeInput(model.labels, std::span<const int32_t>(indices("labels", labels, 97))).ok());
    } else {
      ASSERT_TRUE(program.writeInput(model.input, std::span<const float>(values(kImages, inputs, 1))).ok());
      ASSERT_TRUE(
          program.writeInput(model.labels, std::span<const int32_t>(indices("labels", labels, 10))).ok());
    }
  }

  Json golden_;
};

TEST_P(Golden, LossesGradientsAndUpdatesAreThoseOfPyTorch) {
  const ModelSpec spec = specOf(GetParam());
  auto model = buildModel(spec);
  ASSERT_TRUE(model.ok()) << model.error().text();
  auto program = nn_->compile(model->network, {});
  ASSERT_TRUE(program.ok()) << program.error().text();
  start(**program);
  const auto& parameters = model->network.parameters();
  ASSERT_EQ(parameters.size(), golden_["gradients"].size());
  for (size_t step = 0; step < golden_["losses"].size(); ++step) {
    feed(*model, spec, **program);
    ASSERT_TRUE((*program)->forward(Pass::kTraining).ok());
    const auto loss = (*program)->loss();
    ASSERT_TRUE(loss.ok());
    const auto wanted = golden_["losses"][step].get<double>();
    EXPECT_NEAR(*loss, wanted, kTolerance * wanted) << "step " << step;
    if (step == 0) expectLike(*(*program)->readTensor(model->logits), golden_["logits"], "logits");
    ASSERT_TRUE((*program)->backward().ok());
    for (size_t i = 0; step == 0 && i < parameters.size(); ++i)
      expectLike(*(*program)->readGradient(static_cast<int>(i)), golden_["gradients"][parameters[i].name],
                 "gradient of " + parameters[i].name);
    ASSERT_TRUE((*program)->step(golden_["learning_rate"].get<double>(), 1).ok());
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    expectLike(*(*program)->readParameter(static_cast<int>(i)), golden_["parameters"][parameters[i].name],
               parameters[i].name);
  const auto& statistics = model->network.statistics();
  EXPECT_EQ(2 * statistics.size(), golden_["statistics"].size());
  for (size_t i = 0; i < statistics.size(); ++i) {
    const auto both = *(*program)->readStatistics(static_cast<int>(i));
    const auto half = both.begin() + statistics[i].channels;
    expectLike({both.begin(), half}, golden_["statistics"][statistics[i].name + ".running_mean"],
               statistics[i].name);
    expectLike({half, both.end()}, golden_["statistics"][statistics[i].name + ".running_var"],
               statistics[i].name);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::Values("resnet18", "resnet50", "transformer"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::train
