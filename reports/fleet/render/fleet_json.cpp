// SPDX-License-Identifier: Apache-2.0
// fleet.json: the fleet record as text, its outcome first, one node a line.
#include <fmt/format.h>

#include "reports/fleet/render/fleet_html.h"
#include "runner/core/build_info.h"
#include "runner/record/findings/deviations.h"

namespace muster::fleet {
namespace {

Json toJson(const Accounting& accounting) {
  Json counts = Json::object();
  for (int i = 0; i < kOutcomeCount; ++i) counts[outcomeName(static_cast<Outcome>(i))] = accounting.counts[i];
  return {
      {"expected", accounting.expected}, {"counts", counts}, {"required_skips", accounting.requiredSkips}};
}

/// Only what is not zero: there are thousands of nodes.
Json countsOf(const Accounting& accounting) {
  Json counts = Json::object();
  for (int i = 0; i < kOutcomeCount; ++i)
    if (accounting.counts[i] > 0) counts[outcomeName(static_cast<Outcome>(i))] = accounting.counts[i];
  return counts;
}

/// What a failure of a record follows from, where that is not the part which reports it.
std::string causeText(const DeviationSummary& d) {
  switch (d.cause) {
    case Cause::kOwn:
      return "";
    case Cause::kStopped:
      return "it was stopped";
    case Cause::kPeer:
      return d.source;
    case Cause::kRank:
      return d.source.empty() ? "an unknown rank" : "rank " + d.source;
    case Cause::kGroup:
      return "the whole group";
    case Cause::kNeed:
      return "a stage that it needs";
  }
  return "";
}

Json deviationJson(const DeviationSummary& d, const FleetNames& names) {
  Json json = {{"outcome", outcomeName(d.outcome)}, {"stage", names.texts[d.stage]}};
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  put("metric", names.texts[d.metric]);
  put("device", d.device);
  put("labels", d.labels);
  put("detail", d.detail);
  put("remedy", d.remedy);
  if (d.cause != Cause::kOwn) json["follows_from"] = causeText(d);
  if (d.times > 1) json["times"] = d.times;
  return json;
}

/// Serials by device: what a delta acceptance compares.
Json serialsOf(const NodeSummary& record) {
  Json serials = Json::object();
  for (const DeviceIdentity& device : record.devices)
    if (!device.serial.empty() || !device.uuid.empty())
      serials[device.id] = device.serial.empty() ? device.uuid : device.serial;
  return serials;
}

Json nodeJson(const FleetNode& node, const FleetRecords& records) {
  Json json = {{"node", node.name}, {"state", nameOf(node.state)}};
  if (!node.reason.empty()) json["reason"] = node.reason;
  if (node.suspect) json["suspect"] = true;
  if (node.records.empty()) return json;
  json["sku"] = node.sku;
  if (!node.expectedSku.empty() && node.expectedSku != node.sku) json["expected_sku"] = node.expectedSku;
  json["devices"] = node.devices;
  json["expected"] = node.accounting.expected;
  json["counts"] = countsOf(node.accounting);
  Json list = Json::array();
  Json deviations = Json::array();
  size_t left = 0;
  for (const size_t i : node.records) {
    const NodeSummary& record = records.nodes[i];
    Json entry = {{"path", record.path},       {"sha256", record.sha256},
                  {"run", record.runId},       {"acceptance", nameOf(record.acceptance)},
                  {"started", record.started}, {"finished", record.finished}};
    if (record.rejudged) entry["rejudged_from"] = record.rejudged->from.front();
    list.push_back(std::move(entry));
    for (const DeviationSummary& d : record.deviations)
      deviations.push_back(deviationJson(d, *records.names));
    left += record.deviationsLeft;
  }
  json["records"] = list;
  json["serials"] = serialsOf(records.nodes[node.records.front()]);
  if (!deviations.empty()) json["deviations"] = deviations;
  if (left > 0) json["deviations_left_out"] = left;
  return json;
}

Json toJson(const LeftOut& out) {
  return {{"path", out.path}, {"node", out.node}, {"acceptance", out.acceptance}, {"reason", out.reason}};
}

Json toJson(const Quarantined& q) {
  return {{"path", q.path}, {"node", q.node}, {"reason", q.reason}};
}

Json toJson(const GroupStage& group) {
  return {{"stage", group.stage},     {"outcome", outcomeName(group.outcome)},
          {"nodes", group.nodes},     {"ranks", group.ranks},
          {"records", group.records}, {"culprit", group.culprit}};
}

Json toJson(const FactDrift& drift) {
  Json odd = Json::array();
  for (const auto& value : drift.odd)
    odd.push_back({{"value", value.value}, {"count", value.count}, {"where", value.where}});
  return {{"fact", drift.fact},   {"of", drift.ofDevices ? "device" : "node"},
          {"sku", drift.sku},     {"majority", drift.majority},
          {"agree", drift.agree}, {"total", drift.total},
          {"odd", odd},           {"text", drift.text}};
}

Json toJson(const RecordFinding& finding) {
  return {{"kind", findingKindName(finding.kind)},
          {"nodes", finding.nodes},
          {"records", finding.records},
          {"text", finding.text},
          {"next", finding.next}};
}

Json toJson(const Suspect& s) {
  Json json = {{"kind", suspectKindName(s.kind)}, {"node", s.node}, {"what", s.what}};
  if (!s.serial.empty()) json["serial"] = s.serial;
  json["class"] = findingClassName(s.grade);
  json["by"] = s.byPeers ? "peers" : "verdicts";
  json["evidence"] = s.evidence;
  if (!s.beneath.empty()) json["beneath"] = s.beneath;
  if (s.beneathLeft > 0) json["beneath_left_out"] = s.beneathLeft;
  json["next"] = s.next;
  return json;
}

Json toJson(const Incident& incident) {
  Json json = {{"urgency", incident.urgencyName()},
               {"kind", incident.kind},
               {"nodes", incident.nodes},
               {"node_count", incident.nodeCount},
               {"part", incident.part},
               {"serial", incident.serial},
               {"place", incident.place},
               {"cause", incident.cause},
               {"limit_source", incident.limitSource},
               {"action", incident.action},
               {"command", incident.command}};
  if (!incident.beneath.empty()) json["beneath"] = incident.beneath;
  if (incident.beneathLeft > 0) json["beneath_left_out"] = incident.beneathLeft;
  return json;
}

Json toJson(const FleetWaiver& entry) {
  const Waiver& waiver = entry.waiver;
  return {{"stage", waiver.stage},
          {"metric", waiver.metric},
          {"where", Json(waiver.where)},
          {"device", waiver.device},
          {"serial", waiver.serial},
          {"node", waiver.node},
          {"reason", waiver.reason},
          {"approver", waiver.approver},
          {"expires", waiver.expires},
          {"at", waiver.at},
          {"by", entry.given ? "fleet" : "nodes"},
          {"state", nameOf(entry.state)},
          {"covered", entry.count.covered},
          {"nodes", entry.nodes},
          {"detail", entry.detail}};
}

Json toJson(const Distribution& d) {
  return {{"figure", d.name},
          {"sku", d.sku},
          {"unit", d.unit},
          {"direction", directionName(d.direction)},
          {"n", d.n},
          {"median", numberToJson(d.median)},
          {"spread", numberToJson(d.spread)},
          {"min", numberToJson(d.low)},
          {"max", numberToJson(d.high)},
          {"p05", numberToJson(d.q05)},
          {"p95", numberToJson(d.q95)},
          {"bins", d.bins}};
}

Json toJson(const FleetClause& clause) {
  Json json = {{"id", clause.clause.id},
               {"requirement", clause.clause.requirement},
               {"source", clause.clause.source},
               {"nodes", clause.nodes},
               {"without", clause.without},
               {"results", clause.results},
               {"met", clause.met}};
  if (!clause.worst) return json;
  const Verdict& worst = *clause.worst;
  json["worst"] = {{"outcome", outcomeName(worst.outcome)},
                   {"node", clause.worstNode},
                   {"device", worst.device},
                   {"metric", worst.metric},
                   {"observed", worst.observedText},
                   {"required", wantedText(worst)}};
  return json;
}

Json deferredJson(const DeferredMiss& miss, const FleetNames& names) {
  const DeferredKey& key = names.deferred[miss.key];
  return {{"outcome", outcomeName(miss.outcome)},
          {"node", miss.node},
          {"device", miss.device},
          {"stage", key.stage},
          {"metric", key.metric},
          {"labels", labelsText(key.labels)},
          {"detail", miss.detail},
          {"remedy", key.expectation.remedy}};
}

/// Writes members one by one, so that no second copy of a large fleet stands in memory.
class Writer {
 public:
  void member(const char* key, const Json& value) { begin(key) += dumpJson(value); }

