// SPDX-License-Identifier: Apache-2.0
// Training on a simulated device. Parameters and gradients are tags, which are functions of the step.
#include "kernels/sim/sim_nn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/sim/chance.h"

namespace muster::sim {
namespace {

constexpr uint64_t kGradientTag = 0x67726164;  // "grad"
constexpr double kFloor = 0.3;                 ///< share of the first loss that training leaves
constexpr double kSteps = 60;                  ///< in which the rest falls to 1/e
constexpr double kWobble = 0.01;               ///< sigma of a batch's loss

/// Rates of one device in one type.
struct Roofline {
  double flops = 0;    ///< FLOP/s of matrix products
  double memory = 0;   ///< B/s
  size_t element = 4;  ///< bytes of an activation
};

double elements(const Network& network, Tensor tensor) {
  return static_cast<double>(elementsOf(network.shape(tensor)));
}

/// Activations that a forward pass moves, in elements.
double movedForward(const Network& network, const Layer& layer) {
  const double in = elements(network, layer.inputs[0]);
  const double out = elements(network, layer.output);
  double moved = in + out;
  if (layer.statistics >= 0) moved += 3 * out;
  if (layer.residual.there()) moved += out;
  // Flash-style attention keeps its scores on chip; the loss passes over its logits and writes their
  // gradient.
  if (layer.kind == LayerKind::kCrossEntropy) moved += in;
  return moved;
}

double weightBytes(const Network& network, const Layer& layer) {
  if (layer.weight < 0 || layer.kind == LayerKind::kEmbedding) return 0;
  return 4 * static_cast<double>(network.parameters()[static_cast<size_t>(layer.weight)].elements());
}

double longer(double flops, double bytes, const Roofline& roofline) {
  return std::max(flops / roofline.flops, bytes / roofline.memory);
}

/// Seconds of one layer's forward pass: the longer of its arithmetic and its memory traffic (Williams,
/// Waterman, Patterson 2009). Traffic counts each operand as often as unfused kernels move it: batch
/// normalisation reads its input twice and writes it once.
double forwardSeconds(const Network& network, const Layer& layer, const Roofline& roofline) {
  const double bytes = movedForward(network, layer) * static_cast<double>(roofline.element);
  return longer(layerFlops(network, layer), bytes + weightBytes(network, layer), roofline);
}

/// The same for its backward pass: both products again, and the traffic of gradients beside that of values.
double backwardSeconds(const Network& network, const Layer& layer, const Roofline& roofline) {
  const double products = network.isInput(layer.inputs[0]) ? 1 : 2;
  const double bytes = 2 * movedForward(network, layer) * static_cast<double>(roofline.element);
  return longer(products * layerFlops(network, layer), bytes + 2 * weightBytes(network, layer), roofline);
}

uint64_t sum(const std::vector<Parameter>& parameters) {
  int64_t all = 0;
  for (const Parameter& parameter : parameters) all += parameter.elements();
  return static_cast<uint64_t>(all);
}

uint64_t activationBytes(const Network& network, size_t element) {
  uint64_t elements = 0;
  for (const Layer& layer : network.layers())
    elements +=
        static_cast<uint64_t>(elementsOf(network.shape(layer.output))) * (layer.statistics >= 0 ? 2 : 1);
  return elements * element;
}

/// Classes among which the network chooses, and rows that it judges at once.
struct Head {
  double classes;
  double rows;
};

Head headOf(const Network& network) {
  const Layer& loss = network.layers().back();
  const Shape& logits = network.shape(loss.inputs[0]);
  const int64_t classes = logits.back();
  const int64_t rows = elementsOf(logits) / classes;
  return {static_cast<double>(classes), static_cast<double>(rows)};
}

class SimProgram : public Program {
 public:
  SimProgram(SimDevice& device, const Network& network, const Roofline& roofline,
             std::shared_ptr<uint64_t> backwards)
      : device_(device),
        network_(network),
        roofline_(roofline),
        head_(headOf(network_)),
        backwards_(std::move(backwards)) {
    uint64_t first = 0;
    for (const Parameter& parameter : network_.parameters()) {
      ranges_.push_back({first, static_cast<uint64_t>(parameter.elements())});
      first += ranges_.back().count;
    }
  }

