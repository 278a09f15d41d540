// SPDX-License-Identifier: Apache-2.0
// Rendezvous over the group's store, and how Gloo's failures are told.
#include "kernels/host/gloo/group.h"

#include <gloo/rendezvous/store.h>
#include <gloo/types.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "kernels/host/gloo/authenticated_device.h"
#include "runner/system/secret.h"

namespace muster::host {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// Gloo waits five times as long for a connection as for data.
constexpr int kConnectFactor = 5;

Milliseconds milliseconds(double seconds) {
  return std::max(Milliseconds(1), Milliseconds(static_cast<int64_t>(seconds * 1000)));
}

double steadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A failure of the group's store on its way through Gloo.
struct StoreFailure : std::runtime_error {
  explicit StoreFailure(Error e) : std::runtime_error(e.text()), error(std::move(e)) {}
  Error error;
};

/// The group's store as Gloo wants it. All waits together end at one deadline.
class Rendezvous : public gloo::rendezvous::Store {
 public:
  Rendezvous(GroupStore& store, std::string prefix, double timeout)
      : store_(store), prefix_(std::move(prefix)), deadline_(steadySeconds() + timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Status status = store_.set(prefix_ + key, {data.data(), data.size()});
    if (!status.ok()) throw StoreFailure(std::move(status).error());
  }
  std::vector<char> get(const std::string& key) override {
    auto value = store_.get(prefix_ + key, std::max(0.001, deadline_ - steadySeconds()));
    if (!value.ok()) throw StoreFailure(std::move(value).error());
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  GroupStore& store_;
  std::string prefix_;
  double deadline_;
};

/// Whether every rank published the network identity of this one.
Result<bool> allHere(const CommunicatorSpec& spec, GroupStore& store) {
  const std::string own = networkIdentity();
  const std::string prefix = spec.name + "/network/";
  const double deadline = steadySeconds() + spec.timeout;
  MUSTER_CHECK_OK(store.set(prefix + std::to_string(spec.rank), own));
  bool here = true;
  for (int rank = 0; rank < spec.size; ++rank) {
    if (rank == spec.rank) continue;
    auto other = store.get(prefix + std::to_string(rank), std::max(0.001, deadline - steadySeconds()));
    if (!other.ok()) return std::move(other).error().context("waiting for rank " + std::to_string(rank));
    here = here && *other == own;
  }
  return here;
}

/// Rank 0 makes it; the store is closed to all but the group.
Result<std::string> commonSecret(const CommunicatorSpec& spec, GroupStore& store) {
  const std::string key = spec.name + "/secret";
  if (spec.rank != 0) return store.get(key, spec.timeout);
  MUSTER_TRY(std::string secret, randomSecret());
  MUSTER_CHECK_OK(store.set(key, secret));
  return secret;
}

Status checkGroup(const CommunicatorSpec& spec) {
  if (spec.size >= 1 && spec.rank >= 0 && spec.rank < spec.size && spec.timeout > 0) return {};
  return Error{ErrorCode::kUsage,
               "rank " + std::to_string(spec.rank) + " of " + std::to_string(spec.size) +
                   " with a timeout of " + std::to_string(spec.timeout) + " s forms no group",
               spec.name};
}

}  // namespace

GlooGroup::GlooGroup(const CommunicatorSpec& spec, Endpoint endpoint)
    : name_(spec.name),
      endpoint_(std::move(endpoint)),
      context_(std::make_shared<gloo::rendezvous::Context>(spec.rank, spec.size)) {}

Result<std::unique_ptr<GlooGroup>> GlooGroup::form(const CommunicatorSpec& spec, GroupStore& store) {
  MUSTER_CHECK_OK(checkGroup(spec));
  auto here = allHere(spec, store);
  if (!here.ok()) return std::move(here).error().context("forming group " + spec.name);
  auto secret = commonSecret(spec, store);
  if (!secret.ok()) return std::move(secret).error().context("forming group " + spec.name);
  MUSTER_TRY(Endpoint endpoint, chooseEndpoint(spec.interface, *here));
  // Gloo writes to its peers' sockets without MSG_NOSIGNAL: a peer that died is an error, not a signal to die
  // of.
  signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<GlooGroup> group(new GlooGroup(spec, std::move(endpoint)));
  try {
    gloo::transport::tcp::attr attributes(group->endpoint_.address.c_str());
    auto device = authenticatedDevice(attributes, *secret);
    Rendezvous rendezvous(store, spec.name + "/gloo/", spec.timeout);
    group->context_->setTimeout(milliseconds(spec.timeout / kConnectFactor));
    group->context_->connectFullMesh(rendezvous, device);
    group->context_->setTimeout(milliseconds(spec.timeout));
  } catch (const StoreFailure& failure) {
    return Error(failure.error).context("forming group " + spec.name);
  } catch (const std::exception& failure) {
    // Its pairs end with it: a context that is not whole has no transport to close them through.
    return group->lost("forming the group", failure.what()).error();
  }
  return group;
}

Status GlooGroup::run(const char* what, const std::function<void()>& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (!broken_.ok()) return broken_;
  }
  try {
    operation();
    return {};
  } catch (const std::exception& failure) {
    return breakWith(what, failure.what());
  }
}

/// Closing at once spreads the failure: others need not wait for their own timeouts.
Status GlooGroup::breakWith(const char* what, const std::string& reason) {
  closePairs();
  return lost(what, reason);
}

Status GlooGroup::lost(const char* what, const std::string& reason) {
  const bool late =
      reason.find("imed out") != std::string::npos || reason.find("timeout") != std::string::npos;
  const std::lock_guard lock(mutex_);
  if (broken_.ok())
    broken_ = Error{late ? ErrorCode::kTimeout : ErrorCode::kIo,
                    "rank " + std::to_string(context_->rank) + " of " + std::to_string(context_->size) +
                        " lost its group in " + what + ": " + reason +
                        "; a peer ended or hangs: check how the other ranks ended",
                    name_};
  return broken_;
}

/// A wait that times out makes Gloo close every pair and wake all who wait on them; nothing is ever sent
/// under this slot.
void GlooGroup::closePairs() {
  try {
    if (context_->size < 2) return;
    char byte = 0;
    auto nothing = context_->createUnboundBuffer(&byte, 1);
    nothing->recv(context_->rank == 0 ? 1 : 0, gloo::Slot::build(0x7f, 0));
    nothing->waitRecv(Milliseconds(1));
  } catch (const std::exception&) {
    // That is how it ends.
  }
}

void GlooGroup::abort() {
  {
    const std::lock_guard lock(mutex_);
    if (broken_.ok()) broken_ = Error{ErrorCode::kIo, "the group was aborted", name_};
  }
  closePairs();
}

}  // namespace muster::host
