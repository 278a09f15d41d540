// SPDX-License-Identifier: Apache-2.0
// One rank after the other.
#include <fmt/format.h>

#include "plugins/memory/tests.h"

namespace muster::memory {

Status inTurn(const Bench& bench, double timeout, const std::function<Status()>& work) {
  if (bench.group.size == 1 || bench.virtualTime) return work();
  sdk::HostStore store(bench.host);
  Status mine;
  for (int turn = 0; turn < bench.group.size; ++turn) {
    if (turn != bench.group.rank) bench.host.progress(0, fmt::format("rank {} measures", turn));
    if (turn == bench.group.rank) mine = work();
    const Status met = store.barrier(fmt::format("turn{}", turn), timeout);
    if (!mine.ok()) return mine;
    MUSTER_CHECK_OK(met);
  }
  return mine;
}

}  // namespace muster::memory
