// SPDX-License-Identifier: Apache-2.0
// Whole models trained on the GPU: loss curves against the host, the same bits twice, and what a program
// promises its caller.
#include <cmath>

#include "tests/bench/trained_model.h"
#include "tests/gpu/nn_pair.h"

namespace muster::gpu {
namespace {

using bench::trainedModel;
using bench::trainingStep;

train::ModelSpec images(const char* name, int64_t batch, int64_t size, int64_t classes = 10) {
  train::ModelSpec spec;
  spec.name = name;
  spec.batch = batch;
  spec.imageSize = size;
  spec.classes = classes;
  return spec;
}
train::ModelSpec text() {
  train::ModelSpec spec;
  spec.name = "transformer";
  spec.batch = 8;
  spec.vocabulary = 96;
  spec.dimension = 128;
  spec.heads = 2;
  spec.layers = 2;
  spec.feedForward = 256;
  spec.sequence = 64;
  return spec;
}
std::vector<train::ModelSpec> models() {
  return {images("resnet18", 16, 32), images("resnet50", 8, 64), text()};
}

std::unique_ptr<Program> made(OpenedNn& on, const train::ModelSpec& spec, const ProgramOptions& options) {
  auto program = trainedModel(*on.nn, spec, options);
  EXPECT_TRUE(program.ok()) << program.error().text();
  return std::move(program).value();
}

std::vector<double> curve(Program& program, const train::ModelSpec& spec, int steps) {
  const double rate = spec.name == "resnet50" ? 0.2 : 1;  // at 1 its loss rises to 15 before it falls
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const Status status = trainingStep(program, spec, rate);
    EXPECT_TRUE(status.ok()) << status.error().text();
    losses.push_back(*program.loss());
  }
  return losses;
}

/// Rounding grows from step to step: the first is as near as one pass is, the last must tell the same story.
/// A small ResNet-50 tells another one after each rounding: with all weights 1e-7 off, the host's own second
/// loss is 6% off.
TEST(GpuTraining, FollowsTheHostsLoss) {
  constexpr int kSteps = 12;
  for (const train::ModelSpec& spec : models()) {
    OpenedNn host(false);
    const auto wanted = curve(*made(host, spec, {}), spec, kSteps);
    for (Dtype dtype : trainingDtypes()) {
      SCOPED_TRACE(spec.name + " " + dtypeName(dtype));
      OpenedNn gpu(true);
      const auto found = curve(*made(gpu, spec, {dtype, false}), spec, kSteps);
      EXPECT_NEAR(found[0], wanted[0], boundsOf(dtype).output * (1 + wanted[0]));
      const double later = dtype == Dtype::kF32 ? 0.02 : 0.15;
      for (size_t i = 1; i < found.size() && spec.name != "resnet50"; ++i)
        EXPECT_NEAR(found[i], wanted[i], later * (0.2 + wanted[i])) << i;
      EXPECT_LT(found.back(), found.front());
    }
  }
}

TEST(GpuTraining, GivesTheSameBitsTwice) {
  for (const train::ModelSpec& spec : models())
    for (Dtype dtype : trainingDtypes()) {
      SCOPED_TRACE(spec.name + " " + dtypeName(dtype));
      std::vector<uint64_t> hashes;
      for (int run = 0; run < 2; ++run) {
        OpenedNn gpu(true);
        const auto program = made(gpu, spec, {dtype, true});
        curve(*program, spec, 6);
        hashes.push_back(*gpu.device->hash(program->parameters()));
      }
      EXPECT_EQ(hashes[0], hashes[1]);
    }
}

TEST(GpuTraining, ReportsGradientsFromTheEndWithoutGaps) {
  for (const train::ModelSpec& spec : models()) {
    OpenedNn gpu(true);
    const auto program = made(gpu, spec, {});
    for (int run = 0; run < 3; ++run) {
      uint64_t next = program->gradientElements();
      ASSERT_TRUE(program->forward(Pass::kTraining).ok());
      const Status status = program->backward([&](ElementRange range) -> Status {
        EXPECT_EQ(range.first + range.count, next);
        next = range.first;
        return {};
      });
      ASSERT_TRUE(status.ok()) << status.error().text();
      EXPECT_EQ(next, 0U);
    }
    const Status stopped = [&] {
      EXPECT_TRUE(program->forward(Pass::kTraining).ok());
      return program->backward([](ElementRange) -> Status { return Error{ErrorCode::kTimeout, "stop", ""}; });
    }();
    EXPECT_FALSE(stopped.ok());
  }
}

TEST(GpuTraining, ReadsWhatWasWritten) {
  for (Dtype dtype : gpuDtypes()) {
    OpenedNn gpu(true);
    const auto program = made(gpu, images("resnet18", 2, 32), {dtype, true});
    const Network& network = program->network();
    for (size_t i = 0; i < network.parameters().size(); ++i) {
      std::vector<float> values(static_cast<size_t>(network.parameters()[i].elements()));
      for (size_t j = 0; j < values.size(); ++j)
        values[j] = static_cast<float>(i) + 1e-6f * static_cast<float>(j);
      ASSERT_TRUE(program->writeParameter(static_cast<int>(i), values).ok());
      EXPECT_EQ(readOf(program->readParameter(static_cast<int>(i))), values);
    }
    for (size_t i = 0; i < network.statistics().size(); ++i) {
      const auto start = readOf(program->readStatistics(static_cast<int>(i)));
      const auto channels = static_cast<size_t>(network.statistics()[i].channels);
      ASSERT_EQ(start.size(), 2 * channels);
      EXPECT_EQ(start.front(), 0.0f);
      EXPECT_EQ(start.back(), 1.0f);
      std::vector<float> values(2 * channels);
      for (size_t j = 0; j < values.size(); ++j) values[j] = 0.5f + static_cast<float>(j);
      ASSERT_TRUE(program->writeStatistics(static_cast<int>(i), values).ok());
      EXPECT_EQ(readOf(program->readStatistics(static_cast<int>(i))), values);
    }
  }
}

TEST(GpuTraining, LetsNoNanGoByUnseen) {
  for (Dtype dtype : gpuDtypes()) {
    OpenedNn gpu(true);
    const auto program = made(gpu, images("resnet18", 4, 32), {dtype, true});
    auto values = readOf(program->readParameter(0));
    values[0] = NAN;
    ASSERT_TRUE(program->writeParameter(0, values).ok());
    ASSERT_TRUE(program->forward(Pass::kTraining).ok());
    EXPECT_TRUE(std::isnan(*program->loss()));
  }
}

TEST(GpuTraining, SaysWhatIsWrong) {
  OpenedNn gpu(true);
  const train::ModelSpec spec = images("resnet18", 2, 32);
  auto model = train::buildModel(spec);
  ASSERT_TRUE(model.ok());
  auto program = gpu.compile(model->network, {});
  const auto expectUsage = [](const Status& status) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kUsage) << status.error().text();
  };
  expectUsage(program->backward());
  expectUsage(program->step(0.1));
  expectUsage(program->writeParameter(0, std::vector<float>(3)));
  expectUsage(program->writeParameter(1000, std::vector<float>(3)));
  expectUsage(
      program->writeInput(model->labels, std::vector<int32_t>{0, static_cast<int32_t>(spec.classes)}));
  expectUsage(program->writeInput(model->labels, std::vector<float>{0, 1}));
  EXPECT_FALSE(program->loss().ok());
  ASSERT_TRUE(program->forward(Pass::kEvaluation).ok());
  expectUsage(program->backward());
  EXPECT_FALSE(gpu.nn->compile(model->network, {Dtype::kFp8E4m3, true}).ok());
}

/// Samples/s of whole steps in bf16; contest.py puts them beside PyTorch's.
TEST(GpuTraining, TellsItsSpeed) {
  train::ModelSpec transformer;
  transformer.name = "transformer";
  for (const train::ModelSpec& spec : {images("resnet50", 128, 224), images("resnet50", 256, 224),
                                       images("resnet18", 256, 224), transformer}) {
    OpenedNn gpu(true);
    const auto program = made(gpu, spec, {gpu.nn->dtypes().back(), false});
    curve(*program, spec, 4);
    constexpr int kSteps = 20;
    const auto seconds = gpu.device->time([&]() -> Status {
      for (int i = 0; i < kSteps; ++i) MUSTER_CHECK_OK(trainingStep(*program, spec));
      return {};
    });
    ASSERT_TRUE(seconds.ok()) << seconds.error().text();
    figure("train", "samples/s", static_cast<double>(spec.batch * kSteps) / *seconds,
           {{"model", spec.name},
            {"batch", spec.batch},
            {"dtype", dtypeName(gpu.nn->dtypes().back())},
            {"implementation", program->implementation()},
            {"memory_bytes", program->memoryBytes()}});
  }
}

}  // namespace
}  // namespace muster::gpu
