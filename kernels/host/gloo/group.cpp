// SPDX-License-Identifier: Apache-2.0
// Rendezvous over the group's store, and how Gloo's failures are told.
#include "kernels/host/gloo/group.h"

#include <gloo/rendezvous/store.h>
#include <gloo/transport/address.h>
#include <gloo/types.h>
#include <signal.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
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

/// Gloo publishes 136 bytes for each pair of ranks, nearly all of them zero, and every rank reads those of
/// all others: packed, a hundredth of them goes through the store.
std::string packed(const std::vector<char>& data) {
  uLongf bytes = compressBound(data.size());
  std::string text(sizeof(uint64_t) + bytes, '\0');
  const uint64_t whole = data.size();
  std::memcpy(text.data(), &whole, sizeof whole);
  const int code = compress(reinterpret_cast<Bytef*>(text.data() + sizeof whole), &bytes,
                            reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (code != Z_OK) throw std::runtime_error("cannot pack the addresses of a rank");
  text.resize(sizeof whole + bytes);
  return text;
}

std::vector<char> unpacked(const std::string& text, size_t most) {
  uint64_t whole = 0;
  if (text.size() > sizeof whole) std::memcpy(&whole, text.data(), sizeof whole);
  if (whole > most) throw std::runtime_error("the addresses of a rank are larger than those of all ranks");
  std::vector<char> data(whole);
  uLongf bytes = whole;
  const int code = whole == 0 ? Z_DATA_ERROR
                              : uncompress(reinterpret_cast<Bytef*>(data.data()), &bytes,
                                           reinterpret_cast<const Bytef*>(text.data() + sizeof whole),
                                           text.size() - sizeof whole);
  if (code != Z_OK || bytes != whole) throw std::runtime_error("the addresses of a rank are damaged");
  return data;
}

/// The group's store as Gloo wants it. All waits together end at one deadline. Gloo waits for a key and then
/// asks for it: what a wait got is kept.
class Rendezvous : public gloo::rendezvous::Store {
 public:
  Rendezvous(GroupStore& store, std::string prefix, const CommunicatorSpec& spec)
      : store_(store),
        prefix_(std::move(prefix)),
        most_(static_cast<size_t>(spec.size) * gloo::transport::Address::kMaxByteSize),
        deadline_(steadySeconds() + spec.timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Status status = store_.set(prefix_ + key, packed(data));
    if (!status.ok()) throw StoreFailure(std::move(status).error());
  }
  std::vector<char> get(const std::string& key) override {
    if (key == waitedFor_) return std::move(value_);
    auto value = store_.get(prefix_ + key, std::max(0.001, deadline_ - steadySeconds()));
    if (!value.ok()) throw StoreFailure(std::move(value).error());
    return unpacked(*value, most_);
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      waitedFor_.clear();
      value_ = get(key);
      waitedFor_ = key;
    }
  }

 private:
  GroupStore& store_;
  std::string prefix_;
  size_t most_;  ///< bytes of all addresses that a rank publishes
  double deadline_;
  std::string waitedFor_;
  std::vector<char> value_;
};

/// What a group agrees on before its ranks connect.
struct Terms {
  bool here = true;    ///< whether all ranks share one network
  std::string secret;  ///< rank 0 made it; the store is closed to all but the group
};

std::string networkKey(const CommunicatorSpec& spec, int rank) {
  return spec.name + "/network/" + std::to_string(rank);
}

Error missing(Error error, int rank) {
  return std::move(error).context("waiting for rank " + std::to_string(rank));
}

Result<Terms> makeTerms(const CommunicatorSpec& spec, GroupStore& store, const std::string& own) {
  const double deadline = steadySeconds() + spec.timeout;
  Terms terms;
  for (int rank = 1; rank < spec.size; ++rank) {
    auto other = store.get(networkKey(spec, rank), std::max(0.001, deadline - steadySeconds()));
    if (!other.ok()) return missing(std::move(other).error(), rank);
    terms.here = terms.here && *other == own;
  }
  MUSTER_TRY(terms.secret, randomSecret());
  MUSTER_CHECK_OK(store.set(spec.name + "/terms", (terms.here ? "here " : "apart ") + terms.secret));
  return terms;
}

/// Rank 0 waits for all others. Where it gives none, whoever did not come first is to blame.
Result<Terms> hearTerms(const CommunicatorSpec& spec, GroupStore& store) {
  auto text = store.get(spec.name + "/terms", spec.timeout);
  if (text.ok()) return Terms{text->starts_with("here "), text->substr(text->find(' ') + 1)};
  for (int rank = 0; rank < spec.size; ++rank)
    if (!store.get(networkKey(spec, rank), 0.001).ok()) return missing(std::move(text).error(), rank);
  return missing(std::move(text).error(), 0);
}

Result<Terms> agreeOnTerms(const CommunicatorSpec& spec, GroupStore& store) {
  const std::string own = networkIdentity();
  MUSTER_CHECK_OK(store.set(networkKey(spec, spec.rank), own));
  return spec.rank == 0 ? makeTerms(spec, store, own) : hearTerms(spec, store);
}

Status checkGroup(const CommunicatorSpec& spec) {
  if (spec.size >= 1 && spec.rank >= 0 && spec.rank < spec.size && spec.timeout > 0) return {};
  return Error{ErrorCode::kUsage,
               "rank " + std::to_string(spec.rank) + " of " + std::to_string(spec.size) +
                   " with a timeout of " + std::to_string(spec.timeout) + " s forms no group",
               spec.name};
}

/// Whether Gloo's words name what this process lacks: no peer can be the cause.
bool isOwn(const std::string& reason) {
  constexpr std::array kOwn = {"Too many open files", "Cannot allocate memory", "No buffer space available",
                               "std::bad_alloc"};
  return std::any_of(kOwn.begin(), kOwn.end(),
                     [&](const char* words) { return reason.find(words) != std::string::npos; });
}

}  // namespace

GlooGroup::GlooGroup(const CommunicatorSpec& spec, Endpoint endpoint)
    : name_(spec.name),
      endpoint_(std::move(endpoint)),
      context_(std::make_shared<gloo::rendezvous::Context>(spec.rank, spec.size)) {}

Result<std::unique_ptr<GlooGroup>> GlooGroup::form(const CommunicatorSpec& spec, GroupStore& store) {
  MUSTER_CHECK_OK(checkGroup(spec));
  auto terms = agreeOnTerms(spec, store);
  if (!terms.ok()) return std::move(terms).error().context("forming group " + spec.name);
  MUSTER_TRY(Endpoint endpoint, chooseEndpoint(spec.interface, terms->here));
  // Gloo writes to its peers' sockets without MSG_NOSIGNAL: a peer that died is an error, not a signal to die
  // of.
  signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<GlooGroup> group(new GlooGroup(spec, std::move(endpoint)));
  try {
    gloo::transport::tcp::attr attributes(group->endpoint_.address.c_str());
    auto device = authenticatedDevice(attributes, terms->secret);
    Rendezvous rendezvous(store, spec.name + "/gloo/", spec);
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
  const std::lock_guard lock(mutex_);
  if (broken_.ok() && isOwn(reason))
    broken_ = Error{ErrorCode::kIo, std::string(what) + ": " + reason, name_};
  if (broken_.ok())
    broken_ = Error{ErrorCode::kPeer,
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
    if (broken_.ok()) broken_ = Error{ErrorCode::kPeer, "the group was aborted", name_};
  }
  closePairs();
}

}  // namespace muster::host
