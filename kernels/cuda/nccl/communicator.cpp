// SPDX-License-Identifier: Apache-2.0
// A GPU's communicator over NCCL. The entry of cuda_nccl.so.
#include "kernels/interfaces/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/checks/largest.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/modules.h"
#include "kernels/cuda/nccl/collective.h"
#include "kernels/cuda/nccl/counters.h"
#include "kernels/cuda/nccl/process.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr size_t kMostValues = 4096;  ///< of maxOverRanks() at once

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(CudaDevice& device, Settings settings, NcclLog logBefore)
      : device_(device),
        settings_(std::move(settings)),
        logBefore_(std::move(logBefore)),
        counters_(device.info()) {}
  /// The group ends first: giving memory back waits for work that, without a peer, only an abort ends.
  ~NcclCommunicator() override { group_.reset(); }

  Status form(const CommunicatorSpec& spec, GroupStore& store);

  [[nodiscard]] int rank() const override { return group_->rank(); }
  [[nodiscard]] int size() const override { return group_->size(); }
  [[nodiscard]] std::string implementation() const override;

  Result<std::unique_ptr<Collective>> collective(const CollectiveSpec& spec) override {
    return makeCollective(*group_, spec, queued_);
  }
  Status allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype, ReduceOp reduce) override;
  Status broadcast(Buffer& buffer, uint64_t bytes, int root) override;
  Status exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                  uint64_t receiveBytes) override;
  Status join() override { return group_->beforeDevice(); }
  Status barrier() override;
  Status synchronize() override { return group_->wait("waiting for queued work"); }
  Result<double> time(const std::function<Status()>& work) override;
  Result<std::vector<double>> maxOverRanks(const std::vector<double>& values) override;
  Result<std::vector<TransportUse>> transports() override;
  Result<SettingsUse> settingsUse() override;
  void abort() override { group_->abort(); }

 private:
  static Status checkRange(const char* what, const Buffer& buffer, uint64_t bytes);
  Status maxOf(double* values, size_t count);

  CudaDevice& device_;
  Settings settings_;
  NcclLog logBefore_;  ///< what NCCL had said before this group was formed
  LinkCounters counters_;
  SentBytes sentBefore_;
  double queued_ = 0;  ///< bytes that this rank had to move
  std::unique_ptr<NcclGroup> group_;
  Event begin_, end_;
  DeviceMemory deviceValues_;  ///< kMostValues doubles
  PinnedMemory hostValues_;
};

Status NcclCommunicator::form(const CommunicatorSpec& spec, GroupStore& store) {
  sentBefore_ = counters_.read();
  MUSTER_TRY(group_, NcclGroup::form(device_, spec, store));
  MUSTER_TRY(begin_, makeEvent(true));
  MUSTER_TRY(end_, makeEvent(true));
  MUSTER_TRY(deviceValues_, makeDeviceMemory(kMostValues * sizeof(double)));
  MUSTER_TRY(hostValues_, makePinnedMemory(kMostValues * sizeof(double)));
  return {};
}

std::string NcclCommunicator::implementation() const {
  int version = 0;
  (void)ncclGetVersion(&version);
  auto log = NcclProcess::get().log();
  const std::string network = log.ok() && !log->network.empty() ? ", network " + log->network : "";
  return fmt::format("nccl {}.{}.{}{}", version / 10000, version / 100 % 100, version % 100, network);
}

Status NcclCommunicator::checkRange(const char* what, const Buffer& buffer, uint64_t bytes) {
  if (bytes <= buffer.bytes()) return {};
  return Error{ErrorCode::kUsage, fmt::format("needs {} bytes, but the buffer has {}", bytes, buffer.bytes()),
               what};
}

Status NcclCommunicator::allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype,
                                   ReduceOp reduce) {
  CollectiveSpec spec;
  spec.dtype = dtype;
  spec.reduce = reduce;
  spec.count = count;
  spec.inPlace = true;
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  MUSTER_TRY(ncclDataType_t type, ncclType(dtype));
  const uint64_t element = dtypeBits(dtype) / 8;
  MUSTER_CHECK_OK(checkRange("all_reduce", buffer, (first + count) * element));
  queued_ += static_cast<double>(spec.bytes(size())) * spec.busFactor(size());
  MUSTER_CHECK_OK(group_->afterDevice());
  std::byte* data = bytesOf(buffer) + first * element;
  return group_->queue("all_reduce", [&](ncclComm_t comm) {
    return ncclAllReduce(data, data, count, type, ncclReduction(reduce), comm, group_->stream());
  });
}

Status NcclCommunicator::broadcast(Buffer& buffer, uint64_t bytes, int root) {
  CollectiveSpec spec;
  spec.op = CollectiveOp::kBroadcast;
  spec.dtype = Dtype::kI8;
  spec.count = bytes;
  spec.root = root;
  MUSTER_CHECK_OK(checkSpec(spec, size()));
  MUSTER_CHECK_OK(checkRange("broadcast", buffer, bytes));
  queued_ += static_cast<double>(bytes);
  MUSTER_CHECK_OK(group_->afterDevice());
  MUSTER_CHECK_OK(group_->queue("broadcast", [&](ncclComm_t comm) {
    return ncclBroadcast(bytesOf(buffer), bytesOf(buffer), bytes, ncclInt8, root, comm, group_->stream());
  }));
  return group_->beforeDevice();
}

