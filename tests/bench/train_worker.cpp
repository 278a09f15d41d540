// SPDX-License-Identifier: Apache-2.0
// muster-train-worker: whole training steps of one model, timed. train_speed.py starts it beside PyTorch and
// lets both take turns. Usage: muster-train-worker BACKENDS MODEL [DTYPE]. Says what runs in one line, or
// "unsupported: ..." and ends; then each line "N" on stdin runs N steps and answers with one line: seconds,
// loss.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <map>

#include "kernels/interfaces/backend.h"
#include "runner/core/clock.h"
#include "tests/bench/trained_model.h"

namespace muster::bench {
namespace {

train::ModelSpec resnet(const char* name, int64_t batch, int64_t size) {
  train::ModelSpec spec;
  spec.name = name;
  spec.batch = batch;
  spec.imageSize = size;
  return spec;
}

train::ModelSpec gpt() {
  train::ModelSpec spec;
  spec.name = "transformer";
  spec.batch = 8;
  spec.vocabulary = 256;
  spec.dimension = 256;
  spec.heads = 8;
  spec.layers = 4;
  spec.feedForward = 1024;
  spec.sequence = 128;
  return spec;
}

/// The same names and sizes stand in train_torch.py.
const std::map<std::string, train::ModelSpec> kModels = {
    {"resnet18", resnet("resnet18", 32, 32)}, {"resnet50", resnet("resnet50", 8, 224)}, {"gpt", gpt()}};

Status serve(const std::string& backends, const train::ModelSpec& spec, const std::string& dtype) {
  BackendOptions where;
  where.folder = backends;
  MUSTER_TRY(std::unique_ptr<Backend> backend, loadBackend("host", where));
  MUSTER_TRY(std::unique_ptr<Device> device, backend->open("cpu0"));
  MUSTER_TRY(std::unique_ptr<Nn> nn, backend->nn(*device));
  ProgramOptions options;
  MUSTER_TRY(options.dtype, dtypeFromName(dtype));
  MUSTER_TRY(std::unique_ptr<Program> program, trainedModel(*nn, spec, options));
  fmt::print("{}\n", program->implementation());
  std::fflush(stdout);
  int steps = 0;
  while (std::cin >> steps) {
    const double start = systemClock().now();
    for (int i = 0; i < steps; ++i) MUSTER_CHECK_OK(trainingStep(*program, spec));
    const double seconds = systemClock().now() - start;
    MUSTER_TRY(double loss, program->loss());
    fmt::print("{} {}\n", seconds, loss);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const bool counted = argc == 3 || argc == 4;
  const auto model = counted ? muster::bench::kModels.find(argv[2]) : muster::bench::kModels.end();
  if (model == muster::bench::kModels.end()) {
    fmt::print(stderr, "usage: muster-train-worker BACKENDS resnet18|resnet50|gpt [f32|bf16]\n");
    return 2;
  }
  const muster::Status status = muster::bench::serve(argv[1], model->second, argc == 4 ? argv[3] : "f32");
  if (status.ok()) return 0;
  if (status.error().code == muster::ErrorCode::kUnsupported) {
    fmt::print("unsupported: {}\n", status.error().text());
    return 0;
  }
  fmt::print(stderr, "muster-train-worker: {}\n", status.error().text());
  return 1;
}
