// SPDX-License-Identifier: Apache-2.0
// Runs the reader threads and hands out their batches in order.
#include "plugins/train/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "plugins/train/random.h"

namespace muster::train {

Loader::Loader(const Dataset& dataset, const LoaderSpec& spec, std::unique_ptr<Sampler> sampler)
    : dataset_(dataset),
      spec_(spec),
      sampler_(std::move(sampler)),
      slots_(static_cast<size_t>(spec.prefetch) + 1) {
  const SampleShape shape = dataset.shape();
  const auto rows = static_cast<size_t>(spec.sampler.batch);
  for (Slot& slot : slots_) {
    slot.batch.images.resize(rows * shape.pixels());
    slot.batch.tokens.resize(rows * static_cast<size_t>(shape.tokens));
    slot.batch.labels.resize(rows * shape.labels());
  }
}

Result<std::unique_ptr<Loader>> Loader::start(const Dataset& dataset, const LoaderSpec& spec) {
  LoaderSpec filled = spec;
  filled.sampler.size = dataset.size();
  MUSTER_TRY(auto sampler, Sampler::make(filled.sampler));
  std::unique_ptr<Loader> loader(new Loader(dataset, filled, std::move(sampler)));
  for (int i = 0; i < spec.workers; ++i) loader->threads_.emplace_back([raw = loader.get()] { raw->work(); });
  return loader;
}

Loader::~Loader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  freed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::span<float>> Loader::imageMemory() {
  std::vector<std::span<float>> memory;
  for (Slot& slot : slots_)
    if (!slot.batch.images.empty()) memory.emplace_back(slot.batch.images);
  return memory;
}

Status Loader::fill(uint64_t number, Batch& batch) {
  const SampleShape shape = dataset_.shape();
  const std::vector<uint64_t> samples = sampler_->batch(number);
  const uint64_t epochKey = mixKeys(spec_.sampler.seed + 1, sampler_->epochOf(number));
  batch.number = number;
  batch.valid = static_cast<int>(samples.size());
  std::fill(batch.labels.begin(), batch.labels.end(), 0);
  for (size_t row = 0; row < samples.size(); ++row) {
    const SampleSink sink = {batch.images.data() + row * shape.pixels(),
                             batch.tokens.data() + row * static_cast<size_t>(shape.tokens),
                             batch.labels.data() + row * shape.labels()};
    // Key 0 would mean no augmentation.
    const uint64_t key = spec_.augment ? mixKeys(epochKey, samples[row]) | 1 : 0;
    MUSTER_CHECK_OK(dataset_.read(samples[row], key, sink));
  }
  return {};
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    freed_.wait(
        lock, [this] { return stop_ || claimed_ >= spec_.batches || claimed_ < released_ + slots_.size(); });
    if (stop_ || claimed_ >= spec_.batches) return;
    const uint64_t number = claimed_++;
    Slot& slot = slots_[number % slots_.size()];
    lock.unlock();
    Status status;
    try {
      status = fill(number, slot.batch);
    } catch (const std::exception& e) {
      status = Error{ErrorCode::kInternal, std::string("exception in a loader thread: ") + e.what(),
                     dataset_.name()};
    }
    lock.lock();
    slot.status = std::move(status);
    slot.ready = true;
    filled_.notify_one();
  }
}

Result<const Batch*> Loader::next() {
  std::unique_lock lock(mutex_);
  if (handed_ >= spec_.batches)
    return Error{ErrorCode::kInternal, fmt::format("batch {} was asked for, of {}", handed_, spec_.batches),
                 dataset_.name()};
  if (holding_) {
    slots_[released_ % slots_.size()].ready = false;
    ++released_;
    holding_ = false;
    freed_.notify_one();
  }
  Slot& slot = slots_[handed_ % slots_.size()];
  filled_.wait(lock, [&] { return slot.ready; });
  if (!slot.status.ok()) return slot.status.error();
  ++handed_;
  holding_ = true;
  return static_cast<const Batch*>(&slot.batch);
}

}  // namespace muster::train
