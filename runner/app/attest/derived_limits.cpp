// SPDX-License-Identifier: Apache-2.0
// Derives the stages of a record again from plan, profile and inventory, and compares them.
#include "runner/app/attest/derived_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runner/app/input/derived_inventory.h"
#include "runner/app/node/node_inventory.h"
#include "runner/app/stage/expectations.h"
#include "runner/app/stage/rank_slots.h"
#include "runner/app/stage/stage_telemetry.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/plan/node_groups.h"
#include "runner/record/evidence_json.h"
#include "runner/sku/network_peaks.h"

namespace muster {
namespace {

/// What all stages of a record are derived from.
struct Basis {
  const Record& record;
  const Plan& plan;
  const Profile* profile;
  const Catalog& catalog;
  NodeProgress node;  ///< devices and peaks of the inventory
};

/// Limits by their JSON, without the place of their definition, and how often each is there.
using LimitCounts = std::map<std::string, int>;

std::string limitKey(Expectation limit) {
  limit.at.clear();
  return dumpJson(toJson(limit));
}

std::string limitText(const std::string& key) {
  const auto json = parseJson(key);
  const auto limit = json.ok() ? expectationFromJson(*json, "limit") : Result<Expectation>(json.error());
  if (!limit.ok()) return key;
  return fmt::format("{} {}: {} [{}]", limit->metric, labelsText(limit->where), limit->text(), limit->origin);
}

/// Compares the limits of one stage.
void compareLimits(const std::string& stage, const std::vector<Expectation>& derived,
                   const std::vector<Expectation>& stored, std::vector<std::string>& out) {
  LimitCounts counts;
  for (const Expectation& limit : derived) ++counts[limitKey(limit)];
  for (const Expectation& limit : stored) --counts[limitKey(limit)];
  for (const auto& [key, count] : counts)
    if (count != 0)
      out.push_back(fmt::format("stage {}: limit {} {}", stage, limitText(key),
                                count > 0 ? "is of plan and profile, and the record lacks it"
                                          : "is in the record, and not of plan and profile"));
}

class StageComparison {
 public:
  StageComparison(const Basis& basis, const Stage& stage, const StageRecord& record,
                  std::vector<std::string>& out)
      : basis_(basis), stage_(stage), record_(record), out_(out) {}

  void compare() {
    compareSettings();
    const auto evidence = evidenceFromRecord(record_);
    if (!evidence.ok()) return differ(evidence.error().text());
    compareLeniency(*evidence);
    if (record_.state == StageState::kRan) compareRun(*evidence);
  }

 private:
  void differ(const std::string& what) { out_.push_back(fmt::format("stage {}: {}", stage_.name, what)); }

  void compareSettings() {
    const bool same = record_.plugin == stage_.plugin && record_.test == stage_.test &&
                      record_.scope == stage_.scope && record_.needs == stage_.needs &&
                      record_.timeout == stage_.timeout && record_.repeat == stage_.repeat;
    if (!same) differ("its test, scope, needs, timeout or repeat is not as in the plan");
  }

  /// A stage may block more than the plan says, as one that had no time left, but not less, unless it is
  /// of the part that a partial run left out, or this node has no part in its group.
  void compareLeniency(const StageEvidence& stored) {
    const bool leftOut = !basis_.record.selection.whyLeftOut(stage_.name, stage_.scope).empty();
    const NodePart part = partOf(stage_, basis_.record.nodeRank, basis_.record.nodeCount);
    const bool blocks = part.kind == NodePart::Kind::kMember || part.blocks;
    if (stage_.required && !leftOut && ((blocks && !stored.required) || !record_.required))
      differ("it may be skipped, and must not by the plan");
    if (stored.allowFlaky && !stage_.allowFlaky) differ("it accepts flaky results, and must not by the plan");
  }

  [[nodiscard]] bool sameCases() const {
    return std::equal(
        stage_.cases.begin(), stage_.cases.end(), record_.cases.begin(), record_.cases.end(),
        [](const Case& a, const CaseRecord& b) { return a.id == b.id && a.params == b.params; });
  }

