// SPDX-License-Identifier: Apache-2.0
// Writes the NVML call in progress to a descriptor, so that a hang can be named.
#include "kernels/cuda/inventory/nvml/call_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <thread>

namespace muster::cuda {
namespace {

using Clock = std::chrono::steady_clock;

struct OpenCall {
  std::thread::id thread;
  const char* function;
  const void* device;
  Clock::time_point begun;
  bool told = false;
};

/// The calls that are open, and the thread that looks at them. It starts with the first call, so that
/// processes without GPUs have none, and lives as long as the process: it must outlast a call that never
/// returns.
class CallWatch {
 public:
  static CallWatch& get() {
    static auto* watch =
        new CallWatch;  // NOLINT(cppcoreguidelines-owning-memory): used until the last moment
    return *watch;
  }
  void begin(const char* function, const void* device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!watching_) std::thread([this] { look(); }).detach();
    watching_ = true;
    open_.push_back({std::this_thread::get_id(), function, device, Clock::now()});
  }
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto call = open_.rbegin(); call != open_.rend(); ++call) {
      if (call->thread != std::this_thread::get_id()) continue;
      open_.erase(std::next(call).base());
      return;
    }
  }
  void name(const void* device, const std::string& id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    names_[device] = id;
  }

 private:
  [[noreturn]] void look() {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const std::lock_guard<std::mutex> lock(mutex_);
      for (OpenCall& call : open_)
        if (!call.told && Clock::now() - call.begun > std::chrono::duration<double>(WatchedCall::kSlow))
          tell(call);
    }
  }
  void tell(OpenCall& call) {
    call.told = true;
    const auto id = names_.find(call.device);
    const std::string device = id == names_.end() ? "" : " of " + id->second;
    const std::string line =
        fmt::format("NVML: {}{} has not returned for {:g} s\n", call.function, device, WatchedCall::kSlow);
    // Not stdio, whose lock another thread may hold for ever.
    (void)!write(STDERR_FILENO, line.data(), line.size());
  }

  std::mutex mutex_;
  bool watching_ = false;
  std::list<OpenCall> open_;
  std::map<const void*, std::string> names_;
};

}  // namespace

WatchedCall::WatchedCall(const char* function, const void* device) {
  CallWatch::get().begin(function, device);
}
WatchedCall::~WatchedCall() {
  CallWatch::get().end();
}
void WatchedCall::name(const void* device, const std::string& id) {
  CallWatch::get().name(device, id);
}

}  // namespace muster::cuda
