// SPDX-License-Identifier: Apache-2.0
// Operations of the fake NCCL as messages between all ranks: simple, exact, in the order in which streams run
// them. What ranks do not agree on waits for ever, as it does in NCCL.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernels/cuda/nccl/elements.h"
#include "kernels/interfaces/device.h"
#include "tests/kernels/cuda/emulation/nccl/communicator.h"
#include "tests/kernels/cuda/emulation/nccl/log.h"
#include "tests/kernels/cuda/emulation/nccl/scenario.h"
#include "tests/kernels/cuda/emulation/streams.h"

namespace muster::emulation {

bool Operation::send(Message& message) {
  Mailbox& box = state->board->mailbox(state->rank, message.peer);
  if (message.ended() || !box.empty()) return false;
  const uint64_t piece = std::min(kChunk, message.bytes - message.done);
  std::memcpy(box.data, message.data + message.done, piece);
  if (NcclScenario::get().wrongCall == call && piece > 0 && message.done == 0) box.data[0] ^= std::byte{1};
  box.bytes = message.bytes;
  box.tag = tag;
  message.begun = true;
  message.done += piece;
  return ++box.sent, true;
}

bool Operation::receive(Message& message) {
  Mailbox& box = state->board->mailbox(message.peer, state->rank);
  if (message.ended() || box.empty() || box.tag != tag || box.bytes != message.bytes) return false;
  const uint64_t piece = std::min(kChunk, message.bytes - message.done);
  std::memcpy(message.data + message.done, box.data, piece);
  message.begun = true;
  message.done += piece;
  return ++box.taken, true;
}

void Operation::reset() {
  for (auto* messages : {&sends, &receives})
    for (Message& message : *messages) message.done = 0, message.begun = false;
}

cudaError_t Operation::step() {
  if (state->shared->aborted) return reset(), cudaSuccess;  // kernels leave when they see the flag
  if (state->error != ncclSuccess) return cudaErrorNotReady;
  if (NcclScenario::get().exitInCall == call) _exit(0);
  for (bool moved = true; moved;) {
    moved = false;
    // One message after the other between two ranks: the first that has not ended keeps its peer.
    std::vector<bool> sending(kMostRanks), receiving(kMostRanks);
    for (Message& message : sends)
      if (!message.ended() && !sending[static_cast<size_t>(message.peer)])
        sending[static_cast<size_t>(message.peer)] = true, moved |= send(message);
    for (Message& message : receives)
      if (!message.ended() && !receiving[static_cast<size_t>(message.peer)])
        receiving[static_cast<size_t>(message.peer)] = true, moved |= receive(message);
  }
  const auto ended = [](const Message& message) { return message.ended(); };
  if (!std::all_of(sends.begin(), sends.end(), ended) ||
      !std::all_of(receives.begin(), receives.end(), ended))
    return cudaErrorNotReady;
  if (finish) finish(staging.data());
  return reset(), cudaSuccess;
}

namespace {

std::byte* bytesAt(const void* data, uint64_t offset = 0) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(data)) + offset;
}

Dtype dtypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return Dtype::kI8;
    case ncclFloat16:
      return Dtype::kF16;
    case ncclFloat32:
      return Dtype::kF32;
    case ncclFloat64:
      return Dtype::kF64;
    case ncclBfloat16:
      return Dtype::kBf16;
    case ncclFloat8e4m3:
      return Dtype::kFp8E4m3;
    case ncclFloat8e5m2:
      return Dtype::kFp8E5m2;
  }
  return Dtype::kF32;
}

uint64_t sizeOf(ncclDataType_t type) {
  return dtypeBits(dtypeOf(type)) / 8;
}

double reduced(ncclRedOp_t op, double a, double b) {
  switch (op) {
    case ncclProd:
      return a * b;
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    case ncclSum:
    case ncclAvg:
      return a + b;
  }
  return a;
}

/// The inputs of all ranks, one behind the other, become one.
template <typename Element>
void reduceInto(void* to, const std::byte* inputs, uint64_t count, int ranks, ncclRedOp_t op) {
  const auto* from = reinterpret_cast<const typename Element::Stored*>(inputs);
  auto* result = static_cast<typename Element::Stored*>(to);
  for (uint64_t i = 0; i < count; ++i) {
    double value = Element::load(from[i]);
    for (int rank = 1; rank < ranks; ++rank)
      value = reduced(op, value, Element::load(from[static_cast<uint64_t>(rank) * count + i]));
    result[i] = Element::store(op == ncclAvg ? value / ranks : value);
  }
}

/// A call of an operation while it is put together.
class Call {
 public:
  Call(ncclComm_t comm, const char* name, cudaStream_t stream)
      : comm_(comm), name_(name), stream_(stream), operation_(std::make_shared<Operation>()) {
    operation_->state = comm->state;
    mix(std::hash<std::string>{}(name));
  }
  [[nodiscard]] int rank() const { return comm_->state->rank; }
  [[nodiscard]] int ranks() const { return comm_->state->ranks; }
  void mix(uint64_t part) { operation_->tag = (operation_->tag ^ part) * 0x9E3779B97F4A7C15ull + 1; }
  void send(int peer, std::byte* data, uint64_t bytes) { operation_->sends.push_back({peer, data, bytes}); }
  void receive(int peer, std::byte* data, uint64_t bytes) {
    operation_->receives.push_back({peer, data, bytes});
  }
  /// `bytes` from each rank, to be reduced into `to`.
  void reduce(void* to, uint64_t count, ncclDataType_t type, ncclRedOp_t op) {
    const uint64_t bytes = count * sizeOf(type);
    operation_->staging.resize(bytes * static_cast<uint64_t>(ranks()));
    for (int peer = 0; peer < ranks(); ++peer)
      receive(peer, operation_->staging.data() + static_cast<uint64_t>(peer) * bytes, bytes);
    operation_->finish = [=, n = ranks()](const std::byte* inputs) {
      cuda::withCollectiveElement(
          dtypeOf(type), [&](auto element) { reduceInto<decltype(element)>(to, inputs, count, n, op); });
    };
  }
  ncclResult_t queued();

