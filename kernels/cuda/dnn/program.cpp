// SPDX-License-Identifier: Apache-2.0
// Compiling a network for a GPU, and running it.
#include "kernels/cuda/dnn/program.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/cuda/buffer.h"

namespace muster::cuda {
namespace {

constexpr uint64_t kSegmentElements = uint64_t{1}
                                      << 20;  ///< gradients of a segment of the backward pass: 4 MiB

float* floatsIn(const Buffer& buffer) {
  return reinterpret_cast<float*>(bytesOf(buffer));
}

Result<std::unique_ptr<Buffer>> zeros(CudaDevice& device, uint64_t bytes) {
  MUSTER_TRY(std::unique_ptr<Buffer> buffer, device.allocate(bytes));
  MUSTER_CUDA(cudaMemsetAsync(bytesOf(*buffer), 0, bytes, device.stream()));
  return buffer;
}

std::string nameOf(const Layer& layer) {
  return std::string(layerKindName(layer.kind)) + " \"" + layer.name + "\"";
}

}  // namespace

CudaProgram::CudaProgram(CudaDevice& device, Network network, std::unique_ptr<Engine> engine)
    : device_(device),
      network_(std::move(network)),
      engine_(std::move(engine)),
      storage_(device),
      plan_{.engine = *engine_,
            .storage = storage_,
            .network = network_,
            .values = std::vector<Value>(static_cast<size_t>(network_.tensorCount())),
            .places = std::vector<ParameterPlace>(network_.parameters().size()),
            .statistics = std::vector<StatisticsPlace>(network_.statistics().size()),
            .tokens = {}},
      staging_(static_cast<size_t>(network_.tensorCount())) {}

/// Nothing may be freed while the GPU still works on it.
CudaProgram::~CudaProgram() {
  (void)cudaStreamSynchronize(engine_->stream);
}

Result<std::unique_ptr<Program>> CudaProgram::compile(CudaDevice& device, const Network& network,
                                                      const ProgramOptions& options) {
  MUSTER_CHECK_OK(network.check());
  MUSTER_TRY(std::unique_ptr<Engine> engine, Engine::open(device, options));
  std::unique_ptr<CudaProgram> program(new CudaProgram(device, network, std::move(engine)));
  MUSTER_CHECK_OK(program->prepare());
  return std::unique_ptr<Program>(std::move(program));
}

Status CudaProgram::prepare() {
  MUSTER_CHECK_OK(makeInputs());
  MUSTER_CHECK_OK(makeStatistics());
  MUSTER_CHECK_OK(makeOps());
  MUSTER_CHECK_OK(makeParameters());
  MUSTER_TRY(plan_.scratch, storage_.keep(plan_.scratchBytes));
  for (const auto& op : ops_) MUSTER_CHECK_OK(op->bind(plan_).context(nameOf(op->layer())));
  MUSTER_CHECK_OK(planBackward());
  MUSTER_CHECK_OK(tune());
  makeSegments();
  return {};
}

Status CudaProgram::makeInputs() {
  for (int id = 0; id < network_.tensorCount(); ++id) {
    if (!network_.isInput({id})) continue;
    plan_.of({id}).needsGradient = false;
    const auto count = static_cast<uint64_t>(elementsOf(network_.shape({id})));
    if (network_.limit({id}) > 0) {
      MUSTER_TRY(plan_.of({id}).data, storage_.keep(count * sizeof(int32_t)));
      continue;
    }
    MUSTER_CHECK_OK(plan_.makeValue({id}));
    MUSTER_TRY(void* staging, storage_.keep(count * sizeof(float)));
    staging_[static_cast<size_t>(id)] = static_cast<float*>(staging);
  }
  return {};
}

Status CudaProgram::makeStatistics() {
  for (size_t i = 0; i < plan_.statistics.size(); ++i) {
    const int64_t channels = network_.statistics()[i].channels;
    const auto bytes = static_cast<uint64_t>(padTo(channels, engine_->channelUnit())) * sizeof(float);
    MUSTER_TRY(void* mean, storage_.keep(bytes));
    MUSTER_TRY(void* variance, storage_.keep(bytes));
    plan_.statistics[i] = {static_cast<float*>(mean), static_cast<float*>(variance)};
    const std::vector<float> ones(static_cast<size_t>(channels), 1.0f);
    MUSTER_CHECK_OK(copyToDevice(variance, ones.data(), ones.size() * sizeof(float)));
  }
  return {};
}

Status CudaProgram::makeOps() {
  for (const Layer& layer : network_.layers()) {
    if (layer.kind == LayerKind::kCrossEntropy) {
      auto loss = makeCrossEntropy(layer);
      loss_ = loss.get();
      ops_.push_back(std::move(loss));
    } else {
      MUSTER_TRY(std::unique_ptr<Op> op, makeOp(layer));
      ops_.push_back(std::move(op));
    }
    MUSTER_CHECK_OK(ops_.back()->prepare(plan_).context(nameOf(layer)));
  }
  return {};
}

Status CudaProgram::makeParameters() {
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    ParameterPlace& place = plan_.places[i];
    const int64_t count =
        place.filter.k > 0 ? place.filter.paddedElements() : network_.parameters()[i].elements();
    place.first = elements_;
    place.count = static_cast<uint64_t>(padTo(count, kDecayBlock));
    elements_ += place.count;
  }
  if (elements_ == 0) return Error{ErrorCode::kUsage, "the network has no parameter to train", ""};
  MUSTER_CHECK_OK(makeBuffers());
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    const Parameter& parameter = network_.parameters()[i];
    if (parameter.role != ParameterRole::kScale) continue;
    const std::vector<float> ones(static_cast<size_t>(parameter.elements()), 1.0f);
    MUSTER_CHECK_OK(writeParameter(static_cast<int>(i), ones));
  }
  return {};
}

