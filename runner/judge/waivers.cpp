// SPDX-License-Identifier: Apache-2.0
// See waivers.h: which verdicts a waiver covers, and what became of it.
#include "runner/judge/waivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runner/core/text.h"
#include "runner/metrics/renamed.h"

namespace muster {
namespace {

WaiverTarget targetOf(const Verdict& verdict, const WaivedNode& node) {
  const auto serial = node.serials.find(verdict.device);
  return {node.name,
          verdict.stage,
          verdict.metric,
          verdict.device,
          serial == node.serials.end() ? "" : serial->second,
          verdict.labels};
}

/// Whether a waiver is this node's business: named, or one of its parts is.
bool concerns(const Waiver& waiver, const WaivedNode& node) {
  if (!waiver.node.empty()) return waiver.node == node.name;
  return std::any_of(node.serials.begin(), node.serials.end(),
                     [&](const auto& entry) { return entry.second == waiver.serial; });
}

/// What the waivers of one stage are held against. Made once for all of them.
class StageNames {
 public:
  explicit StageNames(const StageVerdicts& stage) {
    for (const Verdict& verdict : *stage.verdicts) {
      if (!verdict.metric.empty()) addMetric(verdict);
      if (!verdict.device.empty() && known_.insert(verdict.device).second) devices_.push_back(verdict.device);
    }
  }

  /// What of a waiver's stage it did not find: the nearest thing that was there.
  [[nodiscard]] std::string nearestOf(const Waiver& waiver, const WaivedNode& node,
                                      Suggester& suggester) const {
    const auto labels = labels_.find(waiver.metric);
    if (labels == labels_.end())
      return fmt::format("the stage did not check {}{}", waiver.metric,
                         nameHint(waiver.metric, metrics_, suggester));
    if (!waiver.device.empty() && !known_.contains(waiver.device))
      return fmt::format("there is no device {}{}", waiver.device,
                         suggester.didYouMean(waiver.device, devices_));
    if (!waiver.serial.empty() && std::none_of(node.serials.begin(), node.serials.end(),
                                               [&](const auto& s) { return s.second == waiver.serial; }))
      return fmt::format("no device of this node has serial {}: was it replaced?", printable(waiver.serial));
    const std::string checked = labelsText(*labels->second);
    return fmt::format("no {} matches all its labels; one that was checked has {}", waiver.metric,
                       checked.empty() ? "no labels" : checked);
  }

 private:
  void addMetric(const Verdict& verdict) {
    const auto [labels, isNew] = labels_.emplace(verdict.metric, &verdict.labels);
    if (isNew) metrics_.push_back(verdict.metric);
    if (labels->second->empty()) labels->second = &verdict.labels;
  }

  std::vector<std::string> metrics_, devices_;        ///< each once, in the verdicts' order
  std::map<std::string_view, const Labels*> labels_;  ///< of the first verdict of each metric that has any
  std::set<std::string_view> known_;                  ///< devices
};

class UseOfOne {
 public:
  UseOfOne(const Waiver& waiver, const WaivedNode& node, const std::vector<StageVerdicts>& stages)
      : waiver_(waiver), node_(node) {
    if (!concerns(waiver_, node_)) {
      use_.detail = "it applies to another node";
      return;
    }
    for (const StageVerdicts& stage : stages)
      if (stage.ran && (waiver_.stage.empty() || stage.stage == waiver_.stage)) stages_.push_back(&stage);
    if (!stages_.empty()) return;
    use_.state = WaiverState::kUndecided;
    use_.detail =
        waiver_.stage.empty() ? "no stage ran here" : fmt::format("stage {} did not run here", waiver_.stage);
  }

  /// Whose verdicts it counts and is settled by; empty: it has its use without.
  [[nodiscard]] const std::vector<const StageVerdicts*>& stages() const { return stages_; }
  [[nodiscard]] const WaiverUse& use() const { return use_; }

  void count(const Verdict& verdict, const WaiverTarget& target) {
    if (verdict.outcome == Outcome::kError && aboutSamePlace(verdict)) ++errors_;
    if (!covers(waiver_, target)) return;
    ++matched_;
    if (verdict.outcome == Outcome::kWaived) ++use_.covered;
    if (verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kWarn) ++use_.passed;
  }

