// SPDX-License-Identifier: Apache-2.0
// Converts runs, changes, comparisons, fleets and deltas to JSON.
#include "runner/app/history/history_json.h"

namespace muster {
namespace {

Json toJson(const history::Change& change) {
  const history::Series& s = change.series;
  Json runs = Json::array(), values = Json::array(), places = Json::array();
  for (const history::Run* run : s.runs) runs.push_back(run->number);
  for (size_t i = 0; i < s.runs.size(); ++i) places.push_back(s.place(i));
  for (const double value : s.values) values.push_back(numberToJson(value));
  return {{"kind", change.kind == history::ChangeKind::kStep ? "step" : "slope"},
          {"worse", change.worse},
          {"node", s.node()},
          {"device", s.device()},
          {"serial", s.serial},
          {"stage", s.figure->stage},
          {"case", s.figure->caseId},
          {"metric", s.figure->metric},
          {"labels", s.figure->labels},
          {"unit", s.figure->unit},
          {"simulated", s.simulated},
          {"before", numberToJson(change.before)},
          {"after", numberToJson(change.after)},
          {"change", numberToJson(change.change)},
          {"first_run_after",
           change.kind == history::ChangeKind::kStep ? Json(s.runs[change.at]->number) : Json()},
          {"per_day", numberToJson(change.perDay)},
          {"noise", numberToJson(change.noise)},
          {"sigmas", numberToJson(change.sigmas)},
          {"limit", numberToJson(change.limit)},
          {"runs", runs},
          {"values", values},
          {"places", places},
          {"seen", change.seen()},
          {"sure", change.sure()},
          {"next", change.next()}};
}

Json toJson(const history::FigureChange& figure) {
  return {{"worse", figure.worse},
          {"device", figure.after.device.name},
          {"stage", figure.after.figure.stage},
          {"case", figure.after.figure.caseId},
          {"metric", figure.after.figure.metric},
          {"labels", figure.after.figure.labels},
          {"unit", figure.after.figure.unit},
          {"before", numberToJson(figure.before.median)},
          {"after", numberToJson(figure.after.median)},
          {"change", figure.share ? numberToJson(figure.change) : Json()}};
}

}  // namespace

Json toJson(const history::Run& run) {
  return {{"number", run.number},   {"node", run.node},           {"id", run.runId},
          {"started", run.started}, {"plan", run.plan},           {"plan_sha256", run.planSha256},
          {"profile", run.profile}, {"simulated", run.simulated}, {"acceptance", nameOf(run.acceptance)},
          {"path", run.path},       {"sha256", run.sha256}};
}

Json toJson(const history::Trends& trends) {
  Json changes = Json::array();
  for (const history::Change& change : trends.changes) changes.push_back(toJson(change));
  return {{"series", trends.series},
          {"too_few", trends.tooFew},
          {"mostly_zero", trends.zero},
          {"not_listed", trends.left},
          {"changes", changes}};
}

Json toJson(const history::Comparison& comparison) {
  Json facts = Json::array(), figures = Json::array();
  for (const history::FactChange& fact : comparison.facts)
    facts.push_back(
        {{"device", fact.device}, {"name", fact.name}, {"before", fact.before}, {"after", fact.after}});
  for (const history::FigureChange& figure : comparison.figures) figures.push_back(toJson(figure));
  return {{"before", toJson(comparison.before)},
          {"after", toJson(comparison.after)},
          {"facts", facts},
          {"figures", figures},
          {"alike", comparison.alike},
          {"only_before", comparison.onlyBefore},
          {"only_after", comparison.onlyAfter},
          {"stages_with_other_parameters", comparison.otherStages}};
}

Json toJson(const history::KeptFleet& fleet) {
  Json nodes = Json::array();
  for (const auto& node : fleet.nodes) nodes.push_back({{"node", node.name}, {"state", nameOf(node.state)}});
  return {{"number", fleet.number},          {"folder", fleet.folder.string()},
          {"sha256", fleet.sha256},          {"acceptance", nameOf(fleet.acceptance)},
          {"simulated", fleet.simulated},    {"plan", fleet.plan},
          {"plan_sha256", fleet.planSha256}, {"started", fleet.started},
          {"finished", fleet.finished},      {"nodes", nodes}};
}

Json toJson(const history::Delta& delta) {
  constexpr const char* kStates[] = {"kept", "rerun", "needs a run"};
  Json nodes = Json::array();
  for (const history::DeltaNode& node : delta.nodes) {
    Json parts = Json::array();
    for (const auto& part : node.parts)
      parts.push_back(
          {{"device", part.device}, {"before", part.before}, {"after", part.after}, {"from", part.from}});
    nodes.push_back({{"node", node.name},
                     {"state", kStates[static_cast<size_t>(node.state)]},
                     {"why", node.why},
                     {"parts", parts},
                     {"software", node.facts}});
  }
  return {{"run_again", delta.needing()},
          {"nodes", nodes},
          {"not_taken", delta.notTaken},
          {"notes", delta.notes}};
}

}  // namespace muster
