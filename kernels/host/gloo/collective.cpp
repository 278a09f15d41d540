// SPDX-License-Identifier: Apache-2.0
// Fills, runs and checks one collective on the host's memory.
#include "kernels/host/gloo/collective.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/host/buffer.h"
#include "kernels/host/gloo/elements.h"

namespace muster::host {
namespace {

constexpr uint64_t kNone = ~0ull;

/// What each rank tells the others once a result was checked.
struct Finding {
  uint64_t wrong = 0;
  uint64_t firstInput = kNone;  ///< index of the inputs behind the first wrong element of a reduction
};

class GlooCollective : public Collective {
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
  Result<bool> anyWrong(const CollectiveMismatch& own);
  Result<int> findSource(const CollectiveMismatch& own);
  Result<int> askWhoseInput(uint64_t index);
  [[nodiscard]] double inputAt(uint64_t index) const;
  template <typename T>
  Status shareWithAll(const T& own, std::vector<T>& all);

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
      if (mismatch.wrong++ > 0) continue;
      mismatch.firstElement = i;
      mismatch.source = origin.rank;
    }
  });
  return mismatch;
}

template <typename T>
Status GlooCollective::shareWithAll(const T& own, std::vector<T>& all) {
  all.assign(static_cast<size_t>(group_.size()), T{});
  T copy = own;
  CollectiveSpec spec;
  spec.op = CollectiveOp::kAllGather;
  spec.dtype = Dtype::kI8;
  spec.count = sizeof(T);
  const Operands at = {reinterpret_cast<std::byte*>(&copy), reinterpret_cast<std::byte*>(all.data())};
  return group_.run("comparing results", [&] { runCollective(group_, spec, nullptr, at); });
}

double GlooCollective::inputAt(uint64_t index) const {
  double value = 0;
  withElement(spec_.dtype, [&](auto element) {
    using Element = decltype(element);
    value = static_cast<double>(
        Element::load(reinterpret_cast<const typename Element::Stored*>(at_.send)[index]));
  });
  return value;
}

/// Whose input at `index` is not what it should be; -1: none, or it cannot be told.
Result<int> GlooCollective::askWhoseInput(uint64_t index) {
  std::vector<double> inputs;
  MUSTER_CHECK_OK(shareWithAll(inputAt(index), inputs));
  return wrongInput(values(), index, inputs, group_.rank());
}

Result<bool> GlooCollective::anyWrong(const CollectiveMismatch& own) {
  std::vector<double> wrong = {static_cast<double>(own.wrong)};
  MUSTER_CHECK_OK(group_.run("comparing results", [&] { runMaximum(group_, wrong); }));
  return wrong[0] > 0;
}

/// For reductions, whose results do not show what came from whom.
Result<int> GlooCollective::findSource(const CollectiveMismatch& own) {
  Finding finding;
  finding.wrong = own.wrong;
  if (own.wrong > 0)
    finding.firstInput = originOf(spec_, group_.rank(), group_.size(), own.firstElement).index;
  std::vector<Finding> all;
  MUSTER_CHECK_OK(shareWithAll(finding, all));
  int source = -1;
  for (const Finding& other : all) {
    if (other.wrong == 0) continue;
    MUSTER_CHECK_OK(checkInputIndex(spec_, group_.size(), other.firstInput));
    // In place the inputs are used up: nothing is left to look at.
    if (spec_.inPlace) return -1;
    MUSTER_TRY(int found, askWhoseInput(other.firstInput));
    if (source < 0) source = found;
  }
  return own.wrong > 0 ? source : -1;
}

Result<CollectiveMismatch> GlooCollective::check() {
  if (!prepared_) return Error{ErrorCode::kInternal, "check() before prepare()", collectiveOpName(spec_.op)};
  MUSTER_CHECK_OK(stream_.drain());
  CollectiveMismatch mismatch = compare();
  if (!reduces(spec_.op)) return mismatch;
  MUSTER_TRY(const bool any, anyWrong(mismatch));
  if (!any) return mismatch;
  MUSTER_TRY(mismatch.source, findSource(mismatch));
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
