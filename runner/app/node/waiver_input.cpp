// SPDX-License-Identifier: Apache-2.0
// Reads waivers, checks them against the plan, and applies them at the end.
#include "runner/app/node/waiver_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/app/node/node_inventory.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr uint64_t kMaxBytes = 1ull << 20;

std::vector<std::string> metricNames(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const auto& [plugin, spec] : catalog.plugins)
    for (const TestSpec& test : spec.tests)
      for (const MetricSpec& metric : test.metrics) names.push_back(plugin + "." + metric.name);
  return names;
}

WaiverRecord recordOf(const Waiver& waiver, const WaiverUse& use) {
  return {waiver.stage, waiver.metric, waiver.where,    waiver.device,  waiver.serial,
          waiver.node,  waiver.reason, waiver.approver, waiver.expires, waiver.at,
          use.state,    use.covered,   use.detail};
}

}  // namespace

Result<Waivers> readWaivers(const std::filesystem::path& path, double now) {
  auto text = readFile(path, kMaxBytes);
  if (!text.ok()) return Error{ErrorCode::kUsage, "--waivers: " + text.error().message, path.string()};
  MUSTER_TRY(Waivers waivers, parseWaivers(*text, path.string(), now));
  waivers.sha256 = sha256Hex(*text);
  return waivers;
}

Result<Waivers> waiversOf(const Json& frozen) {
  std::string path, text;
  double started = 0;
  JsonReader reader(frozen, "journal.jsonl:1");
  reader.optional("waivers_path", path);
  reader.optional("waivers_text", text);
  reader.read("started", started);
  MUSTER_CHECK_OK(reader.status());
  if (path.empty()) return Waivers{};
  MUSTER_TRY(Waivers waivers, parseWaivers(text, path, started));
  waivers.sha256 = sha256Hex(text);
  return waivers;
}

Status checkAgainstPlan(const Waivers& waivers, const Plan& plan, const Catalog& catalog) {
  std::vector<std::string> stages = {kInventoryStage};
  for (const Stage& stage : plan.stages) stages.push_back(stage.name);
  const std::vector<std::string> metrics = metricNames(catalog);
  std::vector<std::string> mistakes;
  for (const Waiver& waiver : waivers.list) {
    if (!waiver.stage.empty() && std::count(stages.begin(), stages.end(), waiver.stage) == 0)
      mistakes.push_back(fmt::format("{}: plan {} has no stage \"{}\"{}", waiver.at, plan.name,
                                     printable(waiver.stage, 80), didYouMean(waiver.stage, stages)));
    if (std::count(metrics.begin(), metrics.end(), waiver.metric) == 0)
      mistakes.push_back(fmt::format("{}: no plugin has a metric \"{}\"{}", waiver.at,
                                     printable(waiver.metric, 80), didYouMean(waiver.metric, metrics)));
  }
  if (mistakes.empty()) return {};
  return Error{ErrorCode::kUsage, join(mistakes, "\n"), ""};
}

WaivedNode waivedNode(const Record& record) {
  WaivedNode node;
  node.name = record.node;
  if (!record.inventory.is_object() || !record.inventory.contains("devices")) return node;
  for (const Json& device : record.inventory["devices"]) {
    JsonReader reader(device, "inventory.devices");
    std::string id, serial;
    reader.optional("id", id);
    reader.optional("serial", serial);
    if (reader.ok() && !id.empty() && !serial.empty()) node.serials[id] = serial;
  }
  return node;
}

std::optional<StageOutcome> settleWaivers(Record& record, const Waivers& waivers) {
  record.waivers.clear();
  record.waiverFile = {"", waivers.path, waivers.sha256, waivers.text};
  if (waivers.sha256.empty()) return std::nullopt;
  std::vector<StageVerdicts> stages;
  for (const StageRecord& stage : record.stages)
    stages.push_back({stage.name, stage.state == StageState::kRan, &stage.verdicts});
  std::vector<WaiverUse> uses = waiverUses(waivers.list, waivedNode(record), stages);
  // What it names may be on a device that took no part.
  if (!record.selection.devices.empty())
    for (WaiverUse& use : uses)
      if (use.state == WaiverState::kUnmatched) {
        use.state = WaiverState::kUndecided;
        use.detail = "this partial run left out other devices";
      }
  StageEvidence evidence;
  evidence.stage = kWaiverStage;
  for (size_t i = 0; i < uses.size(); ++i) {
    const Waiver& waiver = waivers.list[i];
    record.waivers.push_back(recordOf(waiver, uses[i]));
    if (uses[i].state == WaiverState::kUnmatched)
      evidence.ends.push_back(
          {fmt::format("waiver {}", i + 1), 0, "", 1, CaseEnd::State::kError,
           fmt::format("{}: this waiver matches nothing: {}; {}", waiver.at, waiver.text(), uses[i].detail),
           "Correct or remove the waiver: a waiver that matches nothing has no effect"});
  }
  if (evidence.ends.empty()) return std::nullopt;
  StageOutcome outcome;
  outcome.record.name = kWaiverStage;
  outcome.record.scope = Scope::kNode;
  outcome.accounting = judgeInto(outcome.record, evidence, {});
  return outcome;
}

}  // namespace muster
