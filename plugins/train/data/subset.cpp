// SPDX-License-Identifier: Apache-2.0
// Selects samples evenly over a data set.
#include "plugins/train/data/subset.h"

#include <fmt/format.h>

namespace muster::train {
namespace {

class Subset : public Dataset {
 public:
  Subset(std::unique_ptr<Dataset> whole, uint64_t limit) : whole_(std::move(whole)), limit_(limit) {}
  [[nodiscard]] std::string name() const override {
    return fmt::format("{} ({} of {})", whole_->name(), limit_, whole_->size());
  }
  [[nodiscard]] SampleShape shape() const override { return whole_->shape(); }
  [[nodiscard]] int classes() const override { return whole_->classes(); }
  [[nodiscard]] uint64_t size() const override { return limit_; }
  Status read(uint64_t index, uint64_t key, const SampleSink& sink) const override {
    const auto wide = static_cast<unsigned __int128>(index) * whole_->size() / limit_;
    return whole_->read(static_cast<uint64_t>(wide), key, sink);
  }

 private:
  std::unique_ptr<Dataset> whole_;
  uint64_t limit_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> limitTo(std::unique_ptr<Dataset> whole, uint64_t limit) {
  if (limit > whole->size())
    return Error{ErrorCode::kUsage,
                 fmt::format("{} samples are asked for, and {} has {}", limit, whole->name(), whole->size()),
                 "samples"};
  if (limit == 0 || limit == whole->size()) return whole;
  return std::unique_ptr<Dataset>(std::make_unique<Subset>(std::move(whole), limit));
}

}  // namespace muster::train
