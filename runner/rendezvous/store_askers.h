// SPDX-License-Identifier: Apache-2.0
// Who asked what: a desk knows requests by numbers of its own, a connection by the peer's. Internal to this
// folder.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runner/rendezvous/store_desk.h"
#include "runner/rendezvous/wire/store_protocol.h"

namespace muster {

/// The open requests of all connections to one desk.
class StoreAskers {
 public:
  explicit StoreAskers(StoreDesk& desk) : desk_(desk) {}

  /// An answer and where it goes: a connection, and the number that its peer gave the request.
  struct Answer {
    StorePeerId connection = 0;
    uint32_t id = 0;
    StoreReply reply;
  };
  /// Whether the request is in order, and which request was withdrawn with it.
  enum class Taken { kAsked, kWithdrawn, kMalformed };

  Taken take(StorePeerId connection, StoreRequest request, double now, std::vector<Answer>& out);
  /// Goes on with what the desk waits for.
  void proceed(double now, std::vector<Answer>& out);
  /// The connection is gone, and what it asked with it.
  void close(StorePeerId connection);

 private:
  struct Asker {
    StorePeerId connection = 0;
    uint32_t id = 0;
  };
  void collect(std::vector<StoreReply> replies, std::vector<Answer>& out);

  StoreDesk& desk_;
  StorePeerId next_ = 1;
  std::unordered_map<StorePeerId, Asker> askers_;
  std::unordered_map<StorePeerId, std::unordered_map<uint32_t, StorePeerId>> open_;  ///< by connection
};

}  // namespace muster
