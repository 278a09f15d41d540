// SPDX-License-Identifier: Apache-2.0
// train.training, train.determinism and train.inference over the C border: small models on the real CPU,
// large ones in virtual time.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

Json tiny() {
  return Json{{"model", "resnet18"},    {"width", 4},       {"batch_size", 4},
              {"num_classes", 10},      {"image_size", 32}, {"warmup_iterations", 10},
              {"active_iterations", 20}};
}

Json tinyTransformer() {
  return Json{
      {"model", "transformer"}, {"vocabulary", 50}, {"dimension", 16}, {"heads", 2},          {"layers", 1},
      {"feed_forward", 32},     {"sequence", 8},    {"batch_size", 4}, {"optimizer", "adamw"}};
}

Json with(Json params, const Json& more) {
  params.update(more);
  return params;
}

class Training : public ::testing::Test {
 protected:
  CaseResult onHost(const Json& params, const std::string& test = "training") {
    return plugin_.run(host_, test, params, contextFor("host", "cpu0"));
  }
  CaseResult onSim(const std::string& faults, const Json& params, const std::string& test = "training") {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, test, params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"train"};
  RecordingHost host_;
};

TEST_F(Training, TrainsAndTellsOnThisCpu) {
  ASSERT_EQ(onHost(tiny()).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "training");
  EXPECT_EQ(host_.told("step_time").at(0).samples.size(), 20u);
  EXPECT_EQ(host_.told("loss").at(0).samples.size(), 30u);
  EXPECT_EQ(host_.value("loss_fell"), 1);
  EXPECT_LT(host_.value("loss_end"), host_.value("loss_start"));
  EXPECT_EQ(host_.value("diverged_ranks"), 0);
  EXPECT_GT(host_.value("device_memory"), 4 * host_.value("parameters"));
  const auto group = host_.told("throughput").at(0).samples;
  const auto steps = host_.told("step_time").at(0).samples;
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_NEAR(group[i], 4 / steps[i], 1e-9 * group[i]);
  const Json results = *parseJson(host_.artifacts.at("results.json"));
  EXPECT_EQ(results["total_samples"], 80);
  EXPECT_EQ(results["world_size"], 1);
  EXPECT_NEAR(results["total_time_seconds"].get<double>(), std::accumulate(steps.begin(), steps.end(), 0.0),
              1e-9);
}

TEST_F(Training, TrainsATransformerOnThisCpu) {
  ASSERT_EQ(onHost(with(tinyTransformer(), {{"learning_rate", 0.01}, {"active_iterations", 60}})).ran,
            MUSTER_OK)
      << host_.error;
  EXPECT_EQ(host_.value("loss_fell"), 1);
}

TEST_F(Training, GivesEqualBitsForEqualSeeds) {
  for (const Json& params : {tiny(), tinyTransformer()}) {
    RecordingHost host;
    Json own = params;
    own.erase("warmup_iterations");
    own.erase("active_iterations");
    const auto result = plugin_.run(host, "determinism", own, contextFor("host", "cpu0"));
    ASSERT_EQ(result.ran, MUSTER_OK) << host.error;
    plugin_.expectDeclared(host, "determinism");
    EXPECT_EQ(host.value("loss_mismatches"), 0);
    EXPECT_EQ(host.value("gradient_mismatches"), 0);
    EXPECT_EQ(host.value("parameter_mismatches"), 0);
  }
}

TEST_F(Training, SaysWhenTheLossIsNotANumber) {
  EXPECT_EQ(
      onHost(with(tinyTransformer(), {{"optimizer", "sgd"}, {"learning_rate", 100}, {"weight_decay", 10}}))
          .ran,
      MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("the loss is"));
  EXPECT_THAT(host_.error, HasSubstr("learning rate 100"));
}

TEST_F(Training, NamesTheDataThatIsMissing) {
  EXPECT_EQ(onHost(with(tiny(), {{"data_mode", "cifar10"}, {"data_dir", folder_.path().string()}})).ran,
            MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("data_batch_1.bin: no such file"));
  EXPECT_TRUE(host_.measurements.empty()) << "nothing takes its place";
}

