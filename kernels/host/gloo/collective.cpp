// SPDX-License-Identifier: Apache-2.0
// Fills, runs and checks one collective on the host's memory.
#include "kernels/host/gloo/collective.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/checks/wrong_source.h"
#include "kernels/host/buffer.h"
#include "kernels/host/gloo/elements.h"

namespace muster::host {
namespace {

class GlooCollective : public Collective, private RankExchange {
 public:
  GlooCollective(GlooGroup& group, Stream& stream, const CollectiveSpec& spec, Reduction reduction)
      : group_(group), stream_(stream), spec_(spec), reduction_(reduction) {}

  Status allocate(Device& device);
  Status prepare(uint64_t seed) override;
  Status run() override;
  Result<CollectiveMismatch> check() override;

 private:
  [[nodiscard]] ExactValues values() const {
    // What is only moved may be any value that its type holds.
    return {spec_.dtype, reduces(spec_.op) ? spec_.reduce : ReduceOp::kMax, group_.size(), seed_};
  }
  [[nodiscard]] uint64_t elementBytes() const { return dtypeBits(spec_.dtype) / 8; }
  void fillInput();
  CollectiveMismatch compare() const;
  Result<double> inputAt(uint64_t index) override;
  Status exchange(CollectiveOp op, std::span<const std::byte> sent, std::span<std::byte> received) override;

  GlooGroup& group_;
  Stream& stream_;
  CollectiveSpec spec_;
  Reduction reduction_;
  std::unique_ptr<Buffer> input_;  ///< none in place
  std::unique_ptr<Buffer> output_;
  Operands at_;
  uint64_t seed_ = 0;
  bool prepared_ = false;
};

/// In place, input and output lie in each other as in nccl-tests: a rank's block at its own place.
Status GlooCollective::allocate(Device& device) {
  const uint64_t size = elementBytes();
  const uint64_t send = spec_.sendCount(group_.size()) * size;
  const uint64_t receive = spec_.receiveCount(group_.size()) * size;
  const uint64_t own = static_cast<uint64_t>(group_.rank()) * spec_.count * size;
  MUSTER_TRY(output_, device.allocate(spec_.inPlace ? std::max(send, receive) : receive));
  at_.receive = bytesOf(*output_);
  at_.send = at_.receive;
  if (!spec_.inPlace) {
    MUSTER_TRY(input_, device.allocate(send));
    at_.send = bytesOf(*input_);
  } else if (send > receive) {
    at_.receive += own;
  } else if (receive > send) {
    at_.send += own;
  }
  return {};
}

void GlooCollective::fillInput() {
  const ExactValues exact = values();
  const uint64_t count = spec_.sendCount(group_.size());
  withElement(spec_.dtype, [&](auto element) {
    using Element = decltype(element);
    auto* to = reinterpret_cast<typename Element::Stored*>(at_.send);
    using Value = decltype(Element::load(*to));
    for (uint64_t i = 0; i < count; ++i)
      to[i] = Element::store(static_cast<Value>(exact.input(group_.rank(), i)));
  });
}

/// All ones first: a result that nobody wrote is NaN.
Status GlooCollective::prepare(uint64_t seed) {
  MUSTER_CHECK_OK(stream_.drain());
  seed_ = seed;
  std::memset(bytesOf(*output_), 0xff, output_->bytes());
  fillInput();
  prepared_ = true;
  return {};
}

Status GlooCollective::run() {
  if (!prepared_) return Error{ErrorCode::kInternal, "run() before prepare()", collectiveOpName(spec_.op)};
  MUSTER_CHECK_OK(stream_.drain());
  return group_.run(collectiveOpName(spec_.op), [&] { runCollective(group_, spec_, reduction_, at_); });
}

CollectiveMismatch GlooCollective::compare() const {
  CollectiveMismatch mismatch;
  if (!hasResult(spec_, group_.rank())) return mismatch;
  const ExactValues exact = values();
  const uint64_t count = spec_.receiveCount(group_.size());
  withElement(spec_.dtype, [&](auto element) {
    using Element = decltype(element);
    const auto* got = reinterpret_cast<const typename Element::Stored*>(at_.receive);
    using Value = decltype(Element::load(*got));
    for (uint64_t i = 0; i < count; ++i) {
      const Origin origin = originOf(spec_, group_.rank(), group_.size(), i);
      const double want =
          origin.rank < 0 ? exact.reduced(origin.index) : exact.input(origin.rank, origin.index);
      // A NaN equals nothing. The cast rounds an average as the division did.
      if (Element::load(got[i]) == Element::load(Element::store(static_cast<Value>(want)))) continue;
      if (mismatch.wrong++ == 0) mismatch.firstElement = i;
      mismatch.lastElement = i;
    }
  });
  return mismatch;
}

Status GlooCollective::exchange(CollectiveOp op, std::span<const std::byte> sent,
                                std::span<std::byte> received) {
  CollectiveSpec spec;
  spec.op = op;
  spec.dtype = Dtype::kI8;
  spec.count = received.size() / static_cast<size_t>(group_.size());
  std::vector<std::byte> copy(sent.begin(), sent.end());  // Gloo takes no constant memory
  return group_.run("comparing results", [&] {
    runCollective(group_, spec, nullptr, {copy.data(), received.data()});
  });
}

Result<double> GlooCollective::inputAt(uint64_t index) {
  double value = 0;
  withElement(spec_.dtype, [&](auto element) {
    using Element = decltype(element);
    value = static_cast<double>(
        Element::load(reinterpret_cast<const typename Element::Stored*>(at_.send)[index]));
  });
  return value;
}

Result<CollectiveMismatch> GlooCollective::check() {
  if (!prepared_) return Error{ErrorCode::kInternal, "check() before prepare()", collectiveOpName(spec_.op)};
  MUSTER_CHECK_OK(stream_.drain());
  CollectiveMismatch mismatch = compare();
  const Status searched = findWrongSource(spec_, values(), group_.rank(), *this, mismatch);
  // What is wrong here is wrong, also if another rank is lost in the search; the next call tells that.
  if (!searched.ok() && mismatch.wrong == 0) return searched.error();
  return mismatch;
}

}  // namespace

Result<std::unique_ptr<Collective>> makeCollective(Device& device, GlooGroup& group, Stream& stream,
                                                   const CollectiveSpec& spec) {
  MUSTER_CHECK_OK(checkSpec(spec, group.size()));
  Reduction reduction = nullptr;
  if (!withElement(spec.dtype, [](auto) {}))
    return Error{ErrorCode::kUnsupported,
                 std::string("the host has no ") + dtypeName(spec.dtype) +
                     " in collectives, only f64, f32, f16, bf16, i8",
                 collectiveOpName(spec.op)};
  if (reduces(spec.op)) {
    MUSTER_TRY(reduction, reductionFor(spec.dtype, spec.reduce));
  }
  auto made = std::make_unique<GlooCollective>(group, stream, spec, reduction);
  MUSTER_CHECK_OK(made->allocate(device));
  return std::unique_ptr<Collective>(std::move(made));
}

}  // namespace muster::host
