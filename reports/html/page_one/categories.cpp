// SPDX-License-Identifier: Apache-2.0
// Sorts metrics into categories by their names.
#include "reports/html/page_one/categories.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace muster {
namespace {

using Words = std::vector<const char*>;

bool holds(const std::string& text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

const Words kStabilityWords = {"sustained", "drift", "throttle", "mismatches", "stability"};
const Words kLinkWords = {"nvlink",
                          "pcie",
                          "hca",
                          "fabric",
                          "sxid",
                          "rdma",
                          "peer",
                          "host_copy",
                          "host_to_device",
                          "device_to_host",
                          "host_bidirectional"};

Category byPlugin(const std::string& plugin) {
  if (plugin == "compute" || plugin == "train") return Category::kCompute;
  if (plugin == "memory") return Category::kMemory;
  const bool link = plugin == "collective" || plugin == "ring" || plugin == "rdma";
  return link ? Category::kLinks : Category::kHealth;
}

bool hasMargin(const Verdict& verdict) {
  if (verdict.outcome != Outcome::kPass || !verdict.expectation || !std::isfinite(verdict.margin))
    return false;
  const std::string& unit = verdict.expectation->unit;
  return unit != "count" && unit != "bool" && unit != "text";
}

}  // namespace

Category categoryOf(const StageRecord& stage, const Verdict& verdict) {
  const std::string name = verdict.metric.empty() ? stage.plugin + "." + stage.test : verdict.metric;
  if (verdict.expectation && verdict.expectation->comparesStability()) return Category::kStability;
  if (holds(name, kStabilityWords)) return Category::kStability;
  if (holds(name, kLinkWords)) return Category::kLinks;
  return byPlugin(name.substr(0, name.find('.')));
}

std::vector<NearestCheck> nearestChecks(const Record& record) {
  std::map<std::string, NearestCheck> nearest;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts) {
      if (!hasMargin(verdict)) continue;
      NearestCheck& found = nearest[verdict.metric];
      if (found.verdict == nullptr || verdict.margin < found.verdict->margin) found = {&stage, &verdict};
    }
  std::vector<NearestCheck> checks;
  for (const auto& [metric, check] : nearest) checks.push_back(check);
  std::stable_sort(checks.begin(), checks.end(), [](const NearestCheck& a, const NearestCheck& b) {
    return a.verdict->margin < b.verdict->margin;
  });
  return checks;
}

std::string metricWords(const std::string& metric) {
  std::string words = metric.substr(metric.find('.') + 1);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace muster
