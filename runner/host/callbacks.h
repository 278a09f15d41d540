// SPDX-License-Identifier: Apache-2.0
// The host's side of the plugin ABI: what a session's calls to muster_host come to.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/abi/muster_plugin.h"
#include "runner/host/frame_writer.h"
#include "runner/host/local_store.h"
#include "runner/host/request.h"
#include "runner/rendezvous/store_client.h"

namespace muster {

/// Why a call of the plugin failed, as far as it said.
struct Problem {
  std::string message;  ///< from host->error(), and what the store said last when its last call failed
  std::string remedy;
  std::string said;  ///< from host->error() alone: a call that said why it fails must not return MUSTER_OK
  std::string
      refused;  ///< what the host refused of the plugin; makes the case an error whatever run() returns
};

/// A call that breaks the ABI's rules.
inline Error badCall(const std::string& what) {
  return Error{ErrorCode::kProtocol, what, ""};
}

/// Implements muster_host for one session. Checks what would harm the host (NULL, sizes, text encoding, frame
/// length); figures that cannot be true are passed on for the judge.
class HostCallbacks {
 public:
  HostCallbacks(const HostRequest& request, FrameWriter& frames, const std::atomic<bool>& cancelled);
  HostCallbacks(const HostCallbacks&) = delete;
  HostCallbacks& operator=(const HostCallbacks&) = delete;

  [[nodiscard]] const muster_host* table() const { return &table_; }
  Status beginCase(const HostCase& entry);
  /// What went wrong since the last call of this function.
  Problem takeProblem();
  /// The latest moment on the simulated clock that a measurement carried.
  [[nodiscard]] double virtualEnd();
  void log(muster_log_level level, const std::string& text);

 private:
  muster_status measurement(const muster_measurement* measurement);
  muster_status progress(double fraction, const char* text);
  muster_status pluginLog(muster_log_level level, const char* text);
  muster_status artifact(const char* name, const char* mediaType, const void* data, uint64_t size);
  void error(const char* message, const char* remedy);
  muster_status storeSet(const char* key, const void* data, uint64_t size);
  muster_status storeGet(const char* key, void* data, uint64_t capacity, uint64_t* size, double timeout);
  muster_status barrier(const char* name, double timeout);

  Result<Json> measurementFrame(const muster_measurement& measurement);
  Result<std::string> keepArtifact(const char* name, const void* data, uint64_t size);
  /// The client of the group's store, or none in a group of one and in a rank that is run by hand.
  [[nodiscard]] std::unique_ptr<StoreClient> sharedStore() const;
  Status storeUsable(const char* key) const;
  Status setInStore(const char* key, const void* data, uint64_t size);
  Result<std::string> getFromStore(const char* key, double timeout);
  [[nodiscard]] std::string inCase(const char* key);
  muster_status storeResult(const Status& status);
  muster_status refuse(const std::string& what, const Error& why);
  double timeOf(double given);
  bool progressAllowed();

  const HostRequest& request_;
  FrameWriter& frames_;
  const std::atomic<bool>& cancelled_;
  muster_host table_{};
  LocalStore store_;                     // of a group of one
  std::unique_ptr<StoreClient> shared_;  // of a larger one

  std::mutex mutex_;  // guards all below
  Problem problem_;
  std::string storeProblem_;
  HostCase case_;
  std::string keySpace_ = "open/";  // before each key of the shared store: cases do not see each other's
  double virtualEnd_ = 0;
  double progressTokens_ = 0;
  double progressAt_ = 0;
  int logged_ = 0;
  int artifacts_ = 0;
};

}  // namespace muster
