// SPDX-License-Identifier: Apache-2.0
// Shuffles the samples of an epoch and splits them over ranks and batches.
#include "plugins/train/data/sampler.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>

#include "plugins/train/random.h"

namespace muster::train {

Sampler::Sampler(const SamplerSpec& spec) : spec_(spec) {
  const auto group = static_cast<uint64_t>(spec.ranks) * static_cast<uint64_t>(spec.batch);
  batchesPerEpoch_ = spec.wholeSet ? (spec.size + group - 1) / group : spec.size / group;
}

Result<std::unique_ptr<Sampler>> Sampler::make(const SamplerSpec& spec) {
  if (spec.size > std::numeric_limits<uint32_t>::max())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("a data set of {} samples; at most {} can be shuffled", spec.size,
                             std::numeric_limits<uint32_t>::max()),
                 ""};
  std::unique_ptr<Sampler> sampler(new Sampler(spec));
  if (sampler->batchesPerEpoch_ == 0)
    return Error{
        ErrorCode::kUsage,
        fmt::format("{} samples are not enough for one batch of {} on each of {} ranks; lower batch_size",
                    spec.size, spec.batch, spec.ranks),
        "batch_size"};
  return sampler;
}

Sampler::Order Sampler::order(uint64_t epoch) {
  std::lock_guard lock(mutex_);
  if (auto found = orders_.find(epoch); found != orders_.end()) return found->second;
  auto order = std::make_shared<std::vector<uint32_t>>(spec_.size);
  std::iota(order->begin(), order->end(), 0U);
  if (spec_.shuffle) {
    const uint64_t key = mixKeys(spec_.seed, epoch);
    for (uint64_t i = spec_.size; i > 1; --i) std::swap((*order)[i - 1], (*order)[below(mixKeys(key, i), i)]);
  }
  // Workers are at most one epoch apart.
  while (orders_.size() > 1) orders_.erase(orders_.begin());
  orders_[epoch] = order;
  return order;
}

std::vector<uint64_t> Sampler::batch(uint64_t number) {
  const Order order = this->order(epochOf(number));
  const auto size = static_cast<uint64_t>(spec_.batch);
  const auto ranks = static_cast<uint64_t>(spec_.ranks);
  const uint64_t first = (number % batchesPerEpoch_) * size * ranks + static_cast<uint64_t>(spec_.rank);
  std::vector<uint64_t> samples;
  samples.reserve(size);
  for (uint64_t i = 0; i < size && first + i * ranks < spec_.size; ++i)
    samples.push_back((*order)[first + i * ranks]);
  return samples;
}

}  // namespace muster::train
