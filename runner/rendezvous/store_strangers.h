// SPDX-License-Identifier: Apache-2.0
// Connections that have not proven the token, and which of them goes when there are too many. Internal to
// this folder.
#pragma once

#include <sys/socket.h>

#include <map>
#include <string>

#include "runner/rendezvous/store_desk.h"

namespace muster {

class StoreStrangers {
 public:
  /// Who can open any number of connections: a machine, which under IPv6 has a network of its own. All
  /// addresses of this machine, with the 16 million of loopback, are one network. `own`: the address that was
  /// reached.
  static std::string networkOf(const sockaddr_storage& peer, const sockaddr_storage& own);

  /// Ids grow.
  void add(StorePeerId id, std::string network) { strangers_.emplace(id, std::move(network)); }
  /// Whether it was one.
  bool remove(StorePeerId id) { return strangers_.erase(id) > 0; }
  [[nodiscard]] bool has(StorePeerId id) const { return strangers_.count(id) > 0; }
  [[nodiscard]] size_t size() const { return strangers_.size(); }
  [[nodiscard]] bool empty() const { return strangers_.empty(); }
  /// The oldest of the network that has most of them: a flood from one machine closes itself. Of several such
  /// networks the oldest of all. There must be one.
  [[nodiscard]] StorePeerId crowded() const;

 private:
  std::map<StorePeerId, std::string> strangers_;
};

}  // namespace muster
