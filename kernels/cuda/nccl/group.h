// SPDX-License-Identifier: Apache-2.0
// A formed NCCL communicator: its stream, its deadlines, its end.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/cuda/handles.h"
#include "kernels/interfaces/communicator.h"

namespace muster::cuda {

/// One rank's communicator. NCCL never blocks here (config.blocking = 0): every call returns at once and is
/// waited for while its asynchronous error is looked at, until the deadline of the spec on the device's
/// clock. The first failure aborts the communicator and is the error of every later call. The ranks agree by
/// that alone: each one sees the failure, or its own deadline, and aborts its part; the runner names the
/// culprit.
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
  Status settle(const char* what, double deadline);
  Status waitFor(cudaStream_t stream, const char* what, double deadline);
  Status asyncError(const char* what, ncclResult_t& state);
  Status breakWith(Error error);
  Status broken();
  void end();

  CudaDevice& device_;
  std::string name_;
  int rank_;
  int size_;
  double timeout_;
  Stream stream_;
  Event fromDevice_, toDevice_;
  std::mutex mutex_;  ///< guards comm_ and broken_
  ncclComm_t comm_ = nullptr;
  Status broken_;
};

/// "all_reduce: unhandled cuda error (run with NCCL_DEBUG=INFO for details)", with NCCL's last warnings.
Error ncclError(ncclResult_t code, const std::string& what, ncclComm_t comm);

}  // namespace muster::cuda
