// SPDX-License-Identifier: Apache-2.0
// Compiling a network for the host, and running it.
#include "kernels/host/nn/program.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <new>

#include "kernels/host/buffer.h"
#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

constexpr uint64_t kAlign =
    16;  ///< floats: parameters begin on cache lines, and blocks of channels may be read whole

float* floatsIn(const Buffer& buffer) {
  return reinterpret_cast<float*>(bytesOf(buffer));
}

Result<std::unique_ptr<Buffer>> zeros(Device& device, uint64_t floats) {
  MUSTER_TRY(std::unique_ptr<Buffer> buffer, device.allocate(floats * sizeof(float)));
  MUSTER_CHECK_OK(device.fillPattern(*buffer, static_cast<uint64_t>(Pattern::kZeros)));
  return buffer;
}

}  // namespace

HostProgram::HostProgram(Device& device, Network network, Element element, int threads)
    : device_(device),
      network_(std::move(network)),
      storage_(device),
      plan_{.engine = engine_,
            .storage = storage_,
            .network = network_,
            .type = element == Element::kBf16 ? memory::data_type::bf16 : memory::data_type::f32,
            .loops = loops(element),
            .values = std::vector<Value>(static_cast<size_t>(network_.tensorCount())),
            .places = std::vector<ParameterPlace>(network_.parameters().size()),
            .statistics = std::vector<StatisticsPlace>(network_.statistics().size())} {
  engine_.threads = threads;
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  const bool narrow = isa == dnnl::cpu_isa::sse41 || isa == dnnl::cpu_isa::avx ||
                      isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni;
  plan_.lanes = narrow ? 8 : 16;
}

Result<std::unique_ptr<Program>> HostProgram::compile(Device& device, const Network& network, Element element,
                                                      int threads) {
  MUSTER_CHECK_OK(network.check());
  omp_set_num_threads(threads);
  std::unique_ptr<HostProgram> program(new HostProgram(device, network, element, threads));
  MUSTER_CHECK_OK(guarded("prepare this network", [&] { return program->prepare(); }));
  return std::unique_ptr<Program>(std::move(program));
}

Status HostProgram::prepare() {
  MUSTER_CHECK_OK(makeInputs());
  MUSTER_CHECK_OK(makeStatistics());
  MUSTER_CHECK_OK(makeOps());
  MUSTER_CHECK_OK(makeParameters());
  MUSTER_TRY(plan_.scratch, storage_.keep(plan_.scratchFloats));
  for (const auto& op : ops_) MUSTER_CHECK_OK(op->bind(plan_));
  return planBackward();
}

Status HostProgram::makeInputs() {
  for (int id = 0; id < network_.tensorCount(); ++id) {
    if (!network_.isInput({id})) continue;
    Value& value = plan_.of({id});
    value.needsGradient = false;
    value.desc =
        network_.limit({id}) > 0 ? plain(network_.shape({id})) : plain(network_.shape({id}), plan_.type);
    MUSTER_TRY(value.data, storage_.keep(floatsOf(value.desc)));
  }
  return {};
}

Status HostProgram::makeStatistics() {
  for (size_t i = 0; i < network_.statistics().size(); ++i) {
    const auto channels = static_cast<uint64_t>(network_.statistics()[i].channels) + kAlign;
    MUSTER_TRY(plan_.statistics[i].mean, storage_.keep(channels));
    MUSTER_TRY(plan_.statistics[i].variance, storage_.keep(channels));
    std::fill_n(plan_.statistics[i].variance, network_.statistics()[i].channels, 1.0f);
  }
  return {};
}

Status HostProgram::makeOps() {
  for (const Layer& layer : network_.layers()) {
    if (layer.kind == LayerKind::kCrossEntropy) {
      auto loss = makeCrossEntropy(layer, plan_);
      loss_ = loss.get();
      ops_.push_back(std::move(loss));
    } else {
      MUSTER_TRY(std::unique_ptr<Op> op, makeOp(layer, plan_));
      ops_.push_back(std::move(op));
    }
    MUSTER_CHECK_OK(ops_.back()->prepare(plan_).context(std::string(layerKindName(layer.kind)) + " \"" +
                                                        layer.name + "\""));
  }
  return {};
}

Status HostProgram::makeParameters() {
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    ParameterPlace& place = plan_.places[i];
    if (place.desc.get_size() == 0) place.desc = plain(network_.parameters()[i].shape);
    place.first = elements_;
    place.count = (floatsOf(place.desc) + kAlign - 1) / kAlign * kAlign;
    elements_ += place.count;
  }
  if (elements_ == 0) return Error{ErrorCode::kUsage, "the network has no parameter to train", ""};
  MUSTER_TRY(parameters_, zeros(device_, elements_));
  MUSTER_TRY(gradients_, zeros(device_, elements_));
  plan_.parameters = floatsIn(*parameters_);
  plan_.gradients = floatsIn(*gradients_);
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    const Parameter& parameter = network_.parameters()[i];
    if (parameter.role == ParameterRole::kScale)
      std::fill_n(plan_.parameter(static_cast<int>(i)), parameter.elements(), 1.0f);
  }
  return {};
}

