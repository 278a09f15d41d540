// SPDX-License-Identifier: Apache-2.0
// What the counters of an RDMA port grow by.
#include "kernels/interfaces/rdma.h"

namespace muster {

uint64_t rdmaGrowth(std::string_view counter, uint64_t before, uint64_t after) {
  if (after >= before) return after - before;
  // PortXmitData and PortRcvData of the InfiniBand specification, volume 1, section 16.1.3.5: 32 bits of
  // words of four bytes. Hardware with the extended counters has 64 bits, which no run outlives.
  constexpr uint64_t kOldRange = (uint64_t{1} << 32) * 4;
  const bool countsBytes = counter == "sent_bytes" || counter == "received_bytes";
  const bool wrapped = countsBytes && before < kOldRange && before >= kOldRange / 2 && after < kOldRange / 2;
  return wrapped ? kOldRange - before + after : after;
}

Json toJson(const RdmaPort& port) {
  return {{"name", port.name()},       {"kind", "rdma"},
          {"state", port.state},       {"rate", port.rate},
          {"link_layer", port.layer},  {"physical_state", port.physical},
          {"firmware", port.firmware}, {"numa_node", port.numaNode},
          {"errors", port.errors}};
}

}  // namespace muster
