// SPDX-License-Identifier: Apache-2.0
// Forms, watches and ends a communicator.
#include "kernels/cuda/nccl/group.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <utility>

#include "kernels/cuda/error.h"
#include "kernels/cuda/nccl/process.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr double kSpin = 2e-4;  ///< seconds of waiting without sleep: latencies are measured here
constexpr double kNap = 5e-5;   ///< then so long between two looks
constexpr auto kWatch = std::chrono::milliseconds(20);  ///< between two looks at a call in progress
constexpr double kEndTimeout = 10;                      ///< seconds for a communicator to end well
constexpr double kAbortTimeout = 10;                    ///< and to be aborted, before it is left behind

Settings settingsOf(const CommunicatorSpec& spec) {
  Settings settings = spec.settings;
  // "=": this very name, not all that begin with it.
  if (!spec.interface.empty()) settings.emplace("NCCL_SOCKET_IFNAME", "=" + spec.interface);
  return settings;
}

Status checkInterface(const std::string& interface) {
  if (interface.find_first_of(":/") == std::string::npos &&
      interface.find_first_not_of("0123456789.") != std::string::npos)
    return {};
  if (interface.empty()) return {};
  return Error{
      ErrorCode::kUsage,
      "NCCL takes the name of an interface (eth0), not the address \"" + printable(interface, 64) + "\"",
      "interface"};
}

/// ncclCommAbort() waits for kernels that see its flag; on a GPU that is gone they never do.
void abortWithin(const std::array<ncclComm_t, 2>& comms, double seconds) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> ended = done->get_future();
  std::thread([comms, done] {
    for (ncclComm_t comm : comms)
      if (comm != nullptr) (void)ncclCommAbort(comm);
    done->set_value();
  }).detach();
  (void)ended.wait_for(std::chrono::duration<double>(seconds));
}

/// The 128 bytes by which ranks find each other, from rank 0 through the store.
Result<ncclUniqueId> shareId(const CommunicatorSpec& spec, GroupStore& store) {
  const std::string key = spec.name + "/nccl-id";
  ncclUniqueId id{};
  if (spec.rank == 0) {
    if (const ncclResult_t code = ncclGetUniqueId(&id); code != ncclSuccess) {
      Error error = ncclError(code, "making NCCL's unique id", nullptr);
      error.code = ErrorCode::kIo;  // no other rank has a part in it
      return error;
    }
    MUSTER_CHECK_OK(store.set(key, {id.internal, sizeof id.internal}));
    return id;
  }
  MUSTER_TRY(std::string bytes, store.get(key, spec.timeout));
  if (bytes.size() != sizeof id.internal)
    return Error{
        ErrorCode::kPeer,
        fmt::format("rank 0's unique id has {} bytes, expected {}", bytes.size(), sizeof id.internal), key};
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

/// What NCCL last warned of: "; NCCL's last warnings: ..."; often it alone knows why.
std::string warnings() {
  const auto log = NcclProcess::get().log();
  return log.ok() && !log->warnings.empty() ? "; NCCL's last warnings: " + join(log->warnings, "; ") : "";
}

/// Only a failed CUDA call is surely this rank's own: a connection that ended is a system or internal error
/// on one side and a remote one on the other, and which side is not said.
ErrorCode codeOf(ncclResult_t code) {
  if (code == ncclInvalidUsage || code == ncclInvalidArgument) return ErrorCode::kInternal;
  return code == ncclUnhandledCudaError ? ErrorCode::kIo : ErrorCode::kPeer;
}

}  // namespace

Error ncclError(ncclResult_t code, const std::string& what, ncclComm_t comm) {
  std::string text = what + ": " + ncclGetErrorString(code);
  if (const char* last = ncclGetLastError(comm); last != nullptr && *last != '\0')
    text += std::string("; ") + printable(last);
  text += warnings();
  return {codeOf(code), text, ""};
}

Result<std::unique_ptr<NcclGroup>> NcclGroup::form(CudaDevice& device, const CommunicatorSpec& spec,
                                                   GroupStore& store) {
  if (spec.size < 1 || spec.rank < 0 || spec.rank >= spec.size)
    return Error{ErrorCode::kUsage, fmt::format("there is no rank {} in a group of {}", spec.rank, spec.size),
                 spec.name};
  MUSTER_CHECK_OK(checkInterface(spec.interface));
  MUSTER_CHECK_OK(NcclProcess::get().configure(settingsOf(spec)));
  std::unique_ptr<NcclGroup> group(new NcclGroup(device, spec));
  MUSTER_CHECK_OK(group->open(spec, store).context("forming the group " + spec.name));
  return group;
}

