// SPDX-License-Identifier: Apache-2.0
// See import_limits.h.
#include "runner/app/input/import_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/physical.h"

namespace muster {
namespace {

constexpr const char* kDevices = "imported.devices";
constexpr const char* kLimitsCase = "limits";
constexpr const char* kNoLimit =
    "no limit of profile or plan covers a value of this file, and the tool's own verdict is no measurement";
constexpr const char* kToolJudges = "the tool judges ";
constexpr const char* kHere = "; Muster: ";
constexpr const char* kExcess = ", above what this SKU can do (";

/// One GPU in place of eight measures something else: every device of the SKU's nodes must take part.
void expectDevices(const Profile& profile, StageEvidence& evidence) {
  const auto counts = [](const auto& entry) { return entry.second.contains(kDevices); };
  const auto& cases = evidence.caseMetrics;
  if (profile.deviceCount == 0 || std::none_of(cases.begin(), cases.end(), counts)) return;
  Expectation all;
  all.metric = kDevices;
  all.kind = CheckKind::kEquals;
  all.unit = "count";
  all.limit = static_cast<double>(profile.deviceCount) * importedNodes(evidence);
  all.origin = "profile " + profile.name;
  all.source = fmt::format("profile {}: {} devices per node", profile.name, profile.deviceCount);
  all.remedy = "Run the tool on all devices of each node";
  evidence.expectations.push_back(std::move(all));
}

constexpr double kRoom = 1.1;     // above a physical limit: clocks may exceed those of a datasheet's peak
constexpr double kMostTimes = 3;  // the profile's own baseline, where it has no physical limit

/// Why a rate is more than the profile's devices can do, as one in another unit is; empty: it is not.
std::string excessOf(const Profile& profile, const Measurement& m) {
  if (m.samples.empty() || m.direction != Direction::kHigher || !m.unit.ends_with("/s")) return "";
  LearnGroup group{"", m.metric, m.labels, m.unit, m.direction, m.peak, {}};
  group.where["nodes"] = "1";  // with other nodes no device exchanges more
  PhysicalLimit limit = physicalLimit(group, profile);
  limit.most *= kRoom;
  if (limit.most <= 0)  // a floor (`min`) may lie far below what is usual: only a baseline says what that is
    for (const Expectation& e : profile.expectations)
      if (e.metric == m.metric && e.kind == CheckKind::kBaseline && labelsMatch(m.labels, e.where) &&
          kMostTimes * e.limit > limit.most)
        limit = {kMostTimes * e.limit,
                 fmt::format("{} times the baseline of profile {}", kMostTimes, profile.name)};
  const double value = *std::max_element(m.samples.begin(), m.samples.end());
  if (limit.most <= 0 || value <= limit.most) return "";
  return fmt::format("{} {} is {}{}{}): check the unit", m.metric, labelsText(m.labels),
                     formatQuantity(value, m.unit), kExcess, limit.source);
}

/// A rank with a value in another unit has no result.
void checkUnits(const Profile* profile, StageEvidence& evidence) {
  for (CaseEnd& end : evidence.ends)
    if (end.message.find(kExcess) != std::string::npos &&
        std::any_of(evidence.measurements.begin(), evidence.measurements.end(), [&](const Measurement& m) {
          return end.caseId == m.caseId && end.rank == m.rank && end.message.starts_with(m.metric + " ");
        })) {
      end.state = CaseEnd::State::kOk;
      end.message.clear();
    }
  if (profile == nullptr) return;
  for (const Measurement& m : evidence.measurements)
    if (const std::string why = excessOf(*profile, m); !why.empty())
      for (CaseEnd& end : evidence.ends)
        if (end.caseId == m.caseId && end.rank == m.rank && end.state == CaseEnd::State::kOk) {
          end.state = CaseEnd::State::kError;
          end.message = why;
        }
}

/// What a tool says of itself, and of how much it ran on.
const std::set<std::string> kToolsWord = {"imported.tool_failures", "imported.tool_verdict",
                                          "imported.test_passed", kDevices};

/// What a tool says of itself is no measurement: without a value that a limit covers there is no evidence.
void requireLimits(StageEvidence& evidence) {
  std::erase_if(evidence.ends, [](const CaseEnd& end) { return end.message == kNoLimit; });
  std::erase_if(evidence.caseMetrics,
                [](const auto& entry) { return entry.first == kLimitsCase && entry.second.empty(); });
  const auto& all = evidence.expectations;
  if (std::any_of(all.begin(), all.end(), [](const Expectation& e) {
        return e.origin != "standing" && !kToolsWord.contains(e.metric);
      }))
    return;
  evidence.caseMetrics[kLimitsCase];
  evidence.ends.push_back({kLimitsCase, 0, "", 1, CaseEnd::State::kError, kNoLimit,
                           "Name the profile with --sku, a plan with --plan, or import measured values"});
}

}  // namespace

int importedNodes(const StageEvidence& evidence) {
  constexpr int kMostNodes = 65536;
  int most = 1;
  for (const auto& [id, labels] : evidence.caseLabels)
    if (const auto label = labels.find("nodes"); label != labels.end()) {
      int nodes = 1;
      std::from_chars(label->second.data(), label->second.data() + label->second.size(), nodes);
      if (id == kToolCase) return std::clamp(nodes, 1, kMostNodes);
      most = std::clamp(nodes, most, kMostNodes);
    }
  return most;
}

void applyImportLimits(const Profile* profile, StageEvidence& evidence) {
  checkUnits(profile, evidence);
  if (profile != nullptr) expectDevices(*profile, evidence);
  // A tool gives one value where Muster has a series.
  std::erase_if(evidence.expectations, [](const Expectation& e) { return e.comparesStability(); });
  requireLimits(evidence);
}

Status checkDeviceNames(const Profile& profile, const std::vector<std::string>& names,
                        const std::string& subject, const std::string& where) {
  if (profile.match.names.empty()) return {};
  for (const std::string& name : names)
    if (!contains(profile.match.names, name))
      return Error{ErrorCode::kUsage,
                   fmt::format("{} is about \"{}\"; profile {} is for {}", subject, printable(name, 80),
                               profile.name, join(profile.match.names, ", ")),
                   where};
  return {};
}

bool isGood(Outcome outcome) {
  return outcome == Outcome::kPass || outcome == Outcome::kWarn;
}

std::string differenceText(const std::string& limits, const StageRecord& stage) {
  const auto blocking = std::find_if(stage.verdicts.begin(), stage.verdicts.end(),
                                     [&](const Verdict& v) { return v.outcome == stage.outcome; });
  const std::string why = blocking == stage.verdicts.end() ? "" : blocking->detail;
  return printable(kToolJudges + limits + kHere + why, 900);
}

void compareAgain(const StageRecord& stage, Outcome before, ImportedRecord& item) {
  const size_t here = item.differs.find(kHere), begin = std::string_view(kToolJudges).size();
  if (here == std::string::npos || here < begin) return;
  item.differs = isGood(stage.outcome) == isGood(before)
                     ? differenceText(item.differs.substr(begin, here - begin), stage)
                     : "";  // both agree
}

}  // namespace muster
