// SPDX-License-Identifier: Apache-2.0
// Training by several ranks, started as a user would: real data on this CPU, and whole nodes in simulation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

std::vector<double> samplesOf(const Record& record, const std::string& metric) {
  for (const StageRecord& stage : record.stages)
    for (const Measurement& m : stage.measurements)
      if (m.metric == metric) return m.samples;
  ADD_FAILURE() << "no measurement " << metric;
  return {};
}

std::string trainingStage(const std::string& backend, const std::string& sku, const std::string& test,
                          const std::string& params) {
  return "schema = 1\nname = \"training\"\nsku = \"" + sku + "\"\nbackend = \"" + backend +
         "\"\nallow_unknown_sku = true\n[[stage]]\nname = \"train\"\nplugin = \"train\"\ntest = \"" + test +
         "\"\nscope = \"node\"\ntimeout = \"8m\"\n" + params;
}

TEST(Training, TwoRanksLearnToTellClothesApart) {
  ASSERT_TRUE(std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
      << "apt-get install dataset-fashion-mnist";
  TempDir dir;
  const auto path = dir.write("plan.toml", trainingStage("host", "host", "training", R"(ranks = 2
[stage.params]
model = "resnet18"
data_mode = "fashion-mnist"
num_classes = 10
width = 16
epochs = 2
samples = 12800
test_samples = 4000
optimizer = "adamw"
learning_rate = 0.001
warmup_iterations = 20
solo_iterations = 2
[[stage.expect]]
metric = "train.test_accuracy"
min = 0.8
source = "goal of this test"
remedy = "compare with tests/plugins/train/golden"
)"));
  const auto result = runMuster({"run", path.string(), "--out", (dir.path() / "run").string()},
                                ProcessOptions{{}, "", 600, {}});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  EXPECT_GE(samplesOf(record, "train.test_accuracy").at(0), 0.8);
  EXPECT_EQ(samplesOf(record, "train.diverged_ranks").at(0), 0);
  EXPECT_EQ(samplesOf(record, "train.step_time").size(), 2u * 12800 / 64 - 20);
  EXPECT_TRUE(verdictsOf(record, Outcome::kError).empty());
}

TEST(Training, TwoRanksTrainTwiceInTheSameBits) {
  TempDir dir;
  const auto path = dir.write("plan.toml", trainingStage("host", "host", "determinism", R"(ranks = 2
[stage.params]
width = 8
batch_size = 4
num_classes = 10
image_size = 32
bucket_bytes = "64 KiB"
)"));
  std::string parameters;
  for (const char* run : {"first", "second"}) {
    const auto result =
        runMuster({"run", path.string(), "--out", (dir.path() / run).string(), "--seed", "7"});
    EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
    const Record record = recordIn(dir.path() / run);
    EXPECT_EQ(samplesOf(record, "train.diverged_ranks").at(0), 0);
    for (const StageRecord& s : record.stages)
      for (const Measurement& m : s.measurements)
        if (m.metric == "train.final_parameters") {
          EXPECT_TRUE(parameters.empty() || parameters == m.text) << "two runs of one seed end differently";
          parameters = m.text;
        }
  }
  EXPECT_EQ(parameters.size(), 16u);
}

TEST(Training, EightSimulatedGpusTrainAsOneGroup) {
  TempDir dir;
  const auto path = dir.write("plan.toml", trainingStage("cuda", "auto", "training", R"([stage.params]
model = "resnet50"
dtype = "bf16"
batch_size = 256
)"));
  const auto result = runMuster({"run", path.string(), "--simulate", scenario("h100x8-cluster-healthy"),
                                 "--out", (dir.path() / "run").string()});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  const auto throughput = samplesOf(record, "train.throughput");
  ASSERT_EQ(throughput.size(), 100u);
  // MLPerf Training v3.0: 56,083 images/s on eight H100.
  EXPECT_NEAR(throughput.back(), 56083, 0.25 * 56083);
  int told = 0;
  for (const Measurement& m : record.stages.back().measurements)
    told += m.metric == "train.throughput" ? 1 : 0;
  EXPECT_EQ(told, 1) << "what the group reaches is counted once";
}

TEST(Training, ASimulatedGpuWhoseOwnGradientsAreWrongNamesItself) {
  TempDir dir;
  const auto path = dir.write("plan.toml", trainingStage("cuda", "auto", "determinism", R"([stage.params]
model = "resnet50"
dtype = "bf16"
batch_size = 64
)"));
  for (const char* part : {"h100x8-healthy", "h100x8-cluster-healthy"})
    dir.write(std::string(part) + ".toml", readWhole(scenario(part)));
  const auto sick = dir.write("sick.toml", R"(schema = 1
name = "sick"
include = ["h100x8-cluster-healthy.toml"]
[[fault]]
kind = "corruption"
node = 0
device = 4
every = 7
offset = 4096
bit = 13
ops = ["training"]
)");
  const auto result =
      runMuster({"run", path.string(), "--simulate", sick.string(), "--out", (dir.path() / "run").string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  std::vector<std::string> faults;
  for (const Measurement& m : record.stages.back().measurements)
    if (m.metric == "train.first_fault") faults.push_back(m.text);
  EXPECT_THAT(faults, ::testing::ElementsAre(::testing::EndsWith(", from rank 4")));
  for (const Verdict& v : verdictsOf(record, Outcome::kFail)) EXPECT_EQ(v.device, "gpu4") << v.detail;
}

}  // namespace
}  // namespace muster::testing