Status CudaProgram::makeBuffers() {
  MUSTER_TRY(parameters_, zeros(device_, elements_ * sizeof(float)));
  MUSTER_TRY(gradients_, zeros(device_, elements_ * sizeof(float)));
  plan_.parameters = floatsIn(*parameters_);
  plan_.gradients = floatsIn(*gradients_);
  plan_.weights = bytesOf(*parameters_);
  if (engine_->element == Element::kF32) return {};
  MUSTER_TRY(low_, zeros(device_, elements_ * static_cast<uint64_t>(bytesOf(engine_->element))));
  plan_.weights = bytesOf(*low_);
  return {};
}

Status CudaProgram::planBackward() {
  for (size_t i = ops_.size(); i-- > 0;)
    MUSTER_CHECK_OK(ops_[i]->planBackward(plan_).context(nameOf(ops_[i]->layer())));
  return {};
}

/// Algorithms are run on the program's own memory; the gradients they leave are wiped.
Status CudaProgram::tune() {
  if (plan_.workspaceBytes > 0) {
    MUSTER_TRY(engine_->workspace, storage_.keep(plan_.workspaceBytes));
  }
  engine_->workspaceBytes = plan_.workspaceBytes;
  for (const auto& op : ops_) MUSTER_CHECK_OK(op->tune().context(nameOf(op->layer())));
  MUSTER_CUDA(cudaMemsetAsync(plan_.gradients, 0, elements_ * sizeof(float), engine_->stream));
  MUSTER_CUDA(cudaStreamSynchronize(engine_->stream));
  return {};
}

void CudaProgram::makeSegments() {
  size_t end = ops_.size();
  ElementRange open;
  for (size_t i = ops_.size(); i-- > 0;) {
    const ElementRange range = rangeOf(ops_[i]->layer());
    if (range.count > 0) open = {range.first, open.count + range.count};
    if (open.count < kSegmentElements && i > 0) continue;
    segments_.push_back({i, end, open, {}});
    open = {};
    end = i;
  }
}

ElementRange CudaProgram::rangeOf(const Layer& layer) const {
  ElementRange range;
  for (int index : {layer.weight, layer.bias, layer.normScale, layer.normShift}) {
    if (index < 0) continue;
    const ParameterPlace& place = plan_.places[static_cast<size_t>(index)];
    range.first = range.count == 0 ? place.first : std::min(range.first, place.first);
    range.count += place.count;
  }
  return range;
}

Status CudaProgram::forward(Pass pass) {
  state_ = State::kNew;
  Replayed& replayed = pass == Pass::kTraining ? training_ : evaluation_;
  MUSTER_CHECK_OK(replayed.run(engine_->stream, [&]() -> Status {
    for (const auto& op : ops_) MUSTER_CHECK_OK(op->forward(pass).context(nameOf(op->layer())));
    return {};
  }));
  state_ = pass == Pass::kTraining ? State::kForward : State::kEvaluated;
  return {};
}

