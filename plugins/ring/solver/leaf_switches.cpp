// SPDX-License-Identifier: Apache-2.0
// Groups of a topology file become leaves.
#include "plugins/ring/solver/leaf_switches.h"

#include <fmt/format.h>

#include <map>

#include "runner/core/text.h"
#include "runner/hosts/topology_file.h"

namespace muster::ring {

Result<Topology> leafSwitches(std::string_view text, const std::string& path,
                              const std::vector<std::string>& nodes) {
  MUSTER_TRY(const std::vector<NodeGroup> groups, parseTopology(text, path));
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i]] = i;
  Topology topology;
  topology.leafOf.assign(nodes.size(), -1);
  for (const NodeGroup& group : groups) {
    const auto leaf = static_cast<int>(topology.names.size());
    topology.names.push_back(group.name);
    for (const std::string& host : group.nodes) {
      const auto at = index.find(host);
      if (at == index.end()) continue;  // not part of this run
      int& now = topology.leafOf[at->second];
      if (now >= 0 && now != leaf)
        return Error{ErrorCode::kUsage,
                     fmt::format("node {} is on leaf {} already, and here on {}; a node has one leaf",
                                 printable(host), topology.names[static_cast<size_t>(now)], group.name),
                     fmt::format("{}:{}", path, group.line)};
      now = leaf;
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (topology.leafOf[i] < 0)
      return Error{
          ErrorCode::kUsage,
          fmt::format("no leaf switch has node {}; add it to the Nodes= of its switch", printable(nodes[i])),
          path};
  return topology;
}

}  // namespace muster::ring
