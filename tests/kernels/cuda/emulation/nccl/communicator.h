// SPDX-License-Identifier: Apache-2.0
// A rank's communicator of the fake NCCL, and the messages of one operation.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/cuda/emulation/nccl/board.h"

namespace muster::emulation {

/// What a communicator and its child have together. Atomic, as another thread may look or abort during a
/// call.
struct NcclShared {
  std::atomic<bool> aborted{false};
  std::atomic<int> calls{0};
};

/// What queued operations share with the handle, which may be gone before them.
struct NcclState {
  std::shared_ptr<Board> board;
  int rank = 0;
  int ranks = 0;
  std::shared_ptr<NcclShared> shared = std::make_shared<NcclShared>();
  bool blocking = false, sharing = false;
  int splitting = 0;                 ///< looks until the child is there
  ncclResult_t error = ncclSuccess;  ///< asynchronous; stays once it came
  bool connected = false;
  bool finalizing = false;
  int busy = 0;  ///< looks until the last call is taken
  std::vector<bool> talkedTo;
  std::string lastError;

  /// What ncclCommGetAsyncError() tells; looks after peers that ended.
  ncclResult_t look();
  void connect();
  ncclResult_t fail(ncclResult_t code, const std::string& warning);
  /// A blocking call that never comes to an end by itself.
  ncclResult_t hang();
};

/// A message of this rank to or from another one (or itself).
struct Message {
  int peer = 0;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  uint64_t done = 0;
  bool begun = false;

  [[nodiscard]] bool ended() const { return begun && done == bytes; }
};

/// One operation: its messages, and what is done with them when all are there. Runs on a stream as often as
/// it is replayed.
struct Operation {
  std::shared_ptr<NcclState> state;
  uint64_t tag = 0;  ///< equal on all ranks that mean the same
  int call = 0;
  std::vector<Message> sends, receives;
  std::vector<std::byte> staging;
  std::function<void(std::byte* staging)> finish;

  /// Moves what can be moved: cudaErrorNotReady until all is done, for ever when a peer does something else.
  cudaError_t step();

 private:
  bool send(Message& message);
  bool receive(Message& message);
  void reset();
};

}  // namespace muster::emulation

struct ncclComm {
  std::shared_ptr<muster::emulation::NcclState> state;
};
