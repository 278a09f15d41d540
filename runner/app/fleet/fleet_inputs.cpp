// SPDX-License-Identifier: Apache-2.0
// Writes and reads fleet-inputs.json.
#include "runner/app/fleet/fleet_inputs.h"

namespace muster {
namespace {

constexpr int kSchema = 1;

Json expectedJson(const std::vector<fleet::ExpectedNode>& nodes) {
  Json list = Json::array();
  for (const fleet::ExpectedNode& node : nodes)
    list.push_back({{"node", node.name}, {"down", node.down}, {"drained", node.drained}, {"sku", node.sku}});
  return list;
}

Result<fleet::ExpectedNode> expectedFromJson(const Json& json, const std::string& path) {
  fleet::ExpectedNode node;
  JsonReader reader(json, path);
  reader.read("node", node.name);
  reader.read("down", node.down);
  reader.read("drained", node.drained);
  reader.read("sku", node.sku);
  MUSTER_CHECK_OK(reader.status());
  return node;
}

Result<fleet::Topology> topologyFromJson(const Json& json) {
  fleet::Topology topology;
  JsonReader reader(json, "topology");
  for (const auto& [name, nodes] : json.items()) reader.read(name.c_str(), topology[name]);
  MUSTER_CHECK_OK(reader.status());
  return topology;
}

}  // namespace

Json toJson(const FleetInputs& inputs) {
  const fleet::FleetOptions& wanted = inputs.wanted;
  return {{"schema", kSchema},
          {"at", inputs.at},
          {"records_at", inputs.recordsAt},
          {"witnessed", inputs.witnessed},
          {"expected_from", wanted.expectedFrom},
          {"expected", expectedJson(wanted.expected)},
          {"plan_sha256", wanted.planSha256},
          {"profiles_sha256", wanted.pinnedProfiles},
          {"fleet_id", wanted.fleetId},
          {"resume_with", wanted.resumeWith},
          {"topology_from", wanted.topologyFrom},
          {"topology", wanted.topology},
          {"waivers_from", wanted.waiversFrom},
          {"waivers_sha256", wanted.waiversSha256},
          {"waivers_path", inputs.waiversPath},
          {"waivers_text", inputs.waiversText},
          {"same_machine", wanted.sameMachine},
          {"allow_rejudged", wanted.allowRejudged},
          {"many_runs", wanted.manyRuns},
          {"reject_outliers", wanted.rejectOutliers}};
}

Result<FleetInputs> fleetInputsFromJson(const Json& json) {
  FleetInputs inputs;
  fleet::FleetOptions& wanted = inputs.wanted;
  int schema = 0;
  JsonReader reader(json, kFleetInputsFile);
  reader.read("schema", schema);
  if (reader.ok() && schema != kSchema) reader.fail("schema", "this Muster reads schema 1");
  reader.read("at", inputs.at);
  reader.read("records_at", inputs.recordsAt);
  reader.read("witnessed", inputs.witnessed);
  reader.read("expected_from", wanted.expectedFrom);
  reader.each("expected", [&](const Json& item, const std::string& path) -> Status {
    MUSTER_TRY(fleet::ExpectedNode node, expectedFromJson(item, path));
    wanted.expected.push_back(std::move(node));
    return {};
  });
  reader.read("plan_sha256", wanted.planSha256);
  reader.read("profiles_sha256", wanted.pinnedProfiles);
  reader.read("fleet_id", wanted.fleetId);
  reader.read("resume_with", wanted.resumeWith);
  reader.read("topology_from", wanted.topologyFrom);
  const Json* topology = reader.object("topology");
  reader.read("waivers_from", wanted.waiversFrom);
  reader.read("waivers_sha256", wanted.waiversSha256);
  reader.read("waivers_path", inputs.waiversPath);
  reader.read("waivers_text", inputs.waiversText);
  reader.read("same_machine", wanted.sameMachine);
  reader.read("allow_rejudged", wanted.allowRejudged);
  reader.read("many_runs", wanted.manyRuns);
  reader.read("reject_outliers", wanted.rejectOutliers);
  MUSTER_CHECK_OK(reader.status());
  MUSTER_TRY(wanted.topology, topologyFromJson(*topology));
  return inputs;
}

}  // namespace muster