TEST_F(Training, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(onHost(with(tinyTransformer(), {{"heads", 3}})).ran, MUSTER_BAD_PARAMETER);
  EXPECT_THAT(host_.error, HasSubstr("3 heads"));
  EXPECT_EQ(onHost(with(tinyTransformer(), {{"data_mode", "fashion-mnist"}})).ran, MUSTER_BAD_PARAMETER);
  EXPECT_THAT(host_.error, HasSubstr("this model reads tokens"));
}

TEST_F(Training, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 3;
  EXPECT_EQ(onHost(with(tiny(), {{"active_iterations", 1000000}})).ran, MUSTER_CANCELLED);
  EXPECT_TRUE(host_.told("throughput").empty());
}

TEST_F(Training, RunsLargeModelsInVirtualTime) {
  const Json params = {{"model", "resnet50"}, {"dtype", "bf16"}, {"batch_size", 256}};
  ASSERT_EQ(onSim("", params).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "training");
  const Told rate = host_.told("throughput").at(0);
  // 118 MB of traffic an image forward and twice that backward, at 3 TB/s.
  EXPECT_NEAR(rate.samples.back(), 7500, 2500);
  EXPECT_GT(rate.time, 100) << "the session began at virtual second 100";
  EXPECT_EQ(host_.value("parameters"), 25557032);
  EXPECT_EQ(host_.value("loss_fell"), 1);
}

TEST_F(Training, IsSlowOnASlowSimulatedDevice) {
  const Json params = {{"model", "resnet50"}, {"dtype", "bf16"}, {"batch_size", 256}};
  ASSERT_EQ(onSim("", params).ran, MUSTER_OK) << host_.error;
  RecordingHost slow;
  const auto path =
      folder_.write("slow.toml", scenarioText("[[fault]]\nkind = \"slow\"\ndevice = 0\nfactor = 0.5\n"
                                              "ops = [\"training\"]\n"));
  ASSERT_EQ(plugin_.run(slow, "training", params, contextFor("sim", "gpu0", path.string())).ran, MUSTER_OK);
  const double healthy = host_.told("throughput").at(0).samples.back();
  EXPECT_NEAR(slow.told("throughput").at(0).samples.back(), healthy / 2, 0.05 * healthy);
}

TEST_F(Training, FindsSilentCorruptionByTrainingTwice) {
  const Json params = {{"model", "resnet50"}, {"dtype", "bf16"}, {"batch_size", 64}};
  ASSERT_EQ(onSim("", params, "determinism").ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("gradient_mismatches"), 0);
  RecordingHost sick;
  const auto path = folder_.write("sick.toml", scenarioText(corruption("training", 7, 4096, 13)));
  ASSERT_EQ(plugin_.run(sick, "determinism", params, contextFor("sim", "gpu0", path.string())).ran,
            MUSTER_OK);
  EXPECT_GT(sick.value("gradient_mismatches"), 0);
  EXPECT_THAT(sick.told("first_fault").at(0).text, HasSubstr("rank 0 on gpu0: iteration 4"));
}

TEST_F(Training, InfersTheSameBitsInEveryPassOnThisCpu) {
  for (const char* model : {"resnet18", "resnet50"}) {
    RecordingHost host;
    const Json params = {{"model", model},        {"width", 4},       {"batch_size", 4},
                         {"num_classes", 10},     {"image_size", 32}, {"warmup_iterations", 2},
                         {"active_iterations", 5}};
    ASSERT_EQ(plugin_.run(host, "inference", params, contextFor("host", "cpu0")).ran, MUSTER_OK)
        << host.error;
    plugin_.expectDeclared(host, "inference");
    EXPECT_EQ(host.value("mismatched_passes"), 0);
    EXPECT_TRUE(host.told("output_error").empty()) << "f32 is what the others are compared with";
    const auto seconds = host.told("pass_time").at(0).samples;
    ASSERT_EQ(seconds.size(), 5u);
    EXPECT_DOUBLE_EQ(host.told("inference_throughput").at(0).samples.at(2), 4 / seconds[2]);
  }
}

