// SPDX-License-Identifier: Apache-2.0
// See stage_reader.h: the stage itself. Its measurements are in measurement_reader.cpp, its verdicts in
// verdict_reader.cpp.
#include "reports/fleet/read/stage_reader.h"

#include <algorithm>
#include <array>

#include "reports/fleet/read/cause.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"

namespace muster::fleet {
namespace {

constexpr size_t kNameBytes = 200;
constexpr size_t kLimitBytes = 4000;
constexpr size_t kMostRanks = 10'000;  ///< attempts counted one by one
constexpr size_t kMostAround = 32;     ///< nodes that a record names around its own
/// Keys of an expectation that say what it is about, and those that decide nothing: its source, remedy and
/// line.
constexpr std::array<std::string_view, 6> kAbout = {"metric", "where", "kind", "unit", "peers", "statistic"};
constexpr std::array<std::string_view, 4> kTold = {"source", "remedy", "origin", "at"};

/// Texts and numbers are by far the most; minify() is slow.
void appendValue(std::string& out, const dom::element& value) {
  std::string_view text;
  double number = 0;
  if (value.get_string().get(text) == simdjson::SUCCESS)
    out.append(text);
  else if (value.get_double().get(number) == simdjson::SUCCESS)
    fmt::format_to(std::back_inserter(out), "{}", number);
  else
    out += simdjson::minify(value);
}

}  // namespace

uint32_t StageReader::text(std::string_view text) {
  const auto at = knownTexts_.find(text);
  if (at != knownTexts_.end()) return at->second;
  const uint32_t number = names_.text(text);
  knownTexts_.emplace(text, number);
  knownBytes_ += text.size();
  return number;
}

void StageReader::begin(NodeSummary& node) {
  node_ = &node;
  counted_ = {};
  waivers_.begin(node);
  flakyAllowed_ = true;
  told_.clear();
  toldOtherwise_ = false;
  measurements_ = verdicts_ = 0;
  samples_ = 0;
  unfolded_ = keyBytes_ = compared_ = 0;
  figures_.clear();
  deferredKeys_.clear();
  // Serial numbers and other texts of one record alone must not gather here for the whole fleet.
  constexpr size_t kMostKnown = 50'000;
  constexpr size_t kMostKnownBytes = 8u << 20;
  if (knownTexts_.size() + knownKeys_.size() <= kMostKnown && knownBytes_ <= kMostKnownBytes) return;
  knownTexts_.clear();
  knownKeys_.clear();
  knownBytes_ = 0;
}

void StageReader::noteWaivers(const dom::object& record) {
  ownWaivers_.clear();
  dom::array list;
  if (record.at_pointer("/waivers/list").get(list) != simdjson::SUCCESS) return;
  for (const dom::element item : list) {
    std::string_view stage, metric;
    uint64_t covered = 0;
    if (item["stage"].get(stage) == simdjson::SUCCESS && item["metric"].get(metric) == simdjson::SUCCESS &&
        item["covered"].get(covered) == simdjson::SUCCESS && covered > 0)
      ownWaivers_.emplace(stage, metric);
  }
}

void StageReader::read(const dom::object& stage, bool accepted) {
  failures_.at(fmt::format("stages[{}]", node_->stages.size()));
  Fields fields(stage, failures_);
  StageSummary summary;
  stage_ = fields.text("name");
  if (stage_.empty() || stage_.size() > kNameBytes || stage_.find_first_of("/\\") != std::string::npos)
    failures_.fail("name", fmt::format("\"{}\" is not a stage name", printable(stage_, 80)));
  stageNumber_ = summary.name = text(stage_);
  summary.scope = fields.named<Scope>("scope");
  summary.state = fields.named<StageState>("state");
  summary.reason = boundedCause(fields.text("reason"));
  summary.required = fields.flag("required");
  const auto outcome = outcomeFromName(fields.text("outcome"));
  if (outcome.ok())
    summary.outcome = *outcome;
  else
    failures_.fail("outcome", outcome.error().message);
  if (node_->stages.empty()) {  // now its devices are known
    waivers_.begin(*node_);
    listed_ = node_->devices.size();
  }
  waivers_.beginStage(stage_, summary.state == StageState::kRan);
  scope_ = summary.scope;
  readGroup(stage, summary);
  readRanks(fields.array("ranks"), summary);
  checkArtifacts(fields.array("artifacts"));
  metrics_.clear();
  programs_.clear();
  firstFaults_.clear();
  dom::array expectations = nothing<dom::array>();
  const dom::object evidence = fields.object("evidence");
  accepted_ = accepted;
  if (evidence.at_key("allow_flaky").get(allowsFlaky_) != simdjson::SUCCESS) allowsFlaky_ = false;
  readExpectations(evidence);
  readMeasurements(fields.array("measurements"), accepted);
  const std::string programs = join({programs_.begin(), programs_.end()}, ", ");
  summary.program = text(programs.size() <= kLimitBytes
                             ? programs
                             : fmt::format("{} programs (sha256 {})", programs_.size(), sha256Hex(programs)));
  readLeaderMetrics(evidence);
  readCancelledCases(evidence);
  if (failures_.ok()) {
    // Without expectations no verdict may point at one: readVerdict says so.
    const auto missing = evidence.at_key("expectations").get(expectations);
    if (missing == simdjson::SUCCESS || missing == simdjson::NO_SUCH_FIELD) {
      readLimits(stage, missing == simdjson::SUCCESS ? &expectations : nullptr, summary);
      readVerdicts(fields.array("verdicts"), expectations, summary);
      summary.unmeasured = !cases_.empty() && std::all_of(cases_.begin(), cases_.end(),
                                                          [](const auto& one) { return one.second; });
      checkAsked();
    } else
      failures_.fail("evidence.expectations", "must be a list");
  }
  if (accepted && summary.state == StageState::kRan && failures_.ok())
    node_->doubtful = node_->doubtful || lacksMeasurements(evidence, summary);
  // As record_check.h has it. Waivers cover no errors.
  if (failures_.ok() && !summary.culprit.empty() && summary.accounting.of(Outcome::kError) == 0)
    failures_.fail("group.culprit",
                   "edited or truncated: a faulty component is named, but the stage has no error");
  settleStage(summary);
  node_->stages.push_back(std::move(summary));
}

void StageReader::settleStage(StageSummary& summary) {
  if (!failures_.ok()) return;
  if (allowsFlaky_)
    node_->allowedFlaky += summary.accounting.of(Outcome::kFlaky);
  else if (summary.accounting.of(Outcome::kFlaky) > 0)
    flakyAllowed_ = false;
  if (!waivers_.concernsStage()) return;
  summary.outcome = Outcome::kPass;
  for (int i = kOutcomeCount - 1; i >= 0; --i)
    if (summary.accounting.counts[i] > 0) summary.outcome = static_cast<Outcome>(i);
}

void StageReader::readLimits(const dom::object& stage, const dom::array* expectations,
                             StageSummary& summary) {
  Fields fields(stage, failures_);
  std::string_view sha256;
  summary.plugin = text(fields.text("plugin"));
  const std::string version = bounded(fields.text("plugin_version"), kNameBytes);
  if (stage.at_key("plugin_sha256").get(sha256) != simdjson::SUCCESS) sha256 = "";
  summary.library = text(version.empty() || sha256.empty() ? version : version + " " + std::string(sha256));
  if (expectations == nullptr || !failures_.ok()) return;
  for (const dom::element item : *expectations) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return failures_.fail("evidence.expectations", "has an entry that is not an object");
    std::string about, limit;
    for (const auto& [key, value] : object) {
      const auto isOneOf = [name = key](const auto& list) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      if (isOneOf(kTold)) continue;
      std::string& part = isOneOf(kAbout) ? about : limit;
      part.append(part.empty() ? "" : " ").append(key).append("=");
      appendValue(part, value);
    }
    summary.limits.push_back({text(bounded(about, kLimitBytes)), text(bounded(limit, kLimitBytes))});
  }
}

