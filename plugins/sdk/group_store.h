// SPDX-License-Identifier: Apache-2.0
// The store of a stage's group, as the host offers it, behind the interface of
// kernels/interfaces/communicator.h.
#pragma once

#include <string>
#include <string_view>

#include "kernels/interfaces/communicator.h"
#include "plugins/sdk/plugin.h"

namespace muster::sdk {

/// The ranks that talk to each other: those of the node or the cluster; in scope device each is alone.
struct Group {
  int rank = 0;
  int size = 1;
};

/// The group of a session, from its context_json.
inline Group groupOf(const Json& context) {
  if (context.value("scope", "device") == "device") return {};
  return {context.value("rank", 0), context.value("world_size", 1)};
}

/// Keys live for the call of the plugin that set them: open(), or one run of a case. Thread-safe.
class HostStore : public GroupStore {
 public:
  explicit HostStore(const Host& host) : host_(host.raw()) {}

  Status set(const std::string& key, std::string_view value) override {
    const muster_status status = host_->store_set(host_->context, key.c_str(), value.data(), value.size());
    if (status == MUSTER_OK) return {};
    return failed(status, "cannot set store key " + key);
  }

  Result<std::string> get(const std::string& key, double timeout) override {
    std::string value(kGuess, '\0');
    while (true) {
      uint64_t size = 0;
      const muster_status status =
          host_->store_get(host_->context, key.c_str(), value.data(), value.size(), &size, timeout);
      if (status != MUSTER_OK) return failed(status, "cannot get store key " + key);
      const bool whole = size <= value.size();
      value.resize(size);
      if (whole) return value;  // else it was cut: ask again, with room for all of it
    }
  }

  /// Waits until all ranks of the group are here.
  Status barrier(const std::string& name, double timeout) {
    const muster_status status = host_->barrier(host_->context, name.c_str(), timeout);
    if (status == MUSTER_OK) return {};
    return failed(status, "barrier " + name + " failed");
  }

 private:
  static constexpr size_t kGuess = 4096;

  /// The host adds what the store said to the message of the case. Used as it must be, the store fails where
  /// other ranks or node 0 do not answer.
  static Error failed(muster_status status, const std::string& what) {
    return {status == MUSTER_ERROR ? ErrorCode::kPeer : ErrorCode::kIo, what, ""};
  }

  const muster_host* host_;
};

}  // namespace muster::sdk
