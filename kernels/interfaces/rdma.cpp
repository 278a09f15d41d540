// SPDX-License-Identifier: Apache-2.0
// What the counters of an RDMA port grow by, and what its device's PCIe link is worth.
#include "kernels/interfaces/rdma.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

double PcieLink::share() const {
  return std::min(1.0, lanes * speed / (mostLanes * mostSpeed));
}

std::string PcieLink::text() const {
  return fmt::format("x{} at {:g} GT/s of x{} at {:g} GT/s", lanes, speed, mostLanes, mostSpeed);
}

std::vector<Reading> pcieReadings(const std::vector<RdmaPort>& ports) {
  std::vector<Reading> readings;
  for (const RdmaPort& port : ports) {
    const bool again = !readings.empty() && readings.back().labels.at("hca") == port.device;
    if (port.pcie.known() && !again)
      readings.push_back(
          {"hca_pcie_share", "ratio", "", port.pcie.share(), port.pcie.text(), {{"hca", port.device}}});
  }
  return readings;
}

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
  Json json = {{"name", port.name()},       {"kind", "rdma"},
               {"state", port.state},       {"rate", port.rate},
               {"link_layer", port.layer},  {"physical_state", port.physical},
               {"firmware", port.firmware}, {"numa_node", port.numaNode},
               {"errors", port.errors}};
  if (!port.driver.empty()) json["driver"] = port.driver;
  if (!port.guid.empty()) json["node_guid"] = port.guid;
  if (port.pcie.known()) json["pcie"] = port.pcie.text();
  return json;
}

}  // namespace muster
