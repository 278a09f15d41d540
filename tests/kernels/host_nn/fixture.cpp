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

Pair::Pair(OpenNn& open, const Network& network, uint32_t seed, Dtype dtype)
    : network_(network),
      dtype_(dtype),
      random_(seed),
      program_(open.compile(network, {.dtype = dtype})),
      reference_(network),
      rounded_(network) {
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
    for (size_t j = 0; j < made.size(); ++j)
      rounded_.parameters[i][j] = made[j] * (random_() % 2 == 0 ? 1 + kBf16Roundoff : 1 - kBf16Roundoff);
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
  rounded_.values = reference_.values;
}

int forwardRoundings(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::kConvolution:
      return layer.normScale >= 0 ? 3 : 2;  // weights, what is normalised, output
    case LayerKind::kLinear:                // weights, product, what activation and residual make of it
      return 2 + (layer.linear.activation == Activation::kGelu ? 1 : 0) + (layer.residual.there() ? 1 : 0);
    case LayerKind::kMaxPool:
    case LayerKind::kCrossEntropy:
      return 0;
    default:
      return 1;
  }
}

int backwardRoundings(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::kConvolution:
    case LayerKind::kLinear:
      return 4;  // weights, behind the activation, of the input, added to that of another path
    case LayerKind::kMaxPool:
      return 4;  // as many windows share a pixel
    case LayerKind::kCrossEntropy:
      return 2;
    default:
      return 1;
  }
}

double Pair::outputBound(const Layer& layer) const {
  return dtype_ == Dtype::kBf16 ? forwardRoundings(layer) * kBf16Roundoff : 2e-5;
}

int Pair::roundings() const {
  if (dtype_ != Dtype::kBf16) return 0;
  int count = 1;  // of the input
  for (const Layer& layer : network_.layers()) count += forwardRoundings(layer) + backwardRoundings(layer);
  return count;
}

void Pair::takeInputs(const Layer& layer) {
  std::vector<Tensor> inputs = layer.inputs;
  if (layer.residual.there()) inputs.push_back(layer.residual);
  for (const Tensor input : inputs) {
    if (network_.limit(input) > 0) continue;
    const std::vector<float> values = got(program_->readTensor(input));
    reference_.values[static_cast<size_t>(input.id)].assign(values.begin(), values.end());
  }
}

void Pair::expectForward() {
  ASSERT_TRUE(program_->forward(Pass::kTraining).ok());
  for (const Layer& layer : network_.layers()) {
    SCOPED_TRACE(std::string(layerKindName(layer.kind)) + " " + layer.name);
    takeInputs(layer);
    const double loss = reference_.compute(layer);
    if (layer.kind == LayerKind::kCrossEntropy) {
      EXPECT_NEAR(*program_->loss(), loss, 2e-5 * std::abs(loss));
      continue;
    }
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
    EXPECT_LE(worst, outputBound(layer) * size);
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
    expectGradient(static_cast<int>(i), *found,
                   (dtype_ == Dtype::kBf16 ? roundings() * kBf16Roundoff : 1e-4) * size + 2e-7, most);
  }
}

void Pair::expectGradient(int parameter, const std::vector<float>& found, double bound, size_t most) {
  struct Sample {
    size_t element;
    double wanted;
  };
  std::vector<Sample> samples;
  double sensitivity = 0;
  const size_t stride = std::max<size_t>(1, found.size() / most);
  for (size_t element = random_() % stride; element < found.size(); element += stride) {
    samples.push_back({element, reference_.slope(parameter, element)});
    if (dtype_ == Dtype::kBf16)
      sensitivity =
          std::max(sensitivity, std::abs(rounded_.slope(parameter, element) - samples.back().wanted));
  }
  bound += 2 * std::sqrt(roundings()) * sensitivity;
  for (const Sample& sample : samples)
    ASSERT_NEAR(found[sample.element], sample.wanted, bound) << "element " << sample.element;
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
