// SPDX-License-Identifier: Apache-2.0
// A node with eight healthy GPUs (of the fake NVML) where libcudnn.so.9 and libcuda.so.1 are missing: the
// inventory says so, and every stage is tried, none skipped. Each stage which wants to work on a GPU ends
// with that reason; what opens without which library is shown by tests/kernels/cuda/modules_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/muster.h"
#include "tests/fakes/nvml/scenario.h"

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string stage(const std::string& name, const std::string& plugin, const std::string& test,
                  const std::string& rest) {
  return "[[stage]]\nname = \"" + name + "\"\nplugin = \"" + plugin + "\"\ntest = \"" + test +
         "\"\ntimeout = \"60s\"\n" + rest;
}

std::string planOfEveryPlugin() {
  return "schema = 1\nname = \"all\"\nsku = \"auto\"\nbackend = \"cuda\"\n" +
         stage("health", "env", "health",
               "scope = \"node\"\nranks = 1\n[stage.params]\nidle_window = \"20ms\"\nkernel_log = "
               "\"optional\"\n") +
         stage("gemm", "compute", "gemm", "scope = \"device\"\n[stage.params]\nsize = 256\n") +
         stage("memory", "memory", "bandwidth", "scope = \"device\"\n") +
         stage("all-reduce", "collective", "sweep", "scope = \"node\"\n") +
         stage("training", "train", "training", "scope = \"device\"\n[stage.params]\nmodel = \"resnet18\"\n");
}

/// The details of a stage's verdicts of one outcome.
std::vector<std::string> detailsOf(const Record& record, const std::string& name, Outcome outcome) {
  std::vector<std::string> details;
  for (const StageRecord& one : record.stages)
    for (const Verdict& verdict : one.verdicts)
      if (one.name == name && verdict.outcome == outcome) details.push_back(verdict.detail);
  return details;
}

TEST(MissingLibraries, AreToldByTheInventoryAndLeaveEveryStageTried) {
  if (std::string_view(MUSTER_BUILD_CUDA) == "none") GTEST_SKIP() << "this build runs nothing on GPUs";
  if (std::filesystem::exists("/proc/driver/nvidia/version"))
    GTEST_SKIP() << "this machine has an NVIDIA driver: its GPUs are not those of the fake NVML";
  const TempDir dir;
  ProcessOptions options;
  options.timeout = 300;
  options.environment["LD_LIBRARY_PATH"] = (buildDir() / "tests/fakes/nvml").string();
  options.environment[kScenarioVariable] =
      dir.write("scenario.txt", "count 8\ncall nvmlSystemGetCudaDriverVersion_v2 12\n").string();
  options.environment["LD_AUDIT"] = (buildDir() / "tests/fakes/hidden/hidden-library.so").string();
  options.environment["MUSTER_FAKE_HIDDEN"] = "libcudnn.so.9:libcuda.so.1";
  const auto out = dir.path() / "run";
  const auto result = runMuster(
      {"run", dir.write("plan.toml", planOfEveryPlugin()).string(), "--out", out.string()}, options);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const Record record = recordIn(out);
  EXPECT_EQ(record.inventory["software"]["cudnn"], "not found");
  EXPECT_NE(record.inventory["software"]["nccl"], "not found");
  EXPECT_THAT(record.inventory["software"]["fit"].get<std::string>(),
              HasSubstr("libcuda.so.1 of driver 580.95.05 is missing"));
  EXPECT_THAT(detailsOf(record, "health", Outcome::kError), ::testing::IsEmpty());
  EXPECT_THAT(detailsOf(record, "health", Outcome::kPass), ::testing::Not(::testing::IsEmpty()));
  for (const char* name : {"gemm", "memory", "all-reduce", "training"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(detailsOf(record, name, Outcome::kError),
                Contains(HasSubstr(
                    "CUDA found no NVIDIA driver (libcuda.so.1 is not there), though NVML lists this GPU")));
    EXPECT_THAT(detailsOf(record, name, Outcome::kSkipped), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace muster::testing
