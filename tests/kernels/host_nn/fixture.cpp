// SPDX-License-Identifier: Apache-2.0
// A network beside its f64 reference.
#include "tests/kernels/host_nn/fixture.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>

#include "kernels/host/dnn.h"
#include "tests/support/process.h"

namespace muster::testing {

std::vector<float> toFloat(const std::vector<double>& values) {
  std::vector<float> floats;
  floats.reserve(values.size());
  for (double value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

std::vector<float> got(Result<std::vector<float>> read) {
  if (read.ok()) return std::move(read).value();
  ADD_FAILURE() << read.error().text();
  return {};
}

OpenNn::OpenNn(int threads) {
  DeviceInfo info;
  info.id = "cpu0";
  auto opened = host::HostDevice::open(info);
  EXPECT_TRUE(opened.ok());
  device = std::move(*opened);
  void* module = dlopen((buildDir() / "kernels/host/host_dnn.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(module, nullptr) << dlerror();
  const auto* entry = static_cast<const host::DnnEntry*>(dlsym(module, "muster_host_dnn_entry"));
  auto made = entry->open(*device, threads);
  EXPECT_TRUE(made.ok());
  nn = std::move(*made);
}

std::unique_ptr<Program> OpenNn::compile(const Network& network, const ProgramOptions& options) {
  auto compiled = nn->compile(network, options);
  EXPECT_TRUE(compiled.ok()) << compiled.error().text();
  return std::move(compiled).value();
}

Pair::Pair(OpenNn& open, const Network& network, uint32_t seed)
    : network_(network), random_(seed), program_(open.compile(network)), reference_(network) {
  fill();
}

/// Values are rounded to f32 first, so that both sides compute with the same ones.
void Pair::fill() {
  std::normal_distribution<float> normal;
  const auto values = [&](int64_t count, float mean, float sigma) {
    std::vector<float> made(static_cast<size_t>(count));
    for (float& value : made) value = mean + sigma * normal(random_);
    return made;
  };
  for (size_t i = 0; i < network_.parameters().size(); ++i) {
    const Parameter& spec = network_.parameters()[i];
    const float mean = spec.role == ParameterRole::kScale ? 1.0f : 0.0f;
    const auto made = values(spec.elements(), mean, 0.4f);
    ASSERT_TRUE(program_->writeParameter(static_cast<int>(i), made).ok());
    reference_.parameters[i].assign(made.begin(), made.end());
  }
  for (int id = 0; id < network_.tensorCount(); ++id) {
    if (!network_.isInput({id})) continue;
    const int64_t count = elementsOf(network_.shape({id}));
    std::vector<double>& target = reference_.values[static_cast<size_t>(id)];
    if (network_.limit({id}) == 0) {
      const auto made = values(count, 0, 1);
      ASSERT_TRUE(program_->writeInput({id}, made).ok());
      target.assign(made.begin(), made.end());
      continue;
    }
    std::vector<int32_t> made(static_cast<size_t>(count));
    for (int32_t& index : made)
      index = static_cast<int32_t>(random_() % static_cast<uint64_t>(network_.limit({id})));
    ASSERT_TRUE(program_->writeInput({id}, made).ok());
    target.assign(made.begin(), made.end());
  }
}

void Pair::expectForward() {
  const double wanted = reference_.forward();
  ASSERT_TRUE(program_->forward(Pass::kTraining).ok());
  EXPECT_NEAR(*program_->loss(), wanted, 2e-5 * std::abs(wanted));
  for (const Layer& layer : network_.layers()) {
    if (layer.kind == LayerKind::kCrossEntropy) continue;
    SCOPED_TRACE(std::string(layerKindName(layer.kind)) + " " + layer.name);
    const auto found = program_->readTensor(layer.output);
    ASSERT_TRUE(found.ok()) << found.error().text();
    const std::vector<double>& right = reference_.values[static_cast<size_t>(layer.output.id)];
    ASSERT_EQ(found->size(), right.size());
    double worst = 0;
    double size = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      worst = std::max(
          worst, std::isnan((*found)[i]) ? INFINITY : std::abs(right[i] - static_cast<double>((*found)[i])));
      size = std::max(size, std::abs(right[i]));
    }
    EXPECT_LE(worst, 2e-5 * size);
  }
}

void Pair::expectGradients(size_t most) {
  ASSERT_TRUE(program_->forward(Pass::kTraining).ok());
  const Status backward = program_->backward();
  ASSERT_TRUE(backward.ok()) << backward.error().text();
  for (size_t i = 0; i < network_.parameters().size(); ++i) {
    SCOPED_TRACE(network_.parameters()[i].name);
    const auto found = program_->readGradient(static_cast<int>(i));
    ASSERT_TRUE(found.ok());
    double size = 1e-6;
    for (float value : *found)
      size = std::max(size, std::isnan(value) ? INFINITY : std::abs(static_cast<double>(value)));
    const size_t stride = std::max<size_t>(1, found->size() / most);
    for (size_t element = random_() % stride; element < found->size(); element += stride) {
      const double wanted = reference_.slope(static_cast<int>(i), element);
      ASSERT_NEAR((*found)[element], wanted, 1e-4 * size + 2e-7) << "element " << element;
    }
  }
}

std::vector<std::vector<float>> Pair::trained(const OptimizerSpec& spec, int steps, double learningRate) {
  EXPECT_TRUE(program_->setOptimizer(spec).ok());
  for (int i = 0; i < steps; ++i) {
    EXPECT_TRUE(program_->forward(Pass::kTraining).ok());
    EXPECT_TRUE(program_->backward().ok());
    EXPECT_TRUE(program_->step(learningRate).ok());
  }
  std::vector<std::vector<float>> result;
  for (size_t i = 0; i < network_.parameters().size(); ++i)
    result.push_back(got(program_->readParameter(static_cast<int>(i))));
  return result;
}

}  // namespace muster::testing