Status HostProgram::planBackward() {
  for (size_t i = ops_.size(); i-- > 0;) {
    const Layer& layer = ops_[i]->layer();
    MUSTER_CHECK_OK(ops_[i]->planBackward(plan_).context(std::string(layerKindName(layer.kind)) + " \"" +
                                                         layer.name + "\""));
  }
  return {};
}

Status HostProgram::forward(Pass pass) {
  state_ = State::kNew;
  MUSTER_CHECK_OK(guarded("run a forward pass", [&]() -> Status {
    for (const auto& op : ops_) op->forward(pass);
    return {};
  }));
  state_ = pass == Pass::kTraining ? State::kForward : State::kEvaluated;
  return {};
}

ElementRange HostProgram::rangeOf(const Layer& layer) const {
  ElementRange range;
  for (int index : {layer.weight, layer.bias, layer.normScale, layer.normShift}) {
    if (index < 0) continue;
    const ParameterPlace& place = plan_.places[static_cast<size_t>(index)];
    if (range.count == 0) range.first = place.first;
    range.first = std::min(range.first, place.first);
    range.count += place.count;
  }
  return range;
}

Status HostProgram::backward(const GradientsReady& ready) {
  if (state_ != State::kForward)
    return Error{ErrorCode::kUsage, "backward() needs a forward pass in training before it, and uses that up",
                 ""};
  state_ = State::kBackward;
  return guarded("run a backward pass", [&]() -> Status {
    for (size_t i = ops_.size(); i-- > 0;) {
      ops_[i]->backward();
      const ElementRange range = rangeOf(ops_[i]->layer());
      if (ready && range.count > 0) MUSTER_CHECK_OK(ready(range));
    }
    return {};
  });
}

Status HostProgram::setOptimizer(const OptimizerSpec& spec) {
  optimizer_ = spec;
  squares_.reset();
  MUSTER_TRY(moments_, zeros(device_, elements_));
  if (spec.kind == OptimizerKind::kAdamW) {
    MUSTER_TRY(squares_, zeros(device_, elements_));
  }
  steps_ = 0;
  return {};
}

/// Neighbours that are treated alike are put together: few long ranges.
std::vector<std::pair<ElementRange, bool>> HostProgram::decayRanges() const {
  std::vector<std::pair<ElementRange, bool>> ranges;
  for (size_t i = 0; i < plan_.places.size(); ++i) {
    const bool decays = optimizer_.decayAll || network_.parameters()[i].role == ParameterRole::kWeight;
    if (!ranges.empty() && (ranges.back().second == decays || optimizer_.weightDecay == 0))
      ranges.back().first.count += plan_.places[i].count;
    else
      ranges.push_back({{plan_.places[i].first, plan_.places[i].count}, decays});
  }
  return ranges;
}

Status HostProgram::step(double learningRate, double gradientScale) {
  if (steps_ < 0) return Error{ErrorCode::kUsage, "step() needs setOptimizer() before it", ""};
  ++steps_;
  const auto f = [](double value) { return static_cast<float>(value); };
  for (const auto& [range, decays] : decayRanges()) {
    const float decay = f(decays ? optimizer_.weightDecay : 0);
    float* p = plan_.parameters + range.first;
    const float* g = plan_.gradients + range.first;
    float* m = floatsIn(*moments_) + range.first;
    const auto count = static_cast<int64_t>(range.count);
    if (optimizer_.kind == OptimizerKind::kSgd) {
      plan_.loops.sgd({f(learningRate), f(optimizer_.momentum), decay, f(gradientScale)}, p, g, m, count,
                      steps_ == 1);
      continue;
    }
    const auto correction = [&](double beta) { return f(1 - std::pow(beta, static_cast<double>(steps_))); };
    plan_.loops.adam({f(learningRate), f(optimizer_.beta1), f(optimizer_.beta2), f(optimizer_.epsilon), decay,
                      f(gradientScale), correction(optimizer_.beta1), correction(optimizer_.beta2)},
                     p, g, m, floatsIn(*squares_) + range.first, count);
  }
  return {};
}

Result<double> HostProgram::loss() {
  if (state_ == State::kNew) return Error{ErrorCode::kUsage, "there is no loss before a forward pass", ""};
  return loss_->loss();
}

Result<int64_t> HostProgram::correct() {
  if (state_ == State::kNew)
    return Error{ErrorCode::kUsage, "nothing is classified before a forward pass", ""};
  return loss_->correct();
}

}  // namespace muster::host