 private:
  void sayConnections();

  ncclComm_t comm_;
  const char* name_;
  cudaStream_t stream_;
  std::shared_ptr<Operation> operation_;
};

/// NCCL connects two ranks when they first talk.
void Call::sayConnections() {
  uint64_t bytes = 0;
  for (const Message& message : operation_->sends) {
    bytes = std::max(bytes, message.bytes);
    const auto peer = static_cast<size_t>(message.peer);
    if (message.peer == rank() || comm_->state->talkedTo[peer]) continue;
    comm_->state->talkedTo[peer] = true;
    ncclInfo("Channel 00/0 : " + std::to_string(rank()) + "[0] -> " + std::to_string(message.peer) +
             "[0] [send] via " + NcclScenario::get().via);
  }
  if (!ncclSaysTuning()) return;
  ncclInfo(std::string(name_) + ": " + std::to_string(bytes) +
           " Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}");
}

ncclResult_t Call::queued() {
  NcclState& state = *comm_->state;
  if (!state.connected) return ncclInvalidUsage;
  if (state.error != ncclSuccess) return state.error;
  if (state.shared->aborted) return ncclInternalError;
  const int number = operation_->call = ++state.shared->calls;
  const NcclScenario& scenario = NcclScenario::get();
  if (scenario.failCall && scenario.failCall->first == number)
    return state.lastError = "a call that the scenario lets fail", scenario.failCall->second;
  if (scenario.hangInCall == number) return state.hang();
  sayConnections();
  if (queue(stream_, [operation = operation_] { return operation->step(); }) != cudaSuccess)
    return ncclUnhandledCudaError;
  constexpr int kLooks = 3;
  if (scenario.busy) state.busy = kLooks;
  return scenario.busy ? ncclInProgress : ncclSuccess;
}

int groups = 0;  ///< how deep ncclGroupStart() was called
std::unique_ptr<Call> grouped;

ncclResult_t pair(bool sends, void* data, uint64_t bytes, int peer, ncclComm_t comm, cudaStream_t stream) {
  if (peer < 0 || peer >= comm->state->ranks) return ncclInvalidArgument;
  if (grouped == nullptr) grouped = std::make_unique<Call>(comm, "SendRecv", stream);
  if (sends)
    grouped->send(peer, bytesAt(data), bytes);
  else
    grouped->receive(peer, bytesAt(data), bytes);
  if (groups > 0) return ncclSuccess;
  return std::exchange(grouped, nullptr)->queued();
}

}  // namespace
}  // namespace muster::emulation

using namespace muster::emulation;

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  Call call(comm, "AllReduce", stream);
  call.mix(static_cast<uint64_t>(type) << 8 | op);
  for (int peer = 0; peer < call.ranks(); ++peer) call.send(peer, bytesAt(send), count * sizeOf(type));
  call.reduce(receive, count, type, op);
  return call.queued();
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  Call call(comm, "Reduce", stream);
  if (root < 0 || root >= call.ranks()) return ncclInvalidArgument;
  call.mix(static_cast<uint64_t>(root) << 16 | static_cast<uint64_t>(type) << 8 | op);
  call.send(root, bytesAt(send), count * sizeOf(type));
  if (call.rank() == root) call.reduce(receive, count, type, op);
  return call.queued();
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  Call call(comm, "Broadcast", stream);
  if (root < 0 || root >= call.ranks()) return ncclInvalidArgument;
  call.mix(static_cast<uint64_t>(root) << 16 | static_cast<uint64_t>(type));
  const uint64_t bytes = count * sizeOf(type);
  for (int peer = 0; peer < call.ranks() && call.rank() == root; ++peer)
    call.send(peer, bytesAt(send), bytes);
  call.receive(root, bytesAt(receive), bytes);
  return call.queued();
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Call call(comm, "ReduceScatter", stream);
  call.mix(static_cast<uint64_t>(type) << 8 | op);
  const uint64_t bytes = count * sizeOf(type);
  for (int peer = 0; peer < call.ranks(); ++peer)
    call.send(peer, bytesAt(send, static_cast<uint64_t>(peer) * bytes), bytes);
  call.reduce(receive, count, type, op);
  return call.queued();
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  Call call(comm, "AllGather", stream);
  call.mix(static_cast<uint64_t>(type));
  const uint64_t bytes = count * sizeOf(type);
  for (int peer = 0; peer < call.ranks(); ++peer) {
    call.send(peer, bytesAt(send), bytes);
    call.receive(peer, bytesAt(receive, static_cast<uint64_t>(peer) * bytes), bytes);
  }
  return call.queued();
}
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return pair(true, const_cast<void*>(data), count * sizeOf(type), peer, comm, stream);
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return pair(false, data, count * sizeOf(type), peer, comm, stream);
}
ncclResult_t ncclGroupStart() {
  return ++groups, ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (groups == 0) return ncclInvalidUsage;
  if (--groups > 0 || grouped == nullptr) return ncclSuccess;
  return std::exchange(grouped, nullptr)->queued();
}
