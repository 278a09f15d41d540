// SPDX-License-Identifier: Apache-2.0
// The collectives themselves: Gloo's where it has them, ours on its send and receive where not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/host/gloo/group.h"
#include "kernels/host/gloo/reduction.h"
#include "kernels/interfaces/communicator.h"

namespace muster::host {

/// What a rank sends and where it receives, both as CollectiveSpec::sendCount() and receiveCount() say; equal
/// or overlapping as nccl-tests have it where the collective is in place.
struct Operands {
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

/// Runs `spec` once; all ranks do. Throws what Gloo throws: call it through GlooGroup::run().
void runCollective(GlooGroup& group, const CollectiveSpec& spec, Reduction reduction, const Operands& at);

/// Leaves the largest value of all ranks in each place.
void runMaximum(GlooGroup& group, std::span<double> values);

/// Both halves of an exchange with `peer`; a size of 0 leaves its half out.
void runExchange(GlooGroup& group, int peer, const std::byte* send, uint64_t sendBytes, std::byte* receive,
                 uint64_t receiveBytes);

void runBarrier(GlooGroup& group);

}  // namespace muster::host
