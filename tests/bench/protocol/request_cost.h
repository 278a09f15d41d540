// SPDX-License-Identifier: Apache-2.0
// What a request costs the thread of a real store: the input of the simulation that is measured, not assumed.
#pragma once

#include "runner/core/result.h"

namespace muster::bench {

/// CPU seconds of the store's thread.
struct StoreCosts {
  double proof = 0;      ///< of a connection and its TLS handshake
  double heartbeat = 0;  ///< of one heartbeat and its answer
  double enter = 0;      ///< of one node's request at a barrier of all
  double answer = 0;     ///< of the answer to it, sent by one thread
};

/// Over `connections` real connections of this process. They all ask at the same moment, `rounds` times.
Result<StoreCosts> measureStoreCosts(int connections, int rounds);

}  // namespace muster::bench
