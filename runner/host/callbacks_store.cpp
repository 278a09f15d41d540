// SPDX-License-Identifier: Apache-2.0
// The part of callbacks.h that lets the ranks of a group meet: keys, values and barriers.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runner/core/text.h"
#include "runner/host/callbacks.h"

namespace muster {

std::unique_ptr<StoreClient> HostCallbacks::sharedStore() const {
  if (request_.groupSize == 1 || request_.store < 0) return nullptr;
  StoreClientOptions options;
  options.who = fmt::format("rank {}", request_.groupRank);
  if (!request_.device.empty()) options.who += fmt::format(" ({})", request_.device);
  options.cancelled = [this] { return cancelled_.load(); };
  // A copy: ranks that follow each other in this process share the connection.
  return std::make_unique<StoreClient>(Fd(fcntl(request_.store, F_DUPFD_CLOEXEC, 0)), std::move(options));
}

Status HostCallbacks::storeUsable(const char* key) const {
  if (key == nullptr || *key == '\0') return badCall("a store key or barrier name is NULL or empty");
  if (strnlen(key, LocalStore::kMaxKey + 1) > LocalStore::kMaxKey)
    return badCall(
        fmt::format("store key {} has more than {} bytes", printable(key, 60), LocalStore::kMaxKey));
  if (request_.groupSize == 1 || shared_) return {};
  if (request_.simulated) return Error{ErrorCode::kUnsupported, "simulated ranks have no store", ""};
  return Error{ErrorCode::kNotFound,
               fmt::format("rank {} is one of a group of {}, and a rank that is started by hand has no "
                           "store; rerun the whole stage with muster run",
                           request_.groupRank, request_.groupSize),
               ""};
}

std::string HostCallbacks::inCase(const char* key) {
  const std::lock_guard lock(mutex_);
  return keySpace_ + key;
}

/// Logs a failure of the store, and keeps it for the case's message until a call of the store succeeds.
muster_status HostCallbacks::storeResult(const Status& status) {
  if (!status.ok()) log(MUSTER_LOG_WARNING, "store: " + status.error().text());
  const std::lock_guard lock(mutex_);
  storeProblem_ = status.ok() ? "" : status.error().text();
  if (status.ok()) return MUSTER_OK;
  if (status.error().code == ErrorCode::kUnsupported) return MUSTER_UNSUPPORTED;
  if (status.error().code == ErrorCode::kTimeout && cancelled_.load()) return MUSTER_CANCELLED;
  const bool misused =
      status.error().code == ErrorCode::kUsage || status.error().code == ErrorCode::kProtocol;
  return misused ? MUSTER_BAD_PARAMETER : MUSTER_ERROR;
}

Status HostCallbacks::setInStore(const char* key, const void* data, uint64_t size) {
  MUSTER_CHECK_OK(storeUsable(key));
  if (data == nullptr && size > 0)
    return badCall("the value of store key " + printable(key, 60) + " is NULL");
  if (size > LocalStore::kMaxTotal)
    return badCall(fmt::format("the value of store key {} has {} bytes", printable(key, 60), size));
  const std::string_view value(static_cast<const char*>(data), size);
  return shared_ ? shared_->set(inCase(key), value) : store_.set(key, std::string(value));
}

muster_status HostCallbacks::storeSet(const char* key, const void* data, uint64_t size) {
  return storeResult(setInStore(key, data, size));
}

Result<std::string> HostCallbacks::getFromStore(const char* key, double timeout) {
  MUSTER_CHECK_OK(storeUsable(key));
  if (shared_) return shared_->get(inCase(key), timeout);
  return store_.get(key, timeout, [this] { return cancelled_.load(); });
}

muster_status HostCallbacks::storeGet(const char* key, void* data, uint64_t capacity, uint64_t* size,
                                      double timeout) {
  if (size == nullptr || (data == nullptr && capacity > 0))
    return storeResult(badCall("store_get: data or size is NULL"));
  const Result<std::string> value = getFromStore(key, timeout);
  // Who waits no time at all only looks whether it is there.
  if (!value.ok() && value.error().code == ErrorCode::kTimeout && timeout == 0) return MUSTER_ERROR;
  if (!value.ok()) return storeResult(value.error());
  *size = value->size();
  std::copy_n(value->data(), std::min<uint64_t>(capacity, value->size()), static_cast<char*>(data));
  return storeResult({});
}

muster_status HostCallbacks::barrier(const char* name, double timeout) {
  Status status = storeUsable(name);
  if (status.ok() && !(timeout >= 0)) status = badCall(fmt::format("barrier timeout {}", timeout));
  if (status.ok() && shared_)
    status = shared_->barrier(inCase(name), request_.groupRank, request_.groupSize, timeout);
  return storeResult(status);
}

}  // namespace muster
