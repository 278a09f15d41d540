// SPDX-License-Identifier: Apache-2.0
// fabric = "auto": the detected NICs and the cloud decide which fabric's settings NCCL gets.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/interfaces/rdma.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::collective {

using Settings = std::map<std::string, std::string>;

/// A fabric, and the fact that decided. "none" sets nothing.
struct FabricChoice {
  std::string name = "none";
  std::string evidence;
  Settings settings;
};

/// `node` is what Inventory::node() says: the active RDMA ports, the network interfaces and host.cloud
/// decide.
FabricChoice chooseFabric(const Json& node);

/// The settings that the operator gave NCCL without Muster, by name, with where: in `environment`, in
/// NCCL_CONF_FILE or .nccl.conf of its HOME, and in `systemFile`, which NCCL reads in this order.
Settings operatorSettings(const std::vector<std::string>& environment,
                          const std::filesystem::path& systemFile = "/etc/nccl.conf");

/// Takes out of the choice what the operator has set, and says so in its evidence.
void yieldTo(const Settings& operators, FabricChoice& choice);

/// What a rank says of its choice to the others.
struct FabricVote {
  std::string node;
  std::string fabric;
  std::string evidence;
};
std::string voteText(const FabricVote& vote);
FabricVote voteFrom(const std::string& text);

/// An error where nodes chose other fabrics than most ranks (of equals rank 0's): they would not reach each
/// other. By rank, at least one.
Status checkSame(const std::vector<FabricVote>& votes);

/// A fabric whose settings send the data of one node through its NICs.
inline constexpr const char* kForcedFabric = "ib-forced";

/// Line rate of the slowest of the RDMA ports that so many ranks of one node use, one each, in B/s; 0: not
/// told. kUnsupported where the node has fewer active ones.
Result<double> forcedLineRate(const std::vector<RdmaPort>& ports, int ranks);

}  // namespace muster::collective
