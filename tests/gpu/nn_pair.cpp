// SPDX-License-Identifier: Apache-2.0
// One network on the GPU beside the host.
#include "tests/gpu/nn_pair.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace muster::gpu {
namespace {

/// A gradient that is small beside the others' (its terms cancel) is known no better than those are.
constexpr double kShareOfLargest = 0.02;

/// `value` with the bits that a product of this type keeps: what differs then is what the network computes.
float keptBy(Dtype dtype, float value) {
  return dtype == Dtype::kF32 ? value : std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000u);
}

std::unique_ptr<Nn> nnOf(const std::string& name, Device& device) {
  auto opened = backend(name).nn(device);
  EXPECT_TRUE(opened.ok()) << opened.error().text();
  return std::move(*opened);
}

}  // namespace

NnBounds boundsOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return {2e-5, 2e-4};
    case Dtype::kTf32:
    case Dtype::kF16:
      return {3e-3, 5e-2};
    default:
      return {2.5e-2, 0.25};
  }
}

OpenedNn::OpenedNn(bool gpu)
    : device(gpu ? openGpu() : openHost()), nn(nnOf(gpu ? "cuda" : "host", *device)) {}

bool OpenedNn::offers(Dtype dtype) const {
  const std::vector<Dtype> all = nn->dtypes();
  return std::find(all.begin(), all.end(), dtype) != all.end();
}

std::unique_ptr<Program> OpenedNn::compile(const Network& network, const ProgramOptions& options) {
  auto compiled = nn->compile(network, options);
  EXPECT_TRUE(compiled.ok()) << compiled.error().text();
  return std::move(compiled).value();
}

std::vector<Dtype> gpuDtypes() {
  return OpenedNn(true).nn->dtypes();
}
std::vector<Dtype> trainingDtypes() {
  std::vector<Dtype> dtypes = gpuDtypes();
  std::erase(dtypes, Dtype::kF16);
  return dtypes;
}

std::vector<float> readOf(Result<std::vector<float>> read) {
  if (read.ok()) return std::move(read).value();
  ADD_FAILURE() << read.error().text();
  return {};
}

double sizeOf(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

double distanceOf(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  return std::isnan(sum) ? INFINITY : std::sqrt(sum / static_cast<double>(a.size()));
}

NnPair::NnPair(const Network& network, const ProgramOptions& options, uint32_t seed)
    : network_(network),
      bounds_(boundsOf(options.dtype)),
      dtype_(options.dtype),
      onGpu_(true),
      onHost_(false) {
  gpu_ = onGpu_.compile(network, options);
  host_ = onHost_.compile(network, {});
  fill(seed);
}

void NnPair::fill(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < network_.parameters().size(); ++i) {
    const Parameter& spec = network_.parameters()[i];
    std::vector<float> values(static_cast<size_t>(spec.elements()));
    for (float& value : values)
      value = keptBy(dtype_, (spec.role == ParameterRole::kScale ? 1.0f : 0.0f) + 0.3f * normal(random));
    for (Program* program : {gpu_.get(), host_.get()})
      ASSERT_TRUE(program->writeParameter(static_cast<int>(i), values).ok());
  }
  for (int id = 0; id < network_.tensorCount(); ++id) {
    if (!network_.isInput({id})) continue;
    const auto count = static_cast<size_t>(elementsOf(network_.shape({id})));
    const auto limit = static_cast<uint64_t>(network_.limit({id}));
    std::vector<float> images(limit == 0 ? count : 0);
    std::vector<int32_t> indices(limit == 0 ? 0 : count);
    for (float& value : images) value = keptBy(dtype_, normal(random));
    for (int32_t& index : indices) index = static_cast<int32_t>(random() % limit);
    for (Program* program : {gpu_.get(), host_.get()})
      ASSERT_TRUE((limit == 0 ? program->writeInput({id}, std::span<const float>(images))
                              : program->writeInput({id}, std::span<const int32_t>(indices)))
                      .ok());
  }
}

void NnPair::expectOutputs(Pass pass) {
  for (Program* program : {gpu_.get(), host_.get()}) {
    const Status forward = program->forward(pass);
    ASSERT_TRUE(forward.ok()) << forward.error().text();
  }
  const auto found = gpu_->loss();
  ASSERT_TRUE(found.ok()) << found.error().text();
  const double wanted = *host_->loss();
  EXPECT_NEAR(*found, wanted, bounds_.output * (1 + std::abs(wanted)));
  if (dtype_ == Dtype::kF32) {
    EXPECT_EQ(*gpu_->correct(), *host_->correct());
  }
  for (const Layer& layer : network_.layers()) {
    if (layer.kind == LayerKind::kCrossEntropy) continue;
    SCOPED_TRACE(std::string(layerKindName(layer.kind)) + " " + layer.name);
    const auto right = readOf(host_->readTensor(layer.output));
    EXPECT_LE(distanceOf(readOf(gpu_->readTensor(layer.output)), right),
              bounds_.output * sizeOf(right) + 1e-7);
  }
}

void NnPair::expectGradients() {
  for (Program* program : {gpu_.get(), host_.get()}) {
    ASSERT_TRUE(program->forward(Pass::kTraining).ok());
    const Status backward = program->backward();
    if (dtype_ == Dtype::kF16 && program == gpu_.get()) {
      ASSERT_FALSE(backward.ok());
      EXPECT_EQ(backward.error().code, ErrorCode::kUnsupported) << backward.error().text();
      continue;
    }
    ASSERT_TRUE(backward.ok()) << backward.error().text();
  }
  if (dtype_ == Dtype::kF16) return;
  std::vector<std::vector<float>> wanted;
  double largest = 0;
  for (size_t i = 0; i < network_.parameters().size(); ++i) {
    wanted.push_back(readOf(host_->readGradient(static_cast<int>(i))));
    largest = std::max(largest, sizeOf(wanted.back()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(network_.parameters()[i].name);
    const auto found = readOf(gpu_->readGradient(static_cast<int>(i)));
    EXPECT_LE(distanceOf(found, wanted[i]),
              bounds_.gradient * (sizeOf(wanted[i]) + kShareOfLargest * largest));
  }
}

void NnPair::expectStatistics() {
  for (size_t i = 0; i < network_.statistics().size(); ++i) {
    SCOPED_TRACE(network_.statistics()[i].name);
    const auto right = readOf(host_->readStatistics(static_cast<int>(i)));
    EXPECT_LE(distanceOf(readOf(gpu_->readStatistics(static_cast<int>(i))), right),
              bounds_.output * sizeOf(right));
  }
}

}  // namespace muster::gpu
