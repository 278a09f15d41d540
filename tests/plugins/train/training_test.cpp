// SPDX-License-Identifier: Apache-2.0
// train.training and train.determinism over the C border: small models on the real CPU, large ones in virtual
// time.
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
  EXPECT_THAT(sick.told("first_mismatch").at(0).text, HasSubstr("rank 0 on gpu0: iteration 4"));
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