  void compareRun(const StageEvidence& stored) {
    const PluginSpec* plugin = basis_.catalog.plugin(stage_.plugin);
    const TestSpec* test = plugin == nullptr ? nullptr : plugin->test(stage_.test);
    if (test == nullptr) return differ("its test is not installed here");
    if (basis_.profile != nullptr)
      for (Case& c : stage_.cases)
        if (const Status set = applyStageParams(*basis_.profile, *test, stage_.plugin + "." + stage_.test, c);
            !set.ok())
          return differ(set.error().text());
    if (!sameCases()) differ("its cases and parameters are not those of plan and profile");
    const int ranks = compareEnds(stored);
    const bool cluster = stage_.scope == Scope::kCluster;
    StageEvidence derived =
        expectedEvidence(stage_, *plugin, *test, basis_.record.backend, ranks,
                         cluster ? groupNodes(stage_, basis_.record.nodeCount) : 1, basis_.profile);
    derived.ends = stored.ends;
    derived.measurements = stored.measurements;
    std::vector<std::string> ids;
    for (const Case& c : stage_.cases) ids.push_back(c.id);
    leaveOutUnmeasured(*plugin, *test, ids, derived);
    addTelemetry(derived);
    compareLimits(stage_.name, derived.expectations, stored.expectations, out_);
    if (derived.caseMetrics != stored.caseMetrics || derived.leaderMetrics != stored.leaderMetrics ||
        derived.findingLabels != stored.findingLabels)
      differ("the metrics that it had to report are not those of its test");
    if (derived.sweep != stored.sweep || derived.groupRanks != stored.groupRanks)
      differ("the sizes of its groups are not those of the plan");
    if (derived.caseLabels != stored.caseLabels)
      differ("the labels of its cases are not those of plan and profile");
  }

  /// Every case must have ended on every rank; returns the number of ranks of the group.
  int compareEnds(const StageEvidence& stored) {
    std::vector<RankSlot> slots = slotsFor(basis_.node.devices, stage_);
    const size_t all = slots.size();
    if (stage_.scope == Scope::kDevice) keepOnly(basis_.record.selection.devices, slots);
    if (stored.peersMissing != (slots.size() < all)) differ("`peers_missing` is not as its devices");
    int first = 0, ranks = static_cast<int>(slots.size());
    if (record_.group.is_object()) {
      JsonReader group(record_.group, "group");
      group.optional("first_rank", first);
      group.optional("world_size", ranks);
    }
    std::set<std::pair<std::string, int>> ended;
    for (const CaseEnd& end : stored.ends) ended.emplace(end.caseId, end.rank);
    for (const Case& c : stage_.cases)
      for (const RankSlot& slot : slots)
        if (!ended.contains({c.id, first + slot.rank}))
          differ(fmt::format("case {} has no result of rank {} ({})", c.id, first + slot.rank, slot.device));
    return ranks;
  }

  /// What is sampled beside a stage, with its limits, as StageTelemetry adds it.
  void addTelemetry(StageEvidence& derived) {
    const PluginSpec* env = basis_.catalog.plugin("env");
    const TestSpec* test = env == nullptr ? nullptr : env->test("telemetry");
    if (!StageTelemetry::watches(stage_) || test == nullptr) return;
    const std::string id = StageTelemetry::kCaseId;
    derived.caseMetrics[id] = metricsOn(*env, *test, basis_.record.backend);
    derived.caseLabels[id] = {};
    leaveOutUnmeasured(*env, *test, {id}, derived);
    StageEvidence beside;
    beside.caseMetrics[id] = derived.caseMetrics[id];
    std::vector<Expectation> limits = standingExpectations(*test, basis_.record.backend);
    if (basis_.profile != nullptr)
      for (Expectation& limit : profileExpectations(*basis_.profile, beside))
        limits.push_back(std::move(limit));
    derived.expectations.insert(derived.expectations.end(), limits.begin(), limits.end());
    const bool ended = std::any_of(derived.ends.begin(), derived.ends.end(),
                                   [&](const CaseEnd& end) { return end.caseId == id; });
    if (!ended) differ("its telemetry is missing");
  }

