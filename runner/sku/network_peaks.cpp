// SPDX-License-Identifier: Apache-2.0
// Computes the peak bandwidths of the network between nodes.
#include "runner/sku/network_peaks.h"

namespace muster {
namespace {

/// Collectives that send each byte once through a node's NICs, together, whatever the number of its devices.
constexpr const char* kSharedByNode[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"};
/// Collectives in which each device sends its own bytes.
constexpr const char* kOfEachDevice[] = {"alltoall", "sendrecv", "device"};

}  // namespace

void addNetworkPeaks(int statedRails, double statedRailBandwidth, size_t devices, int nodes,
                     std::map<std::string, double>& peaks) {
  const auto peak = [&](const char* name) {
    const auto known = peaks.find(name);
    return known == peaks.end() ? 0.0 : known->second;
  };
  const double rails = statedRails > 0       ? statedRails
                       : peak(kRailPeak) > 0 ? peak(kNodePeak) / peak(kRailPeak)
                                             : 0;
  const double rail = statedRailBandwidth > 0 ? statedRailBandwidth : peak(kRailPeak);
  if (!(rails > 0) || !(rail > 0) || devices == 0) return;
  peaks[kRails] = rails;
  peaks[kRailPeak] = rail;
  const double node = peaks[kNodePeak] = rails * rail;
  for (const char* op : kSharedByNode) peaks[std::string(kNodePeak) + "." + op] = node;
  for (const char* op : kOfEachDevice)
    peaks[std::string(kNodePeak) + "." + op] = node / static_cast<double>(devices);
  if (nodes < 2) return;
  // Each device sends to all others, but only what goes to other nodes passes a NIC.
  const double ranks = static_cast<double>(devices) * nodes;
  peaks[std::string(kNodePeak) + ".alltoall"] *= (ranks - 1) / (ranks - static_cast<double>(devices));
}

}  // namespace muster
