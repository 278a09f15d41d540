// SPDX-License-Identifier: Apache-2.0
// The host's communicator over Gloo. The entry of host_gloo.so.
#include "kernels/interfaces/communicator.h"

#include <fmt/format.h>
#include <gloo/config.h>

#include <algorithm>
#include <chrono>

#include "kernels/checks/largest.h"
#include "kernels/host/buffer.h"
#include "kernels/host/gloo.h"
#include "kernels/host/gloo/algorithms.h"
#include "kernels/host/gloo/collective.h"
#include "kernels/host/gloo/stream.h"
#include "runner/core/build_info.h"
#include "runner/core/units.h"

namespace muster::host {
namespace {

/// Work of the device is done when its call returns, so what must wait for it can begin at once: only
/// allReduce() goes beside it, on a thread of its own.
class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(Device& device, std::unique_ptr<GlooGroup> group)
      : device_(device), group_(std::move(group)), before_(readTraffic()) {}
  ~GlooCommunicator() override {
    if (!stream_.idle()) group_->abort();  // else its end would wait for that of the work
  }

  [[nodiscard]] int rank() const override { return group_->rank(); }
  [[nodiscard]] int size() const override { return group_->size(); }
  [[nodiscard]] std::string implementation() const override {
    return fmt::format("gloo {}.{}.{} tcp on {} ({})", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
                       GLOO_VERSION_PATCH, group_->endpoint().interface, group_->endpoint().address);
  }

  Result<std::unique_ptr<Collective>> collective(const CollectiveSpec& spec) override {
    return makeCollective(device_, *group_, stream_, spec);
  }
  Status allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype, ReduceOp reduce) override;
  Status broadcast(Buffer& buffer, uint64_t bytes, int root) override;
  Status exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                  uint64_t receiveBytes) override;
  Status join() override { return stream_.drain(); }
  Status barrier() override {
    return inOrder("a barrier", [&] { runBarrier(*group_); });
  }
  Status synchronize() override {
    MUSTER_CHECK_OK(device_.synchronize());
    return stream_.drain();
  }
  Result<double> time(const std::function<Status()>& work) override;
  Result<std::vector<double>> maxOverRanks(const std::vector<double>& values) override;
  Result<std::vector<TransportUse>> transports() override;
  void abort() override { group_->abort(); }

 private:
  /// Runs `operation` after what is queued.
  Status inOrder(const char* what, const std::function<void()>& operation) {
    MUSTER_CHECK_OK(stream_.drain());
    return group_->run(what, operation);
  }
  static Status checkRange(const char* what, const Buffer& buffer, uint64_t bytes);

  Device& device_;
  std::unique_ptr<GlooGroup> group_;
  std::map<std::string, Traffic> before_;
  Stream stream_;  ///< last: its thread ends before what it works on
};

Status GlooCommunicator::checkRange(const char* what, const Buffer& buffer, uint64_t bytes) {
  if (bytes <= buffer.bytes()) return {};
  return Error{ErrorCode::kUsage, fmt::format("needs {} bytes, but the buffer has {}", bytes, buffer.bytes()),
               what};
}

Status GlooCommunicator::allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype,
                                   ReduceOp reduce) {
  CollectiveSpec spec;
  spec.dtype = dtype;
  spec.reduce = reduce;
  spec.count = count;
  spec.inPlace = true;
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  MUSTER_TRY(Reduction reduction, reductionFor(dtype, reduce));
  const uint64_t element = dtypeBits(dtype) / 8;
  MUSTER_CHECK_OK(checkRange("all_reduce", buffer, (first + count) * element));
  std::byte* data = bytesOf(buffer) + first * element;
  stream_.queue([this, spec, reduction, data] {
    return group_->run("all_reduce", [&] { runCollective(*group_, spec, reduction, {data, data}); });
  });
  return {};
}

Status GlooCommunicator::broadcast(Buffer& buffer, uint64_t bytes, int root) {
  CollectiveSpec spec;
  spec.op = CollectiveOp::kBroadcast;
  spec.dtype = Dtype::kI8;
  spec.count = bytes;
  spec.root = root;
  spec.inPlace = true;
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  MUSTER_CHECK_OK(checkRange("broadcast", buffer, bytes));
  const Operands at = {bytesOf(buffer), bytesOf(buffer)};
  return inOrder("broadcast", [&] { runCollective(*group_, spec, nullptr, at); });
}

Status GlooCommunicator::exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                                  uint64_t receiveBytes) {
  if (peer < 0 || peer >= size() || peer == rank())
    return Error{ErrorCode::kUsage, fmt::format("rank {} of {} has no peer {}", rank(), size(), peer),
                 "exchange"};
  MUSTER_CHECK_OK(checkRange("exchange", send, sendBytes));
  MUSTER_CHECK_OK(checkRange("exchange", receive, receiveBytes));
  const std::string what = fmt::format("an exchange with rank {}", peer);
  return inOrder(what.c_str(), [&] {
    runExchange(*group_, peer, bytesOf(send), sendBytes, bytesOf(receive), receiveBytes);
  });
}

Result<double> GlooCommunicator::time(const std::function<Status()>& work) {
  using Clock = std::chrono::steady_clock;
  MUSTER_CHECK_OK(synchronize());
  const auto start = Clock::now();
  MUSTER_CHECK_OK(work());
  MUSTER_CHECK_OK(synchronize());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<std::vector<double>> GlooCommunicator::maxOverRanks(const std::vector<double>& values) {
  return largestOverRanks(values, [&](std::span<double> all) {
    return inOrder("comparing values of all ranks", [&] { runMaximum(*group_, all); });
  });
}

/// What the kernel counted on every interface since the group was formed, the busiest first. Traffic of
/// others counts too, so this proves which interface carried the data and not how much of it was ours.
Result<std::vector<TransportUse>> GlooCommunicator::transports() {
  std::vector<TransportUse> uses;
  for (const auto& [name, bytes] : carried(before_, readTraffic())) {
    if (bytes.sent + bytes.received == 0) continue;
    const auto text = [](uint64_t n) { return formatQuantity(static_cast<double>(n), "B"); };
    uses.push_back(
        {"socket", static_cast<double>(bytes.sent),
         fmt::format("{}: tx_bytes +{}, rx_bytes +{}", name, text(bytes.sent), text(bytes.received))});
  }
  if (uses.empty())
    return Error{ErrorCode::kNotFound, "no interface counted any byte, so the transport is not confirmed",
                 "/sys/class/net/*/statistics"};
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return uses;
}

Result<std::unique_ptr<Communicator>> form(Device& device, const CommunicatorSpec& spec, GroupStore& store) {
  MUSTER_TRY(std::unique_ptr<GlooGroup> group, GlooGroup::form(spec, store));
  return std::unique_ptr<Communicator>(std::make_unique<GlooCommunicator>(device, std::move(group)));
}

}  // namespace
}  // namespace muster::host

extern "C" __attribute__((visibility("default")))
const muster::host::GlooEntry muster_host_gloo_entry = {muster::buildId(), muster::host::form};