Status NcclGroup::open(const CommunicatorSpec& spec, GroupStore& store) {
  MUSTER_CUDA(cudaSetDevice(device_.ordinal()));
  MUSTER_TRY(stream_, makeStream());
  MUSTER_TRY(fromDevice_, makeEvent(false));
  MUSTER_TRY(toDevice_, makeEvent(false));
  MUSTER_TRY(ncclUniqueId id, shareId(spec, store));
  return connect(id);
}

Status NcclGroup::connect(const ncclUniqueId& id) {
  const double deadline = device_.now() + timeout_;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 1;
  const ncclResult_t code = ncclCommInitRankConfig(&parent_, size_, id, rank_, &config);
  if (code != ncclSuccess && code != ncclInProgress)
    return breakWith(ncclError(code, "initializing NCCL", nullptr));
  MUSTER_CHECK_OK(settle(&NcclGroup::parent_, "connecting the ranks", deadline));
  MUSTER_CHECK_OK(split(deadline));
  watchdog_ = std::thread(&NcclGroup::watch, this);
  return {};
}

/// All ranks go into the one child, which shares the parent's connections. Whether this call blocks depends
/// on the parent alone; the child's handle is there when the parent has settled.
Status NcclGroup::split(double deadline) {
  constexpr const char* kWhat = "preparing the group for work";
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  const ncclResult_t code = ncclCommSplit(parent_, 0, rank_, &comm_, &config);
  if (code != ncclSuccess && code != ncclInProgress) return breakWith(ncclError(code, kWhat, parent_));
  MUSTER_CHECK_OK(settle(&NcclGroup::parent_, kWhat, deadline));
  if (comm_ != nullptr) return {};
  return breakWith({ErrorCode::kIo, std::string(kWhat) + ": NCCL gave no communicator", ""});
}

NcclGroup::~NcclGroup() {
  (void)cudaSetDevice(device_.ordinal());
  end();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaving_ = true;
  }
  left_.notify_all();
  if (watchdog_.joinable()) watchdog_.join();
}

/// All ranks end their communicators together; one that is alone with that aborts its own.
void NcclGroup::end() {
  if (!broken().ok() || comm_ == nullptr) return abort();
  constexpr const char* kWhat = "ending the group";
  const double deadline = device_.now() + std::min(timeout_, kEndTimeout);
  if (!guarded(kWhat, deadline, ncclCommFinalize).ok()) return abort();
  const ncclResult_t code = ncclCommFinalize(parent_);
  if (code != ncclSuccess && code != ncclInProgress) return abort();
  if (!settle(&NcclGroup::parent_, kWhat, deadline).ok()) return abort();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (ncclComm_t* comm : {&comm_, &parent_})
    if (*comm != nullptr) (void)ncclCommDestroy(std::exchange(*comm, nullptr));
}

void NcclGroup::keepFirst(Error error) {
  if (!broken_.ok()) return;
  if (error.where.empty()) error.where = fmt::format("rank {} of {}", rank_, name_);
  broken_ = std::move(error);
}

/// A call in progress uses the child: it ends by the parent's flag, and whoever made it aborts the child.
void NcclGroup::abort() {
  ncclComm_t child = nullptr, parent = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (broken_.ok()) broken_ = Error{ErrorCode::kPeer, "the group was aborted", name_};
    if (calling_ == nullptr) child = std::exchange(comm_, nullptr);
    parent = std::exchange(parent_, nullptr);
  }
  if (child != nullptr || parent != nullptr) abortWithin({child, parent}, kAbortTimeout);
}

Status NcclGroup::breakWith(Error error) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    keepFirst(std::move(error));
  }
  abort();
  return broken();
}

Status NcclGroup::broken() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

/// An error that NCCL met on its own threads: a peer that is gone, a link that failed.
Status NcclGroup::asyncError(ncclComm_t NcclGroup::*comm, const char* what, ncclResult_t& state) {
  Error error;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!broken_.ok()) return broken_;
    const ncclResult_t code = ncclCommGetAsyncError(this->*comm, &state);
    if (code == ncclSuccess && (state == ncclSuccess || state == ncclInProgress)) return {};
    error = ncclError(code == ncclSuccess ? state : code, what, this->*comm);
  }
  return breakWith(std::move(error));
}

namespace {

/// Between two looks at what is waited for.
class Pause {
 public:
  explicit Pause(CudaDevice& device) : device_(device), start_(device.now()) {}
  void take() {
    if (device_.now() - start_ < kSpin)
      sched_yield();
    else
      device_.sleep(kNap);
  }