  /// Takes the memory that training needs; too little is an error.
  Status allocate() {
    const uint64_t flat = 4 * gradientElements();
    MUSTER_TRY(parameters_, device_.allocate(flat));
    MUSTER_TRY(gradients_, device_.allocate(flat));
    MUSTER_TRY(activations_,
               device_.allocate(std::max<uint64_t>(8, activationBytes(network_, roofline_.element))));
    return {};
  }

  [[nodiscard]] const Network& network() const override { return network_; }
  Status writeParameter(int, std::span<const float>) override { return {}; }
  Status fillParameter(int parameter, const InitialValues&) override {
    const double bytes = 4.0 * static_cast<double>(range(parameter).count);
    MUSTER_CHECK_OK(device_.perform(Work::kTraining, bytes / roofline_.memory));
    return {};
  }
  Result<std::vector<float>> readParameter(int) override { return noValues(); }
  Result<std::vector<float>> readGradient(int) override { return noValues(); }
  Result<std::vector<float>> readStatistics(int) override { return noValues(); }
  Status writeStatistics(int, std::span<const float>) override { return {}; }
  /// Of the logits: made up, the same in every pass but for a fault, which no two passes have alike.
  Result<std::vector<float>> readTensor(Tensor tensor) override {
    if (tensor.id != network_.layers().back().inputs[0].id) return noValues();
    std::vector<float> logits(static_cast<size_t>(elementsOf(network_.shape(tensor))));
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
    if (flaw_.there) logits[flaw_.offset / sizeof(float) % logits.size()] += static_cast<float>(flaw_.run);
    return logits;
  }
  Status writeInput(Tensor, std::span<const float>) override { return {}; }
  Status writeInput(Tensor, std::span<const int32_t>) override { return {}; }

  Status forward(Pass pass) override {
    for (const Layer& layer : network_.layers())
      MUSTER_CHECK_OK(device_.perform(Work::kTraining, forwardSeconds(network_, layer, roofline_)));
    ++forwards_;
    flaw_ = device_.flawOf(Work::kTraining, forwards_, activations_->bytes());
    trained_ = pass == Pass::kTraining;
    return {};
  }

  Status backward(const GradientsReady& ready) override {
    if (!trained_)
      return Error{ErrorCode::kInternal, "backward() without forward(kTraining)", device_.info().id};
    trained_ = false;
    auto& gradients = static_cast<SimBuffer&>(*gradients_);
    gradients.content = {mix(mix(kGradientTag, seed()), steps_),
                         device_.flawOf(Work::kTraining, ++*backwards_, gradients.bytes()), true};
    uint64_t left = gradientElements();
    for (auto layer = network_.layers().rbegin(); layer != network_.layers().rend(); ++layer) {
      MUSTER_CHECK_OK(device_.perform(Work::kTraining, backwardSeconds(network_, *layer, roofline_)));
      const uint64_t first = firstOf(*layer, left);
      if (ready && first < left) MUSTER_CHECK_OK(ready({first, left - first}));
      left = first;
    }
    return {};
  }

  Status setOptimizer(const OptimizerSpec& spec) override {
    const uint64_t states = spec.kind == OptimizerKind::kAdamW ? 2 : 1;
    MUSTER_TRY(state_, device_.allocate(states * 4 * gradientElements()));
    return {};
  }

  Status step(double, double) override {
    if (state_ == nullptr)
      return Error{ErrorCode::kInternal, "step() before setOptimizer()", device_.info().id};
    // Parameters, gradients and state are read, the first and the last also written.
    const double bytes =
        static_cast<double>(2 * parameters_->bytes() + gradients_->bytes() + 2 * state_->bytes());
    MUSTER_CHECK_OK(device_.perform(Work::kTraining, bytes / roofline_.memory));
    ++steps_;
    return {};
  }