  void settle(const StageNames& names, Suggester& suggester) {
    if (use_.covered > 0) {
      use_.state = WaiverState::kApplied;
      use_.detail = fmt::format("covers {} failure{}", use_.covered, use_.covered == 1 ? "" : "s");
    } else if (use_.passed > 0 && use_.passed == matched_ && errors_ == 0) {
      use_.state = WaiverState::kUnexpectedPass;
      use_.detail =
          fmt::format("all {} it names met their limits; remove it, or narrow it to what fails", use_.passed);
    } else if (matched_ > 0 || errors_ > 0) {
      use_.state = WaiverState::kUndecided;
      use_.detail = errors_ > 0 ? "it names a metric without a result, which a waiver cannot cover"
                                : "the metric it names is not checked here";
    } else {
      use_.state = WaiverState::kUnmatched;
      use_.detail = waiver_.stage.empty()
                        ? fmt::format("no stage checked {} with its labels on the device with serial {}",
                                      waiver_.metric, printable(waiver_.serial))
                        : names.nearestOf(waiver_, node_, suggester);
    }
  }

 private:
  /// An error of a case or stage has no metric and fewer labels; it may be why nothing matched.
  [[nodiscard]] bool aboutSamePlace(const Verdict& verdict) const {
    if (!verdict.metric.empty() && verdict.metric != waiver_.metric) return false;
    return waiver_.device.empty() || verdict.device.empty() || verdict.device == waiver_.device;
  }

  const Waiver& waiver_;
  const WaivedNode& node_;
  std::vector<const StageVerdicts*> stages_;
  WaiverUse use_;
  size_t matched_ = 0;
  size_t errors_ = 0;
};

}  // namespace

std::string Waiver::text() const {
  std::string text = fmt::format("{}{}{} on", stage, stage.empty() ? "" : " ", metric);
  for (const std::string& part : {node, device}) text += part.empty() ? "" : " " + part;
  if (!serial.empty()) text += " serial " + serial;
  if (!where.empty()) text += fmt::format(" ({})", labelsText(where));
  return text;
}

bool covers(const Waiver& waiver, const WaiverTarget& target) {
  const auto same = [](const std::string& wanted, const std::string& found) {
    return wanted.empty() || wanted == found;
  };
  return same(waiver.stage, target.stage) && waiver.metric == target.metric &&
         same(waiver.node, target.node) && same(waiver.device, target.device) &&
         same(waiver.serial, target.serial) && labelsMatch(target.labels, waiver.where);
}

const Waiver* coveringWaiver(const std::vector<Waiver>& waivers, const WaiverTarget& target) {
  const auto found =
      std::find_if(waivers.begin(), waivers.end(), [&](const Waiver& w) { return covers(w, target); });
  return found == waivers.end() ? nullptr : &*found;
}

void applyWaivers(const std::vector<Waiver>& waivers, const WaivedNode& node, std::vector<Verdict>& verdicts,
                  Accounting& accounting) {
  for (Verdict& verdict : verdicts) {
    if (verdict.outcome != Outcome::kFail && verdict.outcome != Outcome::kFlaky) continue;
    const Waiver* waiver = coveringWaiver(waivers, targetOf(verdict, node));
    if (waiver == nullptr) continue;
    --accounting.counts[static_cast<size_t>(verdict.outcome)];
    ++accounting.counts[static_cast<size_t>(Outcome::kWaived)];
    verdict.detail += fmt::format("; {}, waived: {} (approved by {}, until {})", outcomeName(verdict.outcome),
                                  waiver->reason, waiver->approver, waiver->expires);
    verdict.outcome = Outcome::kWaived;
  }
}

std::vector<WaiverUse> waiverUses(const std::vector<Waiver>& waivers, const WaivedNode& node,
                                  const std::vector<StageVerdicts>& stages) {
  std::vector<UseOfOne> all;
  all.reserve(waivers.size());
  std::map<const StageVerdicts*, std::vector<UseOfOne*>> byStage;
  for (const Waiver& waiver : waivers) {
    UseOfOne& one = all.emplace_back(waiver, node, stages);
    for (const StageVerdicts* stage : one.stages()) byStage[stage].push_back(&one);
  }
  Suggester suggester;
  for (const auto& [stage, ofStage] : byStage) {
    for (const Verdict& verdict : *stage->verdicts) {
      const WaiverTarget target = targetOf(verdict, node);
      for (UseOfOne* one : ofStage) one->count(verdict, target);
    }
  }
  for (const auto& [stage, ofStage] : byStage) {
    const StageNames names(*stage);
    for (UseOfOne* one : ofStage)
      if (one->stages().back() == stage) one->settle(names, suggester);
  }
  std::vector<WaiverUse> uses;
  for (const UseOfOne& one : all) uses.push_back(one.use());
  return uses;
}

}  // namespace muster