void StageReader::readGroup(const dom::object& stage, StageSummary& summary) {
  culprit_.clear();
  causes_.clear();
  summary.groupId = text("");
  dom::object group;
  if (stage.at_key("group").get(group) != simdjson::SUCCESS) return;
  Fields fields(group, failures_);
  summary.worldSize = fields.count("world_size");
  summary.groupNodes = fields.count("nodes");
  culprit_ = fields.text("culprit");
  if (fields.has("id")) summary.groupId = text(bounded(fields.text("id"), kNameBytes));
  if (fields.has("around")) readAround(fields.array("around"), summary);
  summary.culprit = boundedCause(culprit_);
}

void StageReader::readAround(const dom::array& around, StageSummary& summary) {
  if (around.size() > kMostAround)
    return failures_.fail("group.around", fmt::format("lists more than {} nodes", kMostAround));
  for (const dom::element item : around) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      failures_.fail("group.around", "has an entry that is not an object");
    if (!failures_.ok()) return;
    Fields fields(object, failures_);
    NodeAround one;
    one.number = fields.count("node_rank");
    one.firstRank = fields.count("first_rank");
    one.ranks = fields.count("ranks");
    const std::string_view node = fields.text("node");
    const auto same = [&](const NodeAround& known) { return known.number == one.number; };
    if (std::any_of(summary.around.begin(), summary.around.end(), same))
      failures_.fail("group.around", fmt::format("names node {} twice", one.number));
    else if (!isPlainName(node))
      failures_.fail("group.around", fmt::format("\"{}\" is not a node name", printable(node, 80)));
    if (!failures_.ok()) return;
    one.node = text(node);
    summary.around.push_back(one);
  }
}

