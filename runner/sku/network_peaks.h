// SPDX-License-Identifier: Apache-2.0
// What the network between nodes must be able to carry: of the profile's reference design, or as a plan
// states it.
#pragma once

#include <map>
#include <string>

namespace muster {

inline constexpr const char* kRailPeak = "rail_bandwidth";     ///< of one NIC, one way
inline constexpr const char* kNodePeak = "network_bandwidth";  ///< of all NICs of a node
inline constexpr const char* kRails = "rails";                 ///< NICs of a node

/// Ends `peaksFrom` where the plan states the network.
inline constexpr const char* kNetworkOfPlan = ", network of the plan";

/// What the plan states (0: nothing) replaces what the profile has, and the peaks of each collective follow
/// for `nodes` nodes of `devices` devices: "network_bandwidth.all_reduce" (the node's),
/// "network_bandwidth.sendrecv" (a device's share of it) and "network_bandwidth.alltoall" (the same, and what
/// stays in the node on top: nearly twice as much on two nodes). Where nothing states the network there are
/// none, and a share of them cannot be judged.
void addNetworkPeaks(int statedRails, double statedRailBandwidth, size_t devices, int nodes,
                     std::map<std::string, double>& peaks);

}  // namespace muster