/// With rates of f32, to which inference compares, and f16.
std::string inferenceScenario(const std::string& faults) {
  const std::string text = scenarioText(faults);
  const std::string rates = "[figures.gemm]\n";
  const size_t at = text.find(rates) + rates.size();
  return text.substr(0, at) + "f32 = \"60 TFLOP/s\"\nf16 = \"700 TFLOP/s\"\n" + text.substr(at);
}

TEST_F(Training, CountsThePassesThatInferOtherBits) {
  for (const char* dtype : {"f16", "bf16"}) {
    const Json params = {{"dtype", dtype}, {"batch_size", 64}};
    RecordingHost healthy;
    const auto path = folder_.write("healthy.toml", inferenceScenario(""));
    ASSERT_EQ(plugin_.run(healthy, "inference", params, contextFor("sim", "gpu0", path.string())).ran,
              MUSTER_OK)
        << healthy.error;
    plugin_.expectDeclared(healthy, "inference");
    EXPECT_EQ(healthy.value("mismatched_passes"), 0);
    EXPECT_TRUE(healthy.told("first_mismatch").empty());
    RecordingHost sick;
    const auto other = folder_.write("sick.toml", inferenceScenario(corruption("training", 40, 4096, 13)));
    ASSERT_EQ(plugin_.run(sick, "inference", params, contextFor("sim", "gpu0", other.string())).ran,
              MUSTER_OK);
    EXPECT_EQ(sick.value("mismatched_passes"), 3) << "passes 40, 80 and 120 of 150";
    EXPECT_EQ(sick.value("output_error"), 0) << "the first pass is a right one";
    EXPECT_THAT(sick.told("first_mismatch").at(0).text, HasSubstr("pass 40: logit "));
    RecordingHost always;
    const auto all = folder_.write("always.toml", inferenceScenario(corruption("training", 1, 4096, 13)));
    ASSERT_EQ(plugin_.run(always, "inference", params, contextFor("sim", "gpu0", all.string())).ran,
              MUSTER_OK);
    EXPECT_EQ(always.value("mismatched_passes"), 149) << "all but the first";
    EXPECT_GT(always.value("output_error"), 0);
  }
}

TEST_F(Training, InfersFasterThanItTrainsOnASimulatedDevice) {
  const auto path = folder_.write("healthy.toml", inferenceScenario(""));
  const Json params = {{"model", "resnet50"}, {"dtype", "bf16"}, {"batch_size", 256}};
  const auto rateOf = [&](const char* test, const char* metric) {
    RecordingHost host;
    EXPECT_EQ(plugin_.run(host, test, params, contextFor("sim", "gpu0", path.string())).ran, MUSTER_OK);
    return host.told(metric).at(0).samples.back();
  };
  EXPECT_NEAR(rateOf("inference", "inference_throughput") / rateOf("training", "throughput"), 3, 0.5)
      << "a pass forward moves a third of a step's data";
}

TEST_F(Training, InfersInNoTypeThatThisCpuLacks) {
  EXPECT_EQ(onHost({{"dtype", "f16"}}, "inference").ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host_.error, HasSubstr("not in f16"));
}

TEST_F(Training, IsSkippedInATypeThatTheDeviceLacks) {
  EXPECT_EQ(onSim("", {{"dtype", "tf32"}}).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host_.error, HasSubstr("tf32"));
}

TEST_F(Training, NeedsMemoryOnASimulatedDeviceToo) {
  // An error, as on real devices: what does not fit must not pass as something that nobody has.
  EXPECT_EQ(onSim("", {{"model", "resnet50"}, {"dtype", "bf16"}, {"batch_size", 8192}}).ran, MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("out of device memory"));
}

}  // namespace
}  // namespace muster::testing