/// Their last attempt counts, as it does for verdicts.
void StageReader::readRanks(const dom::array& ranks, StageSummary& summary) {
  stopped_.clear();
  if (ranks.size() > kMostRanks)
    return failures_.fail("ranks", fmt::format("the stage lists more than {}", kMostRanks));
  for (const dom::element item : ranks) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS) failures_.fail("ranks", "has an entry that is not an object");
    if (!failures_.ok()) return;
    Fields fields(object, failures_);
    const int rank = fields.count("rank");
    const bool cancelled = fields.named<RankOutcome>("state") == RankOutcome::kCancelled;
    const int16_t device = deviceIndex(fields.text("device"));
    if (!failures_.ok()) return;
    if (cancelled)
      stopped_.insert(rank);
    else
      stopped_.erase(rank);
    const auto same = [&](const auto& known) { return known.first == rank; };
    if (ofGroup() && std::none_of(summary.ranks.begin(), summary.ranks.end(), same))
      summary.ranks.emplace_back(rank, device);
  }
}

void StageReader::readLeaderMetrics(const dom::object& evidence) {
  leaderMetrics_.clear();
  dom::array metrics;
  if (!failures_.ok() || evidence.at_key("leader_metrics").get(metrics) != simdjson::SUCCESS) return;
  for (const dom::element item : metrics) {
    std::string_view metric;
    if (item.get(metric) != simdjson::SUCCESS)
      return failures_.fail("evidence.leader_metrics", "must be texts");
    leaderMetrics_.emplace(metric);
  }
}

void StageReader::readCancelledCases(const dom::object& evidence) {
  cancelledCases_.clear();
  dom::array ends;
  if (!failures_.ok() || evidence.at_key("ends").get(ends) != simdjson::SUCCESS) return;
  for (const dom::element item : ends) {
    std::string_view cause, id;
    if (item["cause"].get(cause) == simdjson::SUCCESS && cause == "cancelled" &&
        item["case"].get(id) == simdjson::SUCCESS)
      cancelledCases_.emplace(id);
  }
}

void StageReader::checkArtifacts(const dom::array& artifacts) {
  for (const dom::element item : artifacts) {
    std::string_view path;
    if (item["path"].get(path) != simdjson::SUCCESS)
      failures_.fail("artifacts", "holds an artifact without a path");
    else if (!isSafeRelativePath(path))
      failures_.fail("artifacts",
                     fmt::format("the path \"{}\" leaves the record's folder", printable(path, 80)));
    if (!failures_.ok()) return;
  }
}

int16_t StageReader::deviceIndex(std::string_view id) {
  if (id.empty()) return -1;
  for (size_t i = 0; i < node_->devices.size(); ++i)
    if (node_->devices[i].id == id) return static_cast<int16_t>(i);
  if (node_->devices.size() >= limits_.devices) {
    failures_.fail("device", fmt::format("the record names more than {} devices", limits_.devices));
    return -1;
  }
  // A device that the inventory does not list (a NUMA node, an HCA): still one of its own.
  DeviceIdentity device;
  device.id = bounded(id, kNameBytes);
  device.kind = "other";
  node_->devices.push_back(std::move(device));
  return static_cast<int16_t>(node_->devices.size() - 1);
}

}  // namespace muster::fleet
