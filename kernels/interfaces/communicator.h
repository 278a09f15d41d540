// SPDX-License-Identifier: Apache-2.0
// A group of ranks that talk: collectives and pairs, as plugins see them. Implemented by each backend.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/interfaces/device.h"
#include "kernels/spec/collective_spec.h"
#include "runner/core/result.h"

namespace muster {

/// The key-value store of a stage's group, as the host offers it to its plugin. Every wait is bounded.
class GroupStore {
 public:
  virtual ~GroupStore() = default;
  virtual Status set(const std::string& key, std::string_view value) = 0;
  /// Waits for the key at most `timeout` seconds.
  virtual Result<std::string> get(const std::string& key, double timeout) = 0;
};

const char* reduceOpName(ReduceOp op);  ///< sum, prod, min, max, avg
Result<ReduceOp> reduceOpFromName(std::string_view name);

const char* collectiveOpName(CollectiveOp op);  ///< all_reduce, all_gather ... as nccl-tests names them
Result<CollectiveOp> collectiveOpFromName(std::string_view name);

/// Where a rank of a group is.
struct GroupMember {
  int node = 0;
  int device = 0;  ///< its place in the node
};

/// Which group to form. All ranks of it name the same members in the same order.
struct CommunicatorSpec {
  std::string name;       ///< prefix of its keys in the store; a group that forms again needs another name
  int rank = 0;           ///< of this process in the group
  int size = 1;           ///< ranks in the group
  double timeout = 60;    ///< seconds to form it, and for each call on it
  std::string interface;  ///< network interface or address to talk through; empty: the backend's choice
  std::map<std::string, std::string> settings;  ///< of the library (NCCL_...), recorded by the caller
  /// Where each rank is, for sim, whose ranks do not talk. Empty: device by device, node after node, from
  /// node 0 on; a group that fits into one node is on this process's own.
  std::vector<GroupMember> members;
};

bool countsPerRank(CollectiveOp op);  ///< whether `count` is per rank
bool reduces(CollectiveOp op);        ///< whether it has a reduction
bool hasRoot(CollectiveOp op);
bool worksInPlace(CollectiveOp op);  ///< alltoall and sendrecv do not
/// kUsage for a count of 0, a root outside of the group, or a form in place that there is not.
Status checkSpec(const CollectiveSpec& spec, int ranks);

/// What a check of a collective's result found on this rank.
struct CollectiveMismatch {
  uint64_t wrong = 0;  ///< elements
  uint64_t firstElement = 0;
  uint64_t lastElement = 0;
  int source = -1;          ///< the rank from which wrong data came there, where that can be told; else -1
  bool inputRight = false;  ///< what was put in there is right: it was damaged on its way, or on arrival
};

/// A prepared collective with its buffers on the device. Every method is called by all ranks of the group.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Fills the inputs with values whose results are exact in the dtype: a pure function of seed, rank and
  /// index.
  virtual Status prepare(uint64_t seed) = 0;
  /// Queues one run on the communicator.
  virtual Status run() = 0;
  /// Compares the last result with what it must be, element by element and exactly; NaN is wrong. In place,
  /// inputs were used up by run(): prepare() again before the run that is checked.
  virtual Result<CollectiveMismatch> check() = 0;
  /// Records `runs` runs as one graph, which replay() queues without the cost of each launch; after a run().
  /// kUnsupported where the backend has no graphs.
  virtual Status record(int runs) {
    return Error{ErrorCode::kUnsupported, "this backend has no graphs of collectives",
                 std::to_string(runs) + " runs"};
  }
  virtual Status replay() { return Error{ErrorCode::kUnsupported, "nothing was recorded", ""}; }
};

/// Bytes that one way of transport is known to have carried, and who says so.
struct TransportUse {
  std::string
      transport;  ///< socket, shm, pcie-p2p, nvlink, mnnvl, ib, roce, each maybe with "+gdr"; or a net plugin
  double bytes = 0;      ///< counted since the communicator was formed
  std::string evidence;  ///< "lo: tx_bytes +1.2 GB", "the library's log"
};

/// What became of the settings that a group was formed with.
struct SettingsUse {
  std::vector<std::string> taken;   ///< "NAME=value": the library says that it took it
  std::vector<std::string> unsaid;  ///< the library does not say: unknown to it, or not needed so far
};

/// A formed group. Calls queue work in order on the group's own stream, beside the device's; synchronize()
/// waits for both. Not thread-safe. A lost or late peer is an error (kPeer) of every later call; abort() lets
/// go without waiting.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual std::string implementation() const = 0;  ///< "gloo 0.0~git20220518 tcp"

  virtual Result<std::unique_ptr<Collective>> collective(const CollectiveSpec& spec) = 0;

  /// Queues an all-reduce of `count` elements from element `first` on, in place, after what `buffer`'s device
  /// has queued so far: for gradients, beside the device's further work.
  virtual Status allReduce(Buffer& buffer, uint64_t first, uint64_t count, Dtype dtype, ReduceOp reduce) = 0;
  virtual Status broadcast(Buffer& buffer, uint64_t bytes, int root) = 0;
  /// Queues both halves of an exchange with one peer; either size may be 0.
  virtual Status exchange(int peer, const Buffer& send, uint64_t sendBytes, Buffer& receive,
                          uint64_t receiveBytes) = 0;
  /// Lets the device's further work wait for what this communicator has queued.
  virtual Status join() = 0;

  virtual Status barrier() = 0;
  virtual Status synchronize() = 0;
  /// Seconds that `work` takes on this rank, from its first start to its last end.
  virtual Result<double> time(const std::function<Status()>& work) = 0;
  /// The largest of each value over all ranks: small host values, such as times, of which the upper 32 bits of
  /// the mantissa are kept. All ranks call it with equally many; waits for what is queued. kCorrupt on all
  /// ranks where one does not get what was sent. In sim a rank's values stand for all.
  virtual Result<std::vector<double>> maxOverRanks(const std::vector<double>& values) {
    return Error{ErrorCode::kUnsupported, "this communicator cannot compare values over its ranks",
                 std::to_string(values.size()) + " values"};
  }
  /// Whether ranks reach each other. In sim they do not: each computes what others measure.
  [[nodiscard]] virtual bool ranksTalk() const { return true; }
  /// Where ranks do not talk: whether exchangeBetween() says the same from now on, however late it is asked.
  [[nodiscard]] virtual bool isSteady() const { return false; }
  /// Where ranks do not talk: the seconds of an exchange between any two ranks, a pure function of the
  /// arguments (and of scenario and seed). `draw` tells repetitions apart; the device's clock stays.
  virtual Result<double> exchangeBetween(int a, int b, uint64_t bytesToB, uint64_t bytesToA, uint64_t draw) {
    return Error{ErrorCode::kUnsupported, "only ranks that do not talk can tell of each other",
                 std::to_string(a) + " and " + std::to_string(b) + ", " +
                     std::to_string(bytesToB + bytesToA) + " bytes, draw " + std::to_string(draw)};
  }
  /// What really carried the bytes so far.
  virtual Result<std::vector<TransportUse>> transports() = 0;
  /// A setting that the library took with another value is an error.
  virtual Result<SettingsUse> settingsUse() { return SettingsUse{}; }
  virtual void abort() = 0;
};

}  // namespace muster