Status NcclCommunicator::exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                                  uint64_t receiveBytes) {
  if (peer < 0 || peer >= size() || peer == rank())
    return Error{ErrorCode::kUsage, fmt::format("rank {} of {} has no peer {}", rank(), size(), peer),
                 "exchange"};
  MUSTER_CHECK_OK(checkRange("exchange", send, sendBytes));
  MUSTER_CHECK_OK(checkRange("exchange", receive, receiveBytes));
  queued_ += static_cast<double>(sendBytes);
  const std::string what = fmt::format("an exchange with rank {}", peer);
  return group_->queue(what.c_str(), [&](ncclComm_t comm) {
    if (const ncclResult_t begun = ncclGroupStart(); begun != ncclSuccess) return begun;
    ncclResult_t sent = ncclSuccess, received = ncclSuccess;
    if (sendBytes > 0) sent = ncclSend(bytesOf(send), sendBytes, ncclInt8, peer, comm, group_->stream());
    if (receiveBytes > 0)
      received = ncclRecv(bytesOf(receive), receiveBytes, ncclInt8, peer, comm, group_->stream());
    const ncclResult_t ended = ncclGroupEnd();
    for (const ncclResult_t code : {sent, received})
      if (code != ncclSuccess && code != ncclInProgress) return code;
    return ended;
  });
}

/// All ranks add up one number: nobody has the sum before the last one came.
Status NcclCommunicator::barrier() {
  double nothing = 0;
  return maxOf(&nothing, 1);
}

Result<double> NcclCommunicator::time(const std::function<Status()>& work) {
  MUSTER_CHECK_OK(synchronize());
  MUSTER_CUDA(cudaEventRecord(begin_.get(), group_->stream()));
  MUSTER_CHECK_OK(work());
  MUSTER_CHECK_OK(group_->afterDevice());  // what the work queued on the device's own stream counts too
  MUSTER_CUDA(cudaEventRecord(end_.get(), group_->stream()));
  MUSTER_CHECK_OK(group_->wait("timed work"));
  float milliseconds = 0;
  MUSTER_CUDA(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
  return static_cast<double>(milliseconds) * 1e-3;
}

Status NcclCommunicator::maxOf(double* values, size_t count) {
  const uint64_t bytes = count * sizeof(double);
  std::copy_n(values, count, static_cast<double*>(hostValues_.get()));
  MUSTER_CHECK_OK(group_->afterDevice());
  MUSTER_CUDA(cudaMemcpyAsync(deviceValues_.get(), hostValues_.get(), bytes, cudaMemcpyHostToDevice,
                              group_->stream()));
  MUSTER_CHECK_OK(group_->queue("comparing values of all ranks", [&](ncclComm_t comm) {
    return ncclAllReduce(deviceValues_.get(), deviceValues_.get(), count, ncclFloat64, ncclMax, comm,
                         group_->stream());
  }));
  MUSTER_CUDA(cudaMemcpyAsync(hostValues_.get(), deviceValues_.get(), bytes, cudaMemcpyDeviceToHost,
                              group_->stream()));
  MUSTER_CHECK_OK(group_->wait("comparing values of all ranks"));
  std::copy_n(static_cast<double*>(hostValues_.get()), count, values);
  return {};
}

Result<std::vector<double>> NcclCommunicator::maxOverRanks(const std::vector<double>& values) {
  return largestOverRanks(values, [&](std::span<double> all) -> Status {
    for (size_t done = 0; done < all.size(); done += kMostValues)
      MUSTER_CHECK_OK(maxOf(all.data() + done, std::min(kMostValues, all.size() - done)));
    return {};
  });
}

Result<std::vector<TransportUse>> NcclCommunicator::transports() {
  MUSTER_TRY(NcclLog log, NcclProcess::get().log());
  if (log.lines == 0)
    return Error{ErrorCode::kNotFound,
                 "NCCL wrote no log, so the transport is not confirmed; is NCCL_DEBUG set in "
                 "/etc/nccl.conf or by a plugin?",
                 implementation()};
  std::vector<TransportUse> uses =
      transportsSince(logBefore_, log, LinkCounters::between(sentBefore_, counters_.read()), queued_);
  if (uses.empty())
    return Error{ErrorCode::kNotFound,
                 "NCCL's log lists no connection of this group, so the transport is not confirmed",
                 describe(log)};
  uses.front().evidence += "; " + describe(log);
  return uses;
}

Result<SettingsUse> NcclCommunicator::settingsUse() {
  MUSTER_TRY(NcclLog log, NcclProcess::get().log());
  SettingsProof proof = proveSettings(settings_, log);
  if (!proof.changed.empty())
    return Error{ErrorCode::kCorrupt,
                 "NCCL took other settings than it was given: " + muster::join(proof.changed, "; "),
                 "settings"};
  return SettingsUse{std::move(proof.taken), std::move(proof.unsaid)};
}

Result<std::unique_ptr<Communicator>> form(Device& device, const CommunicatorSpec& spec, GroupStore& store) {
  auto& gpu = static_cast<CudaDevice&>(device);
  MUSTER_TRY(NcclLog before, NcclProcess::get().log());
  auto made = std::make_unique<NcclCommunicator>(gpu, spec.settings, std::move(before));
  MUSTER_CHECK_OK(made->form(spec, store));
  return std::unique_ptr<Communicator>(std::move(made));
}

}  // namespace
}  // namespace muster::cuda

extern "C" __attribute__((visibility("default")))
const muster::cuda::NcclEntry muster_cuda_nccl_entry = {muster::buildId(), muster::cuda::form};