  Result<double> loss() override {
    const double start = std::log(head_.classes);
    const double fallen = kFloor + (1 - kFloor) * std::exp(-static_cast<double>(steps_) / kSteps);
    return start * fallen * (1 + kWobble * normal(mix(mix(seed(), steps_), forwards_)));
  }

  Result<int64_t> correct() override {
    const double missed = kFloor + (1 - kFloor) * std::exp(-static_cast<double>(steps_) / kSteps);
    return std::llround(head_.rows * std::max(1 / head_.classes, 1 - missed));
  }

  Buffer& gradients() override { return *gradients_; }
  Buffer& parameters() override { return *parameters_; }
  [[nodiscard]] uint64_t gradientElements() const override { return sum(network_.parameters()); }
  [[nodiscard]] ElementRange range(int parameter) const override {
    return ranges_[static_cast<size_t>(parameter)];
  }
  [[nodiscard]] std::string layout() const override { return "sim"; }
  [[nodiscard]] uint64_t memoryBytes() const override {
    const uint64_t state = state_ == nullptr ? 0 : state_->bytes();
    return parameters_->bytes() + gradients_->bytes() + activations_->bytes() + state;
  }
  [[nodiscard]] std::string implementation() const override { return "sim " + device_.unit().scenario->name; }

 private:
  /// Equal on all ranks: what they compute together must not differ.
  [[nodiscard]] uint64_t seed() const { return device_.unit().scenario->seed; }
  [[nodiscard]] Error noValues() const {
    return {ErrorCode::kUnsupported, "a simulated program keeps no values", device_.info().id};
  }
  /// The first element of the parameters from this layer on; `left` where it has none.
  [[nodiscard]] uint64_t firstOf(const Layer& layer, uint64_t left) const {
    for (int parameter : {layer.weight, layer.bias, layer.normScale, layer.normShift})
      if (parameter >= 0) left = std::min(left, range(parameter).first);
    return left;
  }

  SimDevice& device_;
  Network network_;
  Roofline roofline_;
  Head head_;
  std::shared_ptr<uint64_t> backwards_;  ///< of all programs of the device: no two flaws are the same
  std::vector<ElementRange> ranges_;
  std::unique_ptr<Buffer> parameters_;
  std::unique_ptr<Buffer> gradients_;
  std::unique_ptr<Buffer> activations_;
  std::unique_ptr<Buffer> state_;
  Flaw flaw_;  ///< of the last forward pass
  uint64_t forwards_ = 0;
  uint64_t steps_ = 0;
  bool trained_ = false;
};

}  // namespace

std::vector<Dtype> SimNn::dtypes() const {
  std::vector<Dtype> dtypes;
  for (Dtype dtype : {Dtype::kF32, Dtype::kTf32, Dtype::kBf16, Dtype::kF16})
    if (device_.unit().scenario->figures.gemm.count(dtype) != 0) dtypes.push_back(dtype);
  return dtypes;
}

Result<std::unique_ptr<Program>> SimNn::compile(const Network& network, const ProgramOptions& options) {
  const Scenario& scenario = *device_.unit().scenario;
  const auto rate = scenario.figures.gemm.find(options.dtype);
  if (rate == scenario.figures.gemm.end())
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("scenario \"{}\" has no GEMM rate for {}", scenario.name, dtypeName(options.dtype)),
        device_.info().id};
  MUSTER_CHECK_OK(network.check());
  const Roofline roofline = {rate->second, scenario.figures.memory.at(MemoryOp::kCopy),
                             dtypeBits(options.dtype) / 8};
  auto program = std::make_unique<SimProgram>(device_, network, roofline, backwards_);
  MUSTER_CHECK_OK(program->allocate());
  return std::unique_ptr<Program>(std::move(program));
}

}  // namespace muster::sim