 private:
  CudaDevice& device_;
  double start_;
};

Error late(const char* what, double timeout) {
  return {ErrorCode::kPeer,
          fmt::format(
              "{} took longer than {:.3g} s: a rank of the group is late or lost, or does something else; "
              "the run's record names the rank",
              what, timeout) +
              warnings(),
          ""};
}

}  // namespace

Status NcclGroup::settle(ncclComm_t NcclGroup::*comm, const char* what, double deadline) {
  Pause pause(device_);
  while (true) {
    ncclResult_t state = ncclSuccess;
    MUSTER_CHECK_OK(asyncError(comm, what, state));
    if (state == ncclSuccess) return {};
    if (device_.now() > deadline) return breakWith(late(what, timeout_));
    pause.take();
  }
}

/// Looks at calls in progress while their thread cannot.
void NcclGroup::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!leaving_) {
    left_.wait_for(lock, kWatch);
    if (calling_ != nullptr && parent_ != nullptr) lookAtCall(lock);
  }
}

void NcclGroup::lookAtCall(std::unique_lock<std::mutex>& lock) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t code = ncclCommGetAsyncError(parent_, &state);
  if (code != ncclSuccess)
    keepFirst(ncclError(code, calling_, parent_));
  else if (state != ncclSuccess && state != ncclInProgress)
    keepFirst(ncclError(state, calling_, parent_));
  else if (device_.now() > callEnds_)
    keepFirst(late(calling_, timeout_));
  if (broken_.ok()) return;
  ncclComm_t parent = std::exchange(parent_, nullptr);
  lock.unlock();
  abortWithin({parent, nullptr}, kAbortTimeout);
  lock.lock();
}

/// One call with the child, which the watchdog or abort() ends where NCCL does not.
Status NcclGroup::guarded(const char* what, double deadline,
                          const std::function<ncclResult_t(ncclComm_t)>& call) {
  ncclComm_t comm = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!broken_.ok()) return broken_;
    comm = comm_;
    calling_ = what;
    callEnds_ = deadline;
  }
  const ncclResult_t code = call(comm);
  bool ended = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calling_ = nullptr;
    if (code != ncclSuccess && code != ncclInProgress) keepFirst(ncclError(code, what, comm));
    ended = broken_.ok();
  }
  if (!ended) {
    abort();
    return broken();
  }
  // Where NCCL's own configuration file says that no communicator blocks.
  return code == ncclInProgress ? settle(&NcclGroup::comm_, what, deadline) : Status();
}

Status NcclGroup::queue(const char* what, const std::function<ncclResult_t(ncclComm_t)>& call) {
  MUSTER_CUDA(cudaSetDevice(device_.ordinal()));
  return guarded(what, device_.now() + timeout_, call);
}

Status NcclGroup::afterDevice() {
  MUSTER_CHECK_OK(broken());
  MUSTER_CUDA(cudaSetDevice(device_.ordinal()));
  MUSTER_CUDA(cudaEventRecord(fromDevice_.get(), device_.stream()));
  MUSTER_CUDA(cudaStreamWaitEvent(stream_.get(), fromDevice_.get(), 0));
  return {};
}

Status NcclGroup::beforeDevice() {
  MUSTER_CHECK_OK(broken());
  MUSTER_CUDA(cudaSetDevice(device_.ordinal()));
  MUSTER_CUDA(cudaEventRecord(toDevice_.get(), stream_.get()));
  MUSTER_CUDA(cudaStreamWaitEvent(device_.stream(), toDevice_.get(), 0));
  return {};
}

Status NcclGroup::waitFor(cudaStream_t stream, const char* what, double deadline) {
  Pause pause(device_);
  while (true) {
    const cudaError_t code = cudaStreamQuery(stream);
    if (code != cudaSuccess && code != cudaErrorNotReady)
      return breakWith(cudaError(code, what, __FILE_NAME__, __LINE__));
    // Also of work that has ended: an error or an abort from another thread ends kernels early.
    ncclResult_t state = ncclSuccess;
    MUSTER_CHECK_OK(asyncError(&NcclGroup::comm_, what, state));
    if (code == cudaSuccess) return {};
    if (device_.now() > deadline) return breakWith(late(what, timeout_));
    pause.take();
  }
}

/// Polls instead of cudaStreamSynchronize(), which a lost peer would keep waiting for ever.
Status NcclGroup::wait(const char* what) {
  MUSTER_CHECK_OK(broken());
  MUSTER_CUDA(cudaSetDevice(device_.ordinal()));
  const double deadline = device_.now() + timeout_;
  MUSTER_CHECK_OK(waitFor(stream_.get(), what, deadline));
  return waitFor(device_.stream(), what, deadline);
}

}  // namespace muster::cuda
