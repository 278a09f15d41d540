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
    if (host_->store_set(host_->context, key.c_str(), value.data(), value.size()) == MUSTER_OK) return {};
    return failed("cannot set store key " + key);
  }

  Result<std::string> get(const std::string& key, double timeout) override {
    std::string value(kGuess, '\0');
    while (true) {
      uint64_t size = 0;
      if (host_->store_get(host_->context, key.c_str(), value.data(), value.size(), &size, timeout) !=
          MUSTER_OK)
        return failed("cannot get store key " + key);
      const bool whole = size <= value.size();
      value.resize(size);
      if (whole) return value;  // else it was cut: ask again, with room for all of it
    }
  }

  /// Waits until all ranks of the group are here.
  Status barrier(const std::string& name, double timeout) {
    if (host_->barrier(host_->context, name.c_str(), timeout) == MUSTER_OK) return {};
    return failed("barrier " + name + " failed");
  }

 private:
  static constexpr size_t kGuess = 4096;

  /// The host adds what the store said to the message of the case.
  static Error failed(const std::string& what) { return {ErrorCode::kIo, what, ""}; }

  const muster_host* host_;
};

}  // namespace muster::sdk