  template <typename Items, typename F>
  void list(const char* key, const Items& items, F make) {
    std::string& out = begin(key);
    out += '[';
    const char* separator = "\n  ";
    for (const auto& item : items) {
      out += separator + dumpJson(make(item));
      separator = ",\n  ";
    }
    out += ']';
  }

  [[nodiscard]] std::string finish() && { return std::move(text_) + "\n}\n"; }

 private:
  std::string& begin(const char* key) {
    text_ += fmt::format("{}\n \"{}\": ", text_.empty() ? "{" : ",", key);
    return text_;
  }
  std::string text_;
};

}  // namespace

std::string fleetText(const Fleet& fleet, const FleetRecords& records) {
  return fleetText(fleet, records, FleetClauses());
}

std::string fleetText(const Fleet& fleet, const FleetRecords& records, const FleetClauses& clauses) {
  const FleetNames& names = *records.names;
  const auto plain = [](const auto& item) { return toJson(item); };
  Writer out;
  out.member("fleet_schema", kFleetSchema);
  out.member("acceptance", nameOf(fleet.acceptance));
  out.member("exit_code", fleet.exitCode);
  out.member("reasons", fleet.reasons);
  out.member("simulated", fleet.simulated);
  Json states = Json::object();
  for (int i = 0; i < kNodeStateCount; ++i) states[nameOf(static_cast<NodeState>(i))] = fleet.states[i];
  out.member("coverage",
             {{"expected", fleet.nodes.size()}, {"from", fleet.expectedFrom}, {"states", states}});
  out.member("accounting", toJson(fleet.accounting));
  out.member("tool", {{"name", "muster"}, {"version", toolVersion()}, {"build_id", buildId()}});
  out.member("plan",
             {{"name", fleet.planName}, {"sha256", fleet.planSha256}, {"overrides", fleet.overrides}});
  out.member("fleet_id", fleet.fleetId);
  out.member("started", fleet.started);
  out.member("finished", fleet.finished);
  out.member("records_sha256", fleet.recordsSha256);
  out.member("topology_from", fleet.topologyFrom);
  out.member("notes", fleet.notes);
  out.member("same_machine", fleet.sameMachine);
  out.member("reject_outliers", fleet.rejectOutliers);
  out.member("allow_rejudged", fleet.allowRejudged);
  out.list("findings", fleet.findings, plain);
  if (fleet.delta) out.member("delta", toJson(*fleet.delta));
  out.list("incidents", fleet.incidents, plain);
  if (!clauses.clauses().empty()) out.list("clauses", clauses.clauses(), plain);
  out.list("suspects", fleet.suspects, plain);
  out.member("suspects_left_out", fleet.suspectsLeft);
  out.member("waivers_from", fleet.waiversFrom);
  out.member("waivers_sha256", fleet.waiversSha256);
  out.list("waivers", fleet.waivers, plain);
  out.list("drift", fleet.drift, plain);
  out.list("duplicates", fleet.duplicates, plain);
  out.list("stale", fleet.stale, plain);
  out.list("foreign", fleet.foreign, plain);
  out.list("without_record", fleet.withoutRecord, plain);
  out.list("quarantined", fleet.quarantined, plain);
  out.list("groups", fleet.groups, plain);
  out.member("deferred_judged", fleet.deferredCount);
  out.list("deferred_missed", fleet.deferred,
           [&](const DeferredMiss& miss) { return deferredJson(miss, names); });
  out.list("distributions", fleet.distributions, plain);
  out.list("nodes", fleet.nodes, [&](const FleetNode& node) { return nodeJson(node, records); });
  return std::move(out).finish();
}

}  // namespace muster::fleet
