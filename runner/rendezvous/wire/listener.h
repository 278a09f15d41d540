// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket and what all sockets of the store have in common. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster {

struct Listener {
  Fd socket;         ///< non-blocking
  std::string host;  ///< where processes of this machine reach it
  uint16_t port = 0;
};

/// Listens on `port` (0: any free one), on `address` (numeric or a name) alone; empty: on all of this
/// machine's. Also on all where the address does not tell by which one others come: it is none of this
/// machine's (NAT, a service's address), or a name that is only known as loopback here (/etc/hosts).
/// kNotFound for an address that cannot be looked up; kUsage for a port that is taken or not allowed, else
/// kIo: both name the port and why it could not be had.
Result<Listener> listenOn(const std::string& address, uint16_t port);

/// No delay for small messages, and a peer that vanished is noticed in about eight seconds.
void tuneStoreSocket(int socket);

}  // namespace muster
