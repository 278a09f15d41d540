// SPDX-License-Identifier: Apache-2.0
// Every graph that training makes for the shipped models, planned by the toolkit's real cuDNN for GPUs that
// need not be here: which engines it has for them, and how much workspace they take. This proves that plans
// exist; it computes nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

#include "runner/core/text.h"
#include "tests/kernels/cuda/deviceless/gpus.h"
#include "tests/kernels/cuda/deviceless/shipped.h"
#include "tests/support/process.h"

namespace muster::deviceless {
namespace {

using cuda::DnnTarget;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class DevicelessPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto& gpus = absentGpus();
    if (!gpus.ok() && gpus.error().code == ErrorCode::kUnsupported) GTEST_SKIP() << gpus.error().message;
    ASSERT_TRUE(gpus.ok()) << gpus.error().text();
  }
  static const AbsentGpu& gpu(const std::string& name) {
    const auto& all = *absentGpus();
    return *std::find_if(all.begin(), all.end(), [&](const AbsentGpu& one) { return one.name == name; });
  }
};

/// "62,45 131": engines in the order of their plans, and the largest workspace.
std::string textOf(const std::vector<cuda::DnnPlan>& plans) {
  std::vector<std::string> engines;
  uint64_t workspace = 0;
  for (const cuda::DnnPlan& plan : plans) {
    const std::string engine = std::to_string(plan.engine);
    if (std::find(engines.begin(), engines.end(), engine) == engines.end()) engines.push_back(engine);
    workspace = std::max(workspace, plan.workspaceBytes);
  }
  return fmt::format("{} {}", join(engines, ","), workspace);
}

/// One row of a table: a cell for each GPU. Both ways of a cell where deterministic mode differs.
using PlanText = std::function<Result<std::string>(const DnnTarget&)>;
std::string rowOf(const std::string& name, Dtype dtype, const PlanText& plan) {
  std::string row = name;
  for (const AbsentGpu& gpu : *absentGpus()) {
    std::array<std::string, 2> cells;
    for (const bool deterministic : {false, true}) {
      auto text = plan(gpu.target(dtype, deterministic));
      EXPECT_TRUE(text.ok()) << name << " on " << gpu.name << (deterministic ? ", deterministic: " : ": ")
                             << text.error().text();
      cells[deterministic ? 1 : 0] = text.ok() ? *text : "none";
    }
    row += " | " + (cells[0] == cells[1] ? cells[0] : cells[0] + " (same bits: " + cells[1] + ")");
  }
  return row;
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::erase(lines, "");
  return lines;
}

/// The rows are those of the golden file of this very cuDNN; MUSTER_WRITE_GOLDEN=1 writes it.
void expectGolden(const std::string& topic, const std::vector<std::string>& rows) {
  const size_t version = cudnnGetVersion();
  const std::string name = fmt::format("{}-{}.{}.{}-cuda{}.txt", topic, version / 10000, version / 100 % 100,
                                       version % 100, cudnnGetCudartVersion() / 1000);
  const auto path = testing::sourceDir() / "tests/kernels/cuda/deviceless/golden" / name;
  std::vector<std::string> table = {
      "# cuDNN's engines for each graph in the order of its suggestions, and the largest workspace in bytes",
      "graph | A100 | H100 | B200 | B300"};
  table.insert(table.end(), rows.begin(), rows.end());
  if (const char* write = std::getenv("MUSTER_WRITE_GOLDEN"); write != nullptr && *write == '1') {
    std::ofstream(path) << join(table, "\n") << "\n";
    GTEST_SKIP() << "wrote " << path;
  }
  if (!std::filesystem::exists(path)) {
    std::printf("%s\n", join(table, "\n").c_str());
    GTEST_SKIP() << "every graph has plans; there is no table of this cuDNN to compare them with: " << name;
  }
  const std::vector<std::string> wanted = linesOf(testing::readWhole(path));
  for (const std::string& line : wanted)
    EXPECT_THAT(table, Contains(line)) << name << " has a line that is no longer so:\n- " << line;
  for (const std::string& line : table)
    EXPECT_THAT(wanted, Contains(line)) << name << " lacks a line:\n+ " << line;
}

TEST_F(DevicelessPlans, AreThereForEveryShippedConvolution) {
  std::vector<std::string> rows;
  for (const auto& [name, convolution] : shippedConvolutions())
    rows.push_back(
        rowOf(name, convolution.dtype, [&, c = convolution](const DnnTarget& target) -> Result<std::string> {
          cuda::ConvolutionGraph graph(target, c.shape, c.product, c.added);
          MUSTER_CHECK_OK(graph.build());
          return textOf(graph.plans());
        }));
  EXPECT_GT(rows.size(), 200u);
  expectGolden("convolutions", rows);
}

