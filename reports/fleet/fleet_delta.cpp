// SPDX-License-Identifier: Apache-2.0
// Converts the delta part of a fleet record to JSON.
#include "reports/fleet/fleet_delta.h"

namespace muster::fleet {

Json toJson(const FleetDelta& delta) {
  Json nodes = Json::array();
  for (const FleetDelta::Node& node : delta.nodes) {
    Json runs = Json::array();
    for (const FleetDelta::Run& run : node.runs)
      runs.push_back({{"path", run.path}, {"run", run.id}, {"started", run.started}});
    nodes.push_back({{"node", node.node}, {"runs", runs}, {"changes", node.changes}});
  }
  return {{"since", delta.since},
          {"since_sha256", delta.sinceSha256},
          {"since_finished", delta.sinceFinished},
          {"kept", delta.kept},
          {"nodes", nodes}};
}

}  // namespace muster::fleet