Status CudaProgram::backward(const GradientsReady& ready) {
  if (state_ != State::kForward)
    return Error{ErrorCode::kUsage, "backward() needs a forward pass in training before it, and uses that up",
                 ""};
  if (engine_->element == Element::kF16)
    return Error{ErrorCode::kUnsupported,
                 "gradients in f16 need a scaled loss, which Muster does not do; train in bf16, tf32 or f32",
                 ""};
  state_ = State::kBackward;
  for (Segment& segment : segments_) {
    MUSTER_CHECK_OK(segment.replayed.run(engine_->stream, [&]() -> Status {
      for (size_t i = segment.end; i-- > segment.first;)
        MUSTER_CHECK_OK(ops_[i]->backward().context(nameOf(ops_[i]->layer())));
      return {};
    }));
    if (ready && segment.range.count > 0) MUSTER_CHECK_OK(ready(segment.range));
  }
  return {};
}

Status CudaProgram::setOptimizer(const OptimizerSpec& spec) {
  optimizer_ = spec;
  update_ = std::make_unique<Replayed>();
  squares_.reset();
  MUSTER_TRY(moments_, zeros(device_, elements_ * sizeof(float)));
  if (spec.kind == OptimizerKind::kAdamW) {
    MUSTER_TRY(squares_, zeros(device_, elements_ * sizeof(float)));
  }
  std::vector<uint8_t> decays(elements_ / kDecayBlock);
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    const bool decay = spec.decayAll || network_.parameters()[i].role == ParameterRole::kWeight;
    const auto first = static_cast<int64_t>(plan_.places[i].first / kDecayBlock);
    std::fill_n(decays.begin() + first, plan_.places[i].count / kDecayBlock, decay ? 1 : 0);
  }
  MUSTER_TRY(decays_, zeros(device_, decays.size()));
  MUSTER_TRY(scalars_, zeros(device_, sizeof(StepScalars)));
  MUSTER_CHECK_OK(copyToDevice(bytesOf(*decays_), decays.data(), decays.size()));
  steps_ = 0;
  return {};
}

Status CudaProgram::update() {
  Optimized data;
  data.count = static_cast<int64_t>(elements_);
  data.decays = reinterpret_cast<const uint8_t*>(bytesOf(*decays_));
  data.weightDecay = static_cast<float>(optimizer_.weightDecay);
  data.gradient = plan_.gradients;
  data.parameters = plan_.parameters;
  data.element = engine_->element;
  data.low = low_ == nullptr ? nullptr : bytesOf(*low_);
  data.first = floatsIn(*moments_);
  data.scalars = reinterpret_cast<const StepScalars*>(bytesOf(*scalars_));
  if (optimizer_.kind == OptimizerKind::kSgd) {
    MUSTER_CUDA(sgdStep(data, engine_->stream));
    return {};
  }
  data.second = floatsIn(*squares_);
  const AdamFactors factors = {static_cast<float>(optimizer_.beta1), static_cast<float>(optimizer_.beta2),
                               static_cast<float>(optimizer_.epsilon)};
  MUSTER_CUDA(adamStep(data, factors, engine_->stream));
  return {};
}

Status CudaProgram::step(double learningRate, double gradientScale) {
  if (steps_ < 0) return Error{ErrorCode::kUsage, "step() needs setOptimizer() before it", ""};
  ++steps_;
  const auto correction = [&](double beta) {
    return static_cast<float>(1 - std::pow(beta, static_cast<double>(steps_)));
  };
  StepScalars scalars;
  scalars.learningRate = static_cast<float>(learningRate);
  scalars.gradientScale = static_cast<float>(gradientScale);
  scalars.momentum = steps_ == 1 ? 0.0f : static_cast<float>(optimizer_.momentum);
  scalars.correction1 = correction(optimizer_.beta1);
  scalars.correction2 = correction(optimizer_.beta2);
  MUSTER_CUDA(setScalars(reinterpret_cast<StepScalars*>(bytesOf(*scalars_)), scalars, engine_->stream));
  return update_->run(engine_->stream, [this] { return update(); });
}

}  // namespace muster::cuda