TEST_F(DevicelessPlans, AreThereForEveryShippedAttention) {
  std::vector<std::string> rows;
  for (const auto& [name, shape] : shippedAttention())
    for (const bool backward : {false, true})
      rows.push_back(rowOf(name + (backward ? " backward" : " forward"), Dtype::kBf16,
                           [&, s = shape](const DnnTarget& target) -> Result<std::string> {
                             cuda::AttentionGraphs graphs(target, s);
                             cuda::DnnGraph& graph = backward ? graphs.backward() : graphs.forward();
                             MUSTER_CHECK_OK(graph.build());
                             return textOf(graph.plans());
                           }));
  EXPECT_GE(rows.size(), 8u);
  expectGolden("attention", rows);
}

cuda::AttentionShape attention(int64_t width) {
  return {{4, 512, 8, width}, true, 0.125f};
}

TEST_F(DevicelessPlans, AreRefusedForWidthsThatNoEngineTakes) {
  for (const AbsentGpu& gpu : *absentGpus()) {
    const Status status = cuda::AttentionGraphs(gpu.target(Dtype::kBf16, false), attention(36)).build();
    ASSERT_FALSE(status.ok()) << gpu.name;
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported) << gpu.name << ": " << status.error().text();
    EXPECT_THAT(status.error().message, HasSubstr("cuDNN has no engine for it")) << gpu.name;
  }
}

/// cuDNN's own table of attention: more than 128 elements a head have a gradient on Hopper alone.
TEST_F(DevicelessPlans, AreRefusedForTheGradientOfWideHeads) {
  for (const char* name : {"a100", "b200"})
    for (const int64_t width : {160, 256}) {
      cuda::AttentionGraphs graphs(gpu(name).target(Dtype::kBf16, false), attention(width));
      const Status status = graphs.backward().build();
      ASSERT_FALSE(status.ok()) << name << " " << width;
      EXPECT_EQ(status.error().code, ErrorCode::kUnsupported) << status.error().text();
    }
}

/// Only refusals are "unsupported": attention then takes another way. A graph that is wrong must fail.
TEST_F(DevicelessPlans, FailLoudlyForAWrongGraph) {
  const cuda::DnnTarget target = gpu("h100").target(Dtype::kBf16, false);
  cuda::DnnGraph empty(target);
  const Status none = empty.build();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kInternal) << none.error().text();

  cuda::DnnGraph wrong(target);
  const cuda::GraphTensor tensor{{8, 64, 0, 0}, {64, 1, 64, 64}, CUDNN_DATA_BFLOAT16, cuda::Holding::kMemory};
  const int x = wrong.tensor(tensor);
  wrong.convolution(cuda::ConvolutionProduct::kOutput, x, x, x, 1, 0, false);
  const Status refused = wrong.build();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInternal) << refused.error().text();
}

/// Engine and knobs are what `implementation()` tells of a plan: no two plans of a graph have the same ones.
TEST_F(DevicelessPlans, AreNamedByEngineAndKnobs) {
  Network network;
  network.add(Convolution{.name = "c", .channels = 64, .kernel = 3, .padding = 1},
              network.images(32, 64, 56, 56));
  const cuda::ConvolutionShape shape = cuda::convolutionShape(network, network.layers()[0], 8);
  for (const AbsentGpu& gpu : *absentGpus()) {
    cuda::ConvolutionGraph graph(gpu.target(Dtype::kBf16, false), shape, cuda::ConvolutionProduct::kOutput);
    ASSERT_TRUE(graph.build().ok()) << gpu.name;
    std::set<std::string> names;
    for (const cuda::DnnPlan& plan : graph.plans()) names.insert(plan.name());
    EXPECT_EQ(names.size(), graph.plans().size()) << gpu.name << ": " << ::testing::PrintToString(names);
    EXPECT_THAT(graph.method(), MatchesRegex("convolution output by cudnn engine [0-9]+ .k[0-9]+=.*"))
        << gpu.name;
    std::printf("%s: %s\n", gpu.name.c_str(), graph.method().c_str());
  }
}

/// f32 must not become TF32, which is what cuDNN suggests first for f32 tensors.
TEST_F(DevicelessPlans, TakeNoTensorCoresInF32) {
  Network network;
  network.add(Convolution{.name = "c", .channels = 64, .kernel = 3, .padding = 1},
              network.images(32, 64, 56, 56));
  const cuda::ConvolutionShape shape = cuda::convolutionShape(network, network.layers()[0], 4);
  const auto first = [&](Dtype dtype) {
    cuda::ConvolutionGraph graph(gpu("h100").target(dtype, false), shape, cuda::ConvolutionProduct::kOutput);
    EXPECT_TRUE(graph.build().ok());
    return graph.plans().at(0).engine;
  };
  EXPECT_NE(first(Dtype::kF32), first(Dtype::kTf32));
}

}  // namespace
}  // namespace muster::deviceless