  const Basis& basis_;
  Stage stage_;
  const StageRecord& record_;
  std::vector<std::string>& out_;
};

NodeProgress progressOf(const Record& record, const Plan& plan, const Profile* profile) {
  NodeInventory inventory;
  inventory.facts = record.inventory.contains("devices") ? record.inventory : Json();
  NodeProgress node;
  node.profile = profile;
  useInventory(inventory, record.simulated, node);
  addNetworkPeaks(plan.network.rails, plan.network.railBandwidth, node.devices.size(), record.nodeCount,
                  node.judge.peaks);
  return node;
}

void comparePeaks(const Basis& basis, std::vector<std::string>& out) {
  const auto& derived = basis.node.judge.peaks;
  for (const auto& [name, value] : basis.record.peaks)
    if (const auto at = derived.find(name); at == derived.end() || at->second != value)
      out.push_back(fmt::format("peak {}: the record has {}, profile and plan have {}", name, value,
                                at == derived.end() ? "none" : fmt::format("{}", at->second)));
}

/// The inventory's own limits: how many devices there must be, and that all match the profile.
void compareInventory(const Basis& basis, const StageRecord& stage, std::vector<std::string>& out) {
  const auto stored = evidenceFromRecord(stage);
  if (!stored.ok() || stage.state != StageState::kRan) return;
  const bool taken = std::all_of(stored->ends.begin(), stored->ends.end(),
                                 [](const CaseEnd& end) { return end.state == CaseEnd::State::kOk; });
  if (!taken) return;  // it was not accepted without devices
  NodeInventory inventory;
  if (basis.record.inventory.contains("devices")) inventory.facts = basis.record.inventory;
  inventory.skuProblems = skuMismatches(inventory.devices(), basis.profile);
  StageEvidence derived;
  expectDevices(inventory, basis.profile, derived);
  for (const Expectation& limit : derived.expectations)
    if (std::none_of(stored->expectations.begin(), stored->expectations.end(),
                     [&](const Expectation& e) { return limitKey(e) == limitKey(limit); }))
      out.push_back(fmt::format("stage {}: limit {} is missing", stage.name, limitText(limitKey(limit))));
}

void compareSettings(const Basis& basis, std::vector<std::string>& out) {
  const Record& record = basis.record;
  const Plan& plan = basis.plan;
  const std::string backend = record.simulated ? "sim" : plan.backend;
  if (record.backend != backend)
    out.push_back(fmt::format("the backend is {}, of the plan {}", record.backend, backend));
  if (record.allowUnknownSku != plan.allowUnknownSku)
    out.emplace_back("`allow_unknown_sku` is not as in the plan");
  if (record.plan.name != plan.name)
    out.push_back(fmt::format("the plan's name is {}, the record says {}", plan.name, record.plan.name));
}

}  // namespace

std::vector<std::string> limitDifferences(const Record& record, const Plan& plan, const Profile* profile,
                                          const Catalog& catalog) {
  std::vector<std::string> out;
  const Basis basis{record, plan, profile, catalog, progressOf(record, plan, profile)};
  compareSettings(basis, out);
  comparePeaks(basis, out);
  for (std::string& line : inventoryDifferences(record, profile)) out.push_back(std::move(line));
  for (const StageRecord& stage : record.stages) {
    if (stage.name == kInventoryStage) compareInventory(basis, stage, out);
    const auto planned = std::find_if(plan.stages.begin(), plan.stages.end(),
                                      [&](const Stage& s) { return s.name == stage.name; });
    if (planned != plan.stages.end()) StageComparison(basis, *planned, stage, out).compare();
  }
  return out;
}

}  // namespace muster
