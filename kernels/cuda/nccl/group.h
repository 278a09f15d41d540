// SPDX-License-Identifier: Apache-2.0
// A formed NCCL communicator: its stream, its deadlines, its end.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/cuda/device.h"
#include "kernels/cuda/handles.h"
#include "kernels/interfaces/communicator.h"

namespace muster::cuda {

/// One rank's two communicators. `parent_` never blocks: the group is formed and ended by it. Its only child
/// `comm_` carries all work, in calls that return when NCCL has queued it: calls that do not block each cost
/// a thread inside NCCL, which small messages would show. A watchdog bounds those calls by the deadline of
/// the spec on the device's clock and looks at NCCL's asynchronous error meanwhile; both communicators share
/// one abort flag, so aborting the parent ends a call of the child without freeing what the call uses. The
/// first failure is the error of every later call. The ranks agree by that alone: each one sees the failure,
/// or its own deadline, and aborts its part; the runner names the culprit.
class NcclGroup {
 public:
  static Result<std::unique_ptr<NcclGroup>> form(CudaDevice& device, const CommunicatorSpec& spec,
                                                 GroupStore& store);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] CudaDevice& device() const { return device_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  /// Queues what `call` asks of NCCL, "all_reduce" in words, and waits until NCCL has taken it (not until it
  /// is done).
  Status queue(const char* what, const std::function<ncclResult_t(ncclComm_t)>& call);
  /// The group's stream goes on after what the device has queued so far, and the other way round.
  Status afterDevice();
  Status beforeDevice();
  /// Waits until all work of the group's and the device's stream is done.
  Status wait(const char* what);
  /// Lets go of everything at once, from any thread.
  void abort();

 private:
  NcclGroup(CudaDevice& device, const CommunicatorSpec& spec)
      : device_(device), name_(spec.name), rank_(spec.rank), size_(spec.size), timeout_(spec.timeout) {}
  Status open(const CommunicatorSpec& spec, GroupStore& store);
  Status connect(const ncclUniqueId& id);
  Status split(double deadline);
  Status guarded(const char* what, double deadline, const std::function<ncclResult_t(ncclComm_t)>& call);
  Status settle(ncclComm_t NcclGroup::*comm, const char* what, double deadline);
  Status waitFor(cudaStream_t stream, const char* what, double deadline);
  Status asyncError(ncclComm_t NcclGroup::*comm, const char* what, ncclResult_t& state);
  Status breakWith(Error error);
  Status broken();
  void keepFirst(Error error);
  void watch();
  void lookAtCall(std::unique_lock<std::mutex>& lock);
  void end();

  CudaDevice& device_;
  std::string name_;
  int rank_;
  int size_;
  double timeout_;
  Stream stream_;
  Event fromDevice_, toDevice_;
  std::mutex mutex_;  ///< guards what follows
  ncclComm_t parent_ = nullptr;
  ncclComm_t comm_ = nullptr;      ///< not freed while a call uses it
  const char* calling_ = nullptr;  ///< the call of NCCL in progress, in words
  double callEnds_ = 0;            ///< its deadline
  Status broken_;
  bool leaving_ = false;
  std::condition_variable left_;
  std::thread watchdog_;
};

/// "all_reduce: unhandled cuda error (run with NCCL_DEBUG=INFO for details)", with NCCL's last warnings.
Error ncclError(ncclResult_t code, const std::string& what, ncclComm_t comm);

}  // namespace muster::cuda
