// SPDX-License-Identifier: Apache-2.0
// Our collectives as calls of NCCL. What it has not in every release is a group of sends and receives, as
// nccl-tests make it: gather, scatter, alltoall, sendrecv.
#include "kernels/cuda/nccl/collective.h"

namespace muster::cuda {
namespace {

/// A collective at work.
struct Call {
  const CollectiveSpec& spec;
  ncclDataType_t type;
  const DeviceOperands& at;
  int rank;
  int ranks;
  ncclComm_t comm;
  cudaStream_t stream;

  [[nodiscard]] uint64_t block() const { return spec.count * dtypeBits(spec.dtype) / 8; }
  [[nodiscard]] std::byte* sendBlock(int peer) const {
    return at.send + static_cast<uint64_t>(peer) * block();
  }
  [[nodiscard]] std::byte* receiveBlock(int peer) const {
    return at.receive + static_cast<uint64_t>(peer) * block();
  }
  [[nodiscard]] ncclResult_t send(const std::byte* from, int peer) const {
    return ncclSend(from, spec.count, type, peer, comm, stream);
  }
  [[nodiscard]] ncclResult_t receive(std::byte* to, int peer) const {
    return ncclRecv(to, spec.count, type, peer, comm, stream);
  }
};

bool worked(ncclResult_t code) {
  return code == ncclSuccess || code == ncclInProgress;
}

/// In place, the root's own block is where it belongs.
ncclResult_t gather(const Call& call) {
  const bool root = call.rank == call.spec.root;
  if (!root) return call.send(call.at.send, call.spec.root);
  for (int peer = 0; peer < call.ranks; ++peer) {
    if (peer == call.rank && call.spec.inPlace) continue;
    if (const ncclResult_t code = call.receive(call.receiveBlock(peer), peer); !worked(code)) return code;
    if (peer != call.rank) continue;
    if (const ncclResult_t code = call.send(call.at.send, peer); !worked(code)) return code;
  }
  return ncclSuccess;
}

ncclResult_t scatter(const Call& call) {
  const bool root = call.rank == call.spec.root;
  if (!root) return call.receive(call.at.receive, call.spec.root);
  for (int peer = 0; peer < call.ranks; ++peer) {
    if (peer == call.rank && call.spec.inPlace) continue;
    if (const ncclResult_t code = call.send(call.sendBlock(peer), peer); !worked(code)) return code;
    if (peer != call.rank) continue;
    if (const ncclResult_t code = call.receive(call.at.receive, peer); !worked(code)) return code;
  }
  return ncclSuccess;
}

ncclResult_t allToAll(const Call& call) {
  for (int peer = 0; peer < call.ranks; ++peer) {
    if (const ncclResult_t code = call.send(call.sendBlock(peer), peer); !worked(code)) return code;
    if (const ncclResult_t code = call.receive(call.receiveBlock(peer), peer); !worked(code)) return code;
  }
  return ncclSuccess;
}

ncclResult_t sendReceive(const Call& call) {
  if (const ncclResult_t code = call.send(call.at.send, (call.rank + 1) % call.ranks); !worked(code))
    return code;
  return call.receive(call.at.receive, (call.rank + call.ranks - 1) % call.ranks);
}

/// Whatever happens between, a group that was begun is ended.
ncclResult_t grouped(const Call& call, ncclResult_t (*pairs)(const Call&)) {
  if (const ncclResult_t code = ncclGroupStart(); code != ncclSuccess) return code;
  const ncclResult_t queued = pairs(call);
  const ncclResult_t ended = ncclGroupEnd();
  return worked(queued) ? ended : queued;
}

}  // namespace

Result<ncclDataType_t> ncclType(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return ncclFloat64;
    case Dtype::kF32:
    case Dtype::kTf32:
      return ncclFloat32;
    case Dtype::kF16:
      return ncclFloat16;
    case Dtype::kBf16:
      return ncclBfloat16;
    case Dtype::kI8:
      return ncclInt8;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    case Dtype::kFp8E4m3:
      return ncclFloat8e4m3;
    case Dtype::kFp8E5m2:
      return ncclFloat8e5m2;
#endif
    default:
      return Error{ErrorCode::kUnsupported,
                   std::string("NCCL of this build has no ") + dtypeName(dtype) + " in collectives", ""};
  }
}

ncclRedOp_t ncclReduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kProd:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kAvg:
      return ncclAvg;
  }
  return ncclSum;
}

ncclResult_t runCollective(const CollectiveSpec& spec, ncclDataType_t type, const DeviceOperands& at,
                           const NcclGroup& group, ncclComm_t comm) {
  const cudaStream_t stream = group.stream();
  const Call call = {spec, type, at, group.rank(), group.size(), comm, stream};
  const ncclRedOp_t reduction = ncclReduction(spec.reduce);
  switch (spec.op) {
    case CollectiveOp::kAllReduce:
      return ncclAllReduce(at.send, at.receive, spec.count, type, reduction, comm, stream);
    case CollectiveOp::kAllGather:
      return ncclAllGather(at.send, at.receive, spec.count, type, comm, stream);
    case CollectiveOp::kReduceScatter:
      return ncclReduceScatter(at.send, at.receive, spec.count, type, reduction, comm, stream);
    case CollectiveOp::kBroadcast:
      return ncclBroadcast(at.send, at.receive, spec.count, type, spec.root, comm, stream);
    case CollectiveOp::kReduce:
      return ncclReduce(at.send, at.receive, spec.count, type, reduction, spec.root, comm, stream);
    case CollectiveOp::kAllToAll:
      return grouped(call, allToAll);
    case CollectiveOp::kGather:
      return grouped(call, gather);
    case CollectiveOp::kScatter:
      return grouped(call, scatter);
    case CollectiveOp::kSendRecv:
      return grouped(call, sendReceive);
  }
  return ncclInvalidArgument;
}

}  // namespace muster::cuda
