// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket and what all sockets of the store have in common. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/files.h"
#include "runner/core/result.h"

namespace muster {

struct Listener {
  Fd socket;  ///< non-blocking
  uint16_t port = 0;
};

/// Listens on the first of `ports` that is free. `address` is numeric; empty: all of the machine's. kUsage
/// for an address that is none, kIo names each port and why it could not be had.
Result<Listener> listenOn(const std::string& address, const std::vector<uint16_t>& ports);

/// No delay for small messages, and a peer that vanished is noticed in about eight seconds.
void tuneStoreSocket(int socket);

}  // namespace muster
