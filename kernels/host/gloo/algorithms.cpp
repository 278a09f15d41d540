// SPDX-License-Identifier: Apache-2.0
// Collectives over Gloo. Its all_reduce and reduce take any element size, as they are given the reduction.
#include "kernels/host/gloo/algorithms.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace muster::host {
namespace {

using gloo::transport::UnboundBuffer;
using BufferPtr = std::unique_ptr<UnboundBuffer>;

// Prefixes of our own slots; Gloo's end at 0x08.
constexpr uint8_t kMoveSlot = 0x40;
constexpr uint8_t kExchangeSlot = 0x41;

/// Up to here what a message costs counts, not its bytes: a ring sends 2 (n - 1) of them one after the other
/// on each rank, the hypercube about 2 log n.
constexpr uint64_t kFewBytes = 64 << 10;

constexpr uint64_t kSegment = 1 << 20;  ///< bytes that are received while the ones before are reduced

BufferPtr bufferOf(GlooGroup& group, const std::byte* data, uint64_t bytes) {
  return group.context()->createUnboundBuffer(const_cast<std::byte*>(data), bytes);
}

void copyBlock(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

/// One collective that only moves blocks of equal size.
class Mover {
 public:
  Mover(GlooGroup& group, const Operands& at, uint64_t sendBytes, uint64_t receiveBytes)
      : rank_(group.rank()),
        size_(group.size()),
        slot_(gloo::Slot::build(kMoveSlot, group.nextTag())),
        send_(bufferOf(group, at.send, sendBytes)),
        receive_(bufferOf(group, at.receive, receiveBytes)) {}

  void send(int to, uint64_t offset, uint64_t bytes) {
    send_->send(to, slot_, offset, bytes);
    ++sends_;
  }
  void receive(int from, uint64_t offset, uint64_t bytes) {
    receive_->recv(from, slot_, offset, bytes);
    ++receives_;
  }
  void finish() {
    for (; sends_ > 0; --sends_) send_->waitSend();
    for (; receives_ > 0; --receives_) receive_->waitRecv();
  }
  /// The rank `distance` after this one, so that not all begin with the same.
  [[nodiscard]] int after(int distance) const { return (rank_ + distance) % size_; }
  [[nodiscard]] int before(int distance) const { return (rank_ + size_ - distance) % size_; }

 private:
  int rank_;
  int size_;
  uint64_t slot_;
  BufferPtr send_;
  BufferPtr receive_;
  int sends_ = 0;
  int receives_ = 0;
};

uint64_t blockBytes(const CollectiveSpec& spec) {
  return spec.count * dtypeBits(spec.dtype) / 8;
}

template <typename Stored, typename Options>
void setOperandsAs(Options& options, GlooGroup& group, uint64_t bytes, const Operands& at) {
  if (at.send != at.receive) options.template setInput<Stored>(bufferOf(group, at.send, bytes));
  options.template setOutput<Stored>(bufferOf(group, at.receive, bytes));
}

/// Gloo only wants to know how large an element is.
template <typename Options>
void setOperands(Options& options, GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  const uint64_t bytes = blockBytes(spec);
  switch (dtypeBits(spec.dtype)) {
    case 64:
      return setOperandsAs<uint64_t>(options, group, bytes, at);
    case 32:
      return setOperandsAs<uint32_t>(options, group, bytes, at);
    case 16:
      return setOperandsAs<uint16_t>(options, group, bytes, at);
    default:
      return setOperandsAs<uint8_t>(options, group, bytes, at);
  }
}

void allReduce(GlooGroup& group, const CollectiveSpec& spec, Reduction reduction, const Operands& at) {
  gloo::AllreduceOptions options(group.context());
  options.setTag(group.nextTag());
  setOperands(options, group, spec, at);
  options.setReduceFunction(reduction);
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  options.setAlgorithm(blockBytes(spec) <= kFewBytes ? Algorithm::BCUBE : Algorithm::RING);
  gloo::allreduce(options);
}

void reduce(GlooGroup& group, const CollectiveSpec& spec, Reduction reduction, const Operands& at) {
  gloo::ReduceOptions options(group.context());
  options.setTag(group.nextTag());
  options.setRoot(spec.root);
  setOperands(options, group, spec, at);
  options.setReduceFunction(reduction);
  gloo::reduce(options);
}

void allGather(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  gloo::AllgatherOptions options(group.context());
  options.setTag(group.nextTag());
  const uint64_t bytes = blockBytes(spec);
  if (!spec.inPlace) options.setInput<std::byte>(bufferOf(group, at.send, bytes));
  options.setOutput<std::byte>(bufferOf(group, at.receive, bytes * static_cast<uint64_t>(group.size())));
  gloo::allgather(options);
}

void broadcast(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  gloo::BroadcastOptions options(group.context());
  options.setTag(group.nextTag());
  options.setRoot(spec.root);
  const uint64_t bytes = blockBytes(spec);
  if (group.rank() == spec.root && at.send != at.receive)
    options.setInput<std::byte>(bufferOf(group, at.send, bytes));
  options.setOutput<std::byte>(bufferOf(group, at.receive, bytes));
  gloo::broadcast(options);
}

void gather(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  const uint64_t bytes = blockBytes(spec);
  const bool isRoot = group.rank() == spec.root;
  Mover mover(group, at, bytes, isRoot ? bytes * static_cast<uint64_t>(group.size()) : 0);
  const auto offset = [&](int rank) { return static_cast<uint64_t>(rank) * bytes; };
  if (isRoot) {
    for (int i = 1; i < group.size(); ++i) mover.receive(mover.before(i), offset(mover.before(i)), bytes);
    copyBlock(at.receive + offset(spec.root), at.send, bytes);
  } else {
    mover.send(spec.root, 0, bytes);
  }
  mover.finish();
}

void scatter(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  const uint64_t bytes = blockBytes(spec);
  const bool isRoot = group.rank() == spec.root;
  Mover mover(group, at, isRoot ? bytes * static_cast<uint64_t>(group.size()) : 0, bytes);
  if (isRoot) {
    for (int i = 1; i < group.size(); ++i)
      mover.send(mover.after(i), static_cast<uint64_t>(mover.after(i)) * bytes, bytes);
    copyBlock(at.receive, at.send + static_cast<uint64_t>(spec.root) * bytes, bytes);
  } else {
    mover.receive(spec.root, 0, bytes);
  }
  mover.finish();
}

void allToAll(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  const uint64_t bytes = blockBytes(spec);
  const uint64_t all = bytes * static_cast<uint64_t>(group.size());
  Mover mover(group, at, all, all);
  for (int i = 1; i < group.size(); ++i) {
    mover.receive(mover.before(i), static_cast<uint64_t>(mover.before(i)) * bytes, bytes);
    mover.send(mover.after(i), static_cast<uint64_t>(mover.after(i)) * bytes, bytes);
  }
  const uint64_t own = static_cast<uint64_t>(group.rank()) * bytes;
  copyBlock(at.receive + own, at.send + own, bytes);
  mover.finish();
}

void sendReceive(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  const uint64_t bytes = blockBytes(spec);
  if (group.size() == 1) {
    copyBlock(at.receive, at.send, bytes);
    return;
  }
  Mover mover(group, at, bytes, bytes);
  mover.receive(mover.before(1), 0, bytes);
  mover.send(mover.after(1), 0, bytes);
  mover.finish();
}

/// Each rank gets its own block of every other one directly and adds them up in the order of their distance,
/// one segment while the next is on its way. Traffic is that of a ring: size - 1 blocks each way.
class ReduceScatter {
 public:
  ReduceScatter(GlooGroup& group, const CollectiveSpec& spec, Reduction reduction, const Operands& at)
      : group_(group),
        reduction_(reduction),
        at_(at),
        element_(dtypeBits(spec.dtype) / 8),
        block_(spec.count * element_),
        slot_(gloo::Slot::build(kMoveSlot, group.nextTag())),
        send_(bufferOf(group, at.send, block_ * static_cast<uint64_t>(group.size()))) {}

  void run() {
    const auto size = static_cast<uint64_t>(group_.size());
    copyBlock(at_.receive, at_.send + static_cast<uint64_t>(group_.rank()) * block_, block_);
    const uint64_t perBlock = (block_ + kSegment - 1) / kSegment;
    const uint64_t segments = perBlock * (size - 1);
    if (segments == 0) return;
    for (size_t i = 0; i < kDepth; ++i) {
      staging_[i].resize(std::min(block_, kSegment));
      stages_[i] = bufferOf(group_, staging_[i].data(), staging_[i].size());
    }
    for (uint64_t i = 0; i < std::min<uint64_t>(kDepth, segments); ++i) begin(i, perBlock);
    for (uint64_t i = 0; i < segments; ++i) {
      stages_[i % kDepth]->waitRecv();
      const auto [offset, bytes] = extent(i % perBlock);
      std::byte* to = at_.receive + offset;
      reduction_(to, to, staging_[i % kDepth].data(), bytes / element_);
      send_->waitSend();
      if (i + kDepth < segments) begin(i + kDepth, perBlock);
    }
  }

 private:
  static constexpr size_t kDepth = 2;

  [[nodiscard]] std::pair<uint64_t, uint64_t> extent(uint64_t segment) const {
    const uint64_t offset = segment * kSegment;
    return {offset, std::min(kSegment, block_ - offset)};
  }

  /// Posts both halves of one segment.
  void begin(uint64_t segment, uint64_t perBlock) {
    const int distance = static_cast<int>(segment / perBlock) + 1;
    const int to = (group_.rank() + distance) % group_.size();
    const int from = (group_.rank() + group_.size() - distance) % group_.size();
    const auto [offset, bytes] = extent(segment % perBlock);
    stages_[segment % kDepth]->recv(from, slot_, 0, bytes);
    send_->send(to, slot_, static_cast<uint64_t>(to) * block_ + offset, bytes);
  }

  GlooGroup& group_;
  Reduction reduction_;
  Operands at_;
  uint64_t element_;
  uint64_t block_;
  uint64_t slot_;
  std::array<std::vector<std::byte>, kDepth> staging_;  ///< outlives what receives into it
  std::array<BufferPtr, kDepth> stages_;
  BufferPtr send_;
};

/// Where `at` ends up averaged: sums are divided on the ranks that have the result.
void divideResult(GlooGroup& group, const CollectiveSpec& spec, const Operands& at) {
  if (!reduces(spec.op) || spec.reduce != ReduceOp::kAvg) return;
  if (spec.op == CollectiveOp::kReduce && group.rank() != spec.root) return;
  divideByRanks(at.receive, spec.dtype, spec.count, group.size());
}

}  // namespace

void runCollective(GlooGroup& group, const CollectiveSpec& spec, Reduction reduction, const Operands& at) {
  switch (spec.op) {
    case CollectiveOp::kAllReduce:
      allReduce(group, spec, reduction, at);
      break;
    case CollectiveOp::kReduce:
      reduce(group, spec, reduction, at);
      break;
    case CollectiveOp::kReduceScatter:
      ReduceScatter(group, spec, reduction, at).run();
      break;
    case CollectiveOp::kAllGather:
      allGather(group, spec, at);
      break;
    case CollectiveOp::kBroadcast:
      broadcast(group, spec, at);
      break;
    case CollectiveOp::kGather:
      gather(group, spec, at);
      break;
    case CollectiveOp::kScatter:
      scatter(group, spec, at);
      break;
    case CollectiveOp::kAllToAll:
      allToAll(group, spec, at);
      break;
    case CollectiveOp::kSendRecv:
      sendReceive(group, spec, at);
      break;
  }
  divideResult(group, spec, at);
}

void runMaximum(GlooGroup& group, std::span<double> values) {
  CollectiveSpec spec;
  spec.dtype = Dtype::kF64;
  spec.reduce = ReduceOp::kMax;
  spec.count = values.size();
  spec.inPlace = true;
  auto* data = reinterpret_cast<std::byte*>(values.data());
  allReduce(group, spec, *reductionFor(spec.dtype, spec.reduce), {data, data});
}

void runExchange(GlooGroup& group, int peer, const std::byte* send, uint64_t sendBytes, std::byte* receive,
                 uint64_t receiveBytes) {
  // One slot for all: messages of a pair arrive in order, and other ranks do not count these calls.
  const uint64_t slot = gloo::Slot::build(kExchangeSlot, 0);
  auto from = bufferOf(group, receive, receiveBytes);
  auto to = bufferOf(group, send, sendBytes);
  if (receiveBytes > 0) from->recv(peer, slot, 0, receiveBytes);
  if (sendBytes > 0) to->send(peer, slot, 0, sendBytes);
  if (sendBytes > 0) to->waitSend();
  if (receiveBytes > 0) from->waitRecv();
}

void runBarrier(GlooGroup& group) {
  gloo::BarrierOptions options(group.context());
  options.setTag(group.nextTag());
  gloo::barrier(options);
}

}  // namespace muster::host
