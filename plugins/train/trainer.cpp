// SPDX-License-Identifier: Apache-2.0
// Runs the training steps of one rank.
#include "plugins/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace muster::train {
namespace {

LoaderSpec loaderSpec(const Params& params, const Group& group, uint64_t batches, uint64_t seed) {
  LoaderSpec spec;
  spec.sampler.rank = group.rank();
  spec.sampler.ranks = group.size();
  spec.sampler.batch = static_cast<int>(params.model.batch);
  spec.sampler.seed = seed;
  spec.workers = params.workers;
  spec.prefetch = params.prefetch;
  spec.batches = batches;
  spec.augment = params.augment;
  return spec;
}

/// Ranks whose buffers lie in another order would add apples to pears.
Status checkLayout(const Group& group, const Program& program) {
  MUSTER_TRY(std::vector<int> others, group.deviants(std::hash<std::string>{}(program.layout())));
  if (others.empty()) return {};
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("the ranks keep their gradients in different orders, so they cannot be summed; {} of {} "
                  "differ: {}; this rank's is {}; use devices of one kind",
                  others.size(), group.size(), fmt::join(others, ", "), program.layout()),
      fmt::format("rank {}", group.rank())};
}

}  // namespace

Status writeBatch(const Model& model, const Batch& batch, Program& program) {
  MUSTER_CHECK_OK(batch.tokens.empty()
                      ? program.writeInput(model.input, std::span<const float>(batch.images))
                      : program.writeInput(model.input, std::span<const int32_t>(batch.tokens)));
  return program.writeInput(model.labels, std::span<const int32_t>(batch.labels));
}

Trainer::Trainer(const Bench& bench, const Group& group, const Params& params, Model model,
                 std::unique_ptr<Program> program)
    : bench_(bench),
      group_(group),
      params_(params),
      model_(std::move(model)),
      program_(std::move(program)),
      reducer_(group.communicator(), *program_,
               std::max<uint64_t>(1, static_cast<uint64_t>(params.bucketBytes) / sizeof(float))) {}

Result<std::unique_ptr<Trainer>> Trainer::make(const Bench& bench, const Group& group, const Params& params,
                                               const Dataset* data, uint64_t batches, uint64_t seed) {
  MUSTER_TRY(Model model, buildModel(params.model));
  MUSTER_TRY(auto program, bench.nn.compile(model.network, params.program));
  MUSTER_CHECK_OK(initialise(params.model, seed, *program));
  MUSTER_CHECK_OK(program->setOptimizer(params.optimizer));
  MUSTER_CHECK_OK(checkLayout(group, *program));
  std::unique_ptr<Trainer> trainer(new Trainer(bench, group, params, std::move(model), std::move(program)));
  if (bench.nn.readsInputs()) {
    MUSTER_TRY(trainer->loader_, Loader::start(*data, loaderSpec(params, group, batches, seed)));
    trainer->pinInputs();
  }
  return trainer;
}

/// Without it the copies are only slower, which the share of waiting tells.
void Trainer::pinInputs() {
  for (const std::span<float> images : loader_->imageMemory()) {
    auto pin = bench_.device.pin(images.data(), images.size_bytes());
    if (!pin.ok())
      return bench_.host.log(MUSTER_LOG_WARNING,
                             "inputs are copied from memory that is not pinned: " + pin.error().text());
    pins_.push_back(std::move(*pin));
  }
}

Status Trainer::takeBatch() {
  if (loader_ == nullptr) return {};
  MUSTER_TRY(const Batch* batch, loader_->next());
  return writeBatch(model_, *batch, *program_);
}

Status Trainer::backwardApart(uint64_t& ownGradients) {
  std::vector<ElementRange> ranges;
  MUSTER_CHECK_OK(program_->backward([&](ElementRange range) {
    ranges.push_back(range);
    return Status();
  }));
  MUSTER_TRY(ownGradients, bench_.device.hash(program_->gradients()));
  for (const ElementRange& range : ranges) MUSTER_CHECK_OK(reducer_.ready(range));
  return {};
}

Result<Step> Trainer::step(Sum sum) {
  Step step;
  const double start = bench_.device.now();
  MUSTER_CHECK_OK(takeBatch());
  step.wait = bench_.device.now() - start;
  MUSTER_CHECK_OK(program_->forward(Pass::kTraining));
  MUSTER_CHECK_OK(sum == Sum::kApart
                      ? backwardApart(step.ownGradients)
                      : program_->backward([this](ElementRange range) { return reducer_.ready(range); }));
  MUSTER_CHECK_OK(reducer_.finish());
  MUSTER_CHECK_OK(program_->step(params_.learningRate, 1.0 / group_.size()));
  MUSTER_CHECK_OK(bench_.device.synchronize());
  step.seconds = bench_.device.now() - start;
  MUSTER_TRY(step.loss, program_->loss());
  ++steps_;
  if (std::isfinite(step.loss)) return step;
  // The first loss is of what nobody else has touched.
  const bool own = group_.size() == 1 || steps_ == 1;
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("the loss is {} after {} steps{}; the device computes wrong, {}or the learning rate {} "
                  "is too high for this model",
                  step.loss, steps_, own ? "" : ", from a rank that cannot be told",
                  own ? "" : "a link changes data, ", params_.learningRate),
      fmt::format("rank {} on {}", group_.rank(), bench_.device.info().id)};
}

Status Trainer::stepAlone() {
  MUSTER_CHECK_OK(program_->forward(Pass::kTraining));
  MUSTER_CHECK_OK(program_->backward());
  MUSTER_CHECK_OK(program_->step(params_.learningRate, 1.0));
  return bench_.device.synchronize();
}

Result<std::vector<int>> Trainer::divergedRanks() {
  if (group_.size() == 1) return std::vector<int>{};
  MUSTER_TRY(const uint64_t sums, bench_.device.hash(program_->gradients()));
  // They start equal and take equal steps: in them an earlier sum that differed is left.
  MUSTER_TRY(const uint64_t parameters, bench_.device.hash(program_->parameters()));
  return group_.deviants(sums ^ std::rotl(parameters, 1));
}

}  // namespace muster::train
