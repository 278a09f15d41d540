// SPDX-License-Identifier: Apache-2.0
// What befalls a rank of the fake NCCL: the variable MUSTER_FAKE_NCCL of its process, words separated by ';'.
//
// clang-format off
//     exit in init          this process ends while it connects
//     exit in call N        ... in its Nth call of an operation, which the others have begun
//     hang in call N        the Nth call does not return until another thread aborts
//     unseen                this rank does not notice that another one ended (as over shared memory or NVLink)
//     fail call N CODE      the Nth call returns the code
//     fail after N CODE     from the Nth call on, the asynchronous error is the code
//     wrong call N          the data that this rank sends in its Nth call have a flipped bit
//     busy                  each call is taken later: it returns "in progress"
//     abort hangs           ncclCommAbort() never returns, as on a GPU that is gone
//     finalize hangs        ncclCommFinalize() never comes to an end
//     via WAY               how the log says that ranks are connected: SHM/direct/direct, NET/IB/0/GDRDMA
//     says LINE             a line of the log
//     takes NAME=VALUE      the log says this value of a variable, whatever the environment has
//     silent                no log at all
// clang-format on
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

namespace muster::emulation {

struct NcclScenario {
  bool exitInInit = false;
  std::optional<int> exitInCall;
  bool unseen = false;
  std::optional<int> hangInCall;
  std::optional<std::pair<int, ncclResult_t>> failCall;
  std::optional<std::pair<int, ncclResult_t>> failAfter;
  std::optional<int> wrongCall;
  bool busy = false;
  bool abortHangs = false;
  bool finalizeHangs = false;
  bool silent = false;
  std::string via = "NET/Socket/0";
  std::vector<std::string> says;
  std::map<std::string, std::string> takes;

  /// Of this process, read once; the process ends with a message when it is not understood.
  static const NcclScenario& get();
};

}  // namespace muster::emulation
