// SPDX-License-Identifier: Apache-2.0
// A prepared collective on a GPU, and the operations of NCCL behind each of ours.
#pragma once

#include <memory>

#include "kernels/cuda/nccl/group.h"

namespace muster::cuda {

/// Buffers come from the group's device. `group` must outlive it. `queued` counts the bytes that this rank
/// had to move.
Result<std::unique_ptr<Collective>> makeCollective(NcclGroup& group, const CollectiveSpec& spec,
                                                   double& queued);

/// kUnsupported names the type that NCCL has not.
Result<ncclDataType_t> ncclType(Dtype dtype);
ncclRedOp_t ncclReduction(ReduceOp op);

/// What a rank sends and where it receives.
struct DeviceOperands {
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
};
/// Queues `spec` once on the stream of `group`, whose communicator `comm` is.
ncclResult_t runCollective(const CollectiveSpec& spec, ncclDataType_t type, const DeviceOperands& at,
                           const NcclGroup& group, ncclComm_t comm);

}  // namespace muster::cuda
