// SPDX-License-Identifier: Apache-2.0
// Forms, watches and ends communicators of the fake NCCL.
#include "tests/kernels/cuda/emulation/nccl/communicator.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/kernels/cuda/emulation/nccl/log.h"
#include "tests/kernels/cuda/emulation/nccl/scenario.h"

namespace muster::emulation {
namespace {

std::string number(int value) {
  return std::to_string(value);
}

}  // namespace

ncclResult_t NcclState::fail(ncclResult_t code, const std::string& warning) {
  ncclWarn(warning);
  lastError = warning;
  return error = code;
}

/// Each rank shows that it takes part, and is connected when it has seen that of all.
void NcclState::connect() {
  board->beReady();
  connected = true;
  for (int peer = 0; peer < ranks; ++peer) {
    const int told = board->sizeSeenBy(peer);
    connected = connected && told == ranks && board->ready(peer);
    // As NCCL's own bootstrap: a warning, and everybody waits on.
    if (told != 0 && told != ranks && rank == 0 && lastError.empty())
      ncclWarn(lastError = "Bootstrap Root : mismatch in rank count from procs " + number(ranks) + " : " +
                           number(told));
  }
  if (connected)
    ncclInfo("comm 0x1 rank " + number(rank) + " nRanks " + number(ranks) + " nNodes 1 localRanks " +
             number(ranks) + " localRank " + number(rank) + " MNNVL 0");
}

ncclResult_t NcclState::look() {
  if (error != ncclSuccess) return error;
  const NcclScenario& scenario = NcclScenario::get();
  for (int peer = 0; peer < ranks && !scenario.unseen; ++peer)
    if (board->gone(peer))
      return fail(ncclRemoteError, "Connection closed by remote peer of rank " + number(peer));
  if (!connected) connect();
  if (scenario.failAfter && shared->calls >= scenario.failAfter->first)
    return fail(scenario.failAfter->second, "an asynchronous failure of the scenario");
  if (finalizing) return board->allLeft(ranks) && !scenario.finalizeHangs ? ncclSuccess : ncclInProgress;
  if (splitting > 0 && splitting-- > 1) return ncclInProgress;
  if (busy > 0 && busy-- > 1) return ncclInProgress;
  return connected ? ncclSuccess : ncclInProgress;
}

ncclResult_t NcclState::hang() {
  while (!shared->aborted) usleep(100);
  return ncclInternalError;
}

}  // namespace muster::emulation

using namespace muster::emulation;

ncclResult_t ncclGetVersion(int* version) {
  return *version = NCCL_VERSION_CODE, ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}
const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? "" : comm->state->lastError.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  ncclSayEnvironment();
  const std::string path = Board::create();
  if (path.empty() || path.size() >= sizeof id->internal) {
    ncclWarn("cannot make a board in MUSTER_FAKE_NCCL_FOLDER");
    return ncclSystemError;
  }
  *id = {};
  std::memcpy(id->internal, path.c_str(), path.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  ncclSayEnvironment();
  if (config->blocking != 0) return ncclInvalidUsage;  // what the fake does not play
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto board = Board::join(std::string(id.internal, strnlen(id.internal, sizeof id.internal)), rank, ranks);
  if (board == nullptr) {
    ncclWarn("rank " + number(rank) + ": no such board, or another one is this rank");
    return ncclSystemError;
  }
  if (NcclScenario::get().exitInInit) _exit(0);
  auto state = std::make_shared<NcclState>();
  state->board = std::move(board);
  state->rank = rank;
  state->ranks = ranks;
  state->sharing = config->splitShare == 1;
  state->talkedTo.resize(static_cast<size_t>(ranks));
  *comm = new ncclComm{std::move(state)};
  return ncclInProgress;
}

/// Does not block, as the parent does not.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int, ncclComm_t* child, ncclConfig_t* config) {
  const NcclState& parent = *comm->state;
  // What the fake does not play: parts of a group, children with a life of their own.
  if (color != 0 || config->blocking == 0 || !parent.sharing || !parent.connected) return ncclInvalidUsage;
  auto state = std::make_shared<NcclState>();
  state->board = parent.board;
  state->rank = parent.rank;
  state->ranks = parent.ranks;
  state->shared = parent.shared;
  state->connected = state->blocking = true;
  state->talkedTo.resize(static_cast<size_t>(parent.ranks));
  *child = new ncclComm{std::move(state)};
  constexpr int kLooks = 3;
  comm->state->splitting = kLooks;
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return *state = comm->state->look(), ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->state->blocking) return NcclScenario::get().finalizeHangs ? comm->state->hang() : ncclSuccess;
  comm->state->board->leave();
  comm->state->finalizing = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return delete comm, ncclSuccess;
}
/// Frees the handle, as NCCL does: a thread that still uses it is a bug, which sanitizers show.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  while (NcclScenario::get().abortHangs) pause();
  comm->state->shared->aborted = true;
  comm->state->board->vanish();
  delete comm;
  return ncclSuccess;
}
