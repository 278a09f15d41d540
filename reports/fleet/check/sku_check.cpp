// SPDX-License-Identifier: Apache-2.0
// See sku_check.h: SKUs. The limits are in limits_check.cpp.
#include "reports/fleet/check/sku_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "reports/fleet/check/record_finding.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/metrics/measurement.h"

namespace muster::fleet {
namespace {

constexpr double kMemoryRoom = 0.02;  ///< drivers keep a varying part for themselves
constexpr const char* kMemoryFact = "memory_bytes";

/// Nodes by a value of theirs.
using Shares = std::map<std::string, std::vector<size_t>>;

/// The value of the most nodes, or an empty text where several have equally many.
std::string majorityOf(const Shares& shares) {
  std::string best;
  size_t most = 0;
  bool tie = false;
  for (const auto& [value, nodes] : shares) {
    tie = nodes.size() == most || (tie && nodes.size() < most);
    if (nodes.size() <= most) continue;
    most = nodes.size();
    best = value;
    tie = false;
  }
  return tie ? "" : best;
}

class SkuCheck {
 public:
  SkuCheck(const FleetRecords& records, const FleetOptions& options, const FleetRun& run, FleetNodes& nodes)
      : records_(records), options_(options), run_(run), nodes_(nodes) {}

  RecordChecks check() {
    planSku_ = planSku();
    expect();
    compareSkus();
    std::map<std::string, std::vector<size_t>> alike;
    for (size_t n = 0; n < nodes_.size(); ++n)
      if (const FleetNode& node = nodes_[n]; !node.records.empty() && node.sku == node.expectedSku)
        alike[node.sku].push_back(n);
    for (const auto& [sku, nodes] : alike) {
      compareModels(sku, nodes);
      compareMemory(nodes);
    }
    return std::move(checks_);
  }

 private:
  [[nodiscard]] std::string said(size_t n) const {
    if (!options_.expected[n].sku.empty()) return options_.expected[n].sku;
    if (options_.pinnedProfiles.contains(nodes_[n].sku)) return nodes_[n].sku;
    if (!options_.pinnedProfiles.empty()) return options_.pinnedProfiles.begin()->first;
    return planSku_;
  }

  /// The SKU that the plan, or `--set sku=NAME`, names; empty where no node is of it: --sku took its place,
  /// which is noted.
  [[nodiscard]] std::string planSku() {
    std::string sku;
    if (const auto at = options_.planSkus.find(run_.planSha256); at != options_.planSkus.end())
      sku = at->second;
    for (const std::string& change : run_.overrides)
      if (change.starts_with("sku=")) sku = change.substr(4);
    const bool used = std::any_of(nodes_.begin(), nodes_.end(), [&](const FleetNode& node) {
      return !node.records.empty() && node.sku == sku;
    });
    if (!used && !sku.empty() && sku != "auto")
      checks_.notes.push_back(fmt::format(
          "the plan names SKU {}, and no node was judged by it: --sku took its place", printable(sku, 80)));
    return used ? sku : "";
  }

  void expect() {
    Shares open;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].expectedSku = said(n);
      if (!nodes_[n].records.empty() && nodes_[n].expectedSku.empty()) open[nodes_[n].sku].push_back(n);
    }
    if (open.empty()) return;
    const std::string majority = majorityOf(open);
    for (const auto& [sku, nodes] : open)
      for (const size_t n : nodes) nodes_[n].expectedSku = majority;
    if (majority.empty()) return undecided(open);
    majority_ = fmt::format("as {} of {} nodes are", open[majority].size(), total(open));
    agree_ = open[majority].size();
    odd_ = total(open) - agree_;
  }

  static size_t total(const Shares& shares) {
    size_t sum = 0;
    for (const auto& [value, nodes] : shares) sum += nodes.size();
    return sum;
  }

  [[nodiscard]] std::vector<std::string> namesOf(const std::vector<size_t>& nodes) const {
    std::vector<std::string> names;
    names.reserve(nodes.size());
    for (const size_t n : nodes) names.push_back(nodes_[n].name);
    return names;
  }

  void add(FindingKind kind, std::string text, const char* next, const std::vector<size_t>& nodes,
           NodeState state) {
    RecordFinding finding;
    finding.kind = kind;
    finding.text = std::move(text);
    finding.next = next;
    checks_.findings.push_back(settled(std::move(finding), nodes, state, records_, nodes_));
  }

  void undecided(const Shares& open) {
    std::vector<std::string> parts;
    std::vector<size_t> all;
    for (const auto& [sku, nodes] : open) {
      parts.push_back(fmt::format("{} ({})", printable(sku, 80), shortNames(namesOf(nodes))));
      all.insert(all.end(), nodes.begin(), nodes.end());
    }
    add(FindingKind::kSku,
        fmt::format("the nodes have several SKUs without a majority: {}", join(parts, ", ")), kSayWhich, all,
        NodeState::kIncomplete);
  }

  void compareSkus() {
    std::map<std::pair<std::string, std::string>, std::vector<size_t>> wrong;
    std::vector<size_t> unseen;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const FleetNode& node = nodes_[n];
      if (node.records.empty() || node.expectedSku.empty() || node.sku == node.expectedSku) continue;
      if (sawNoDevice(node))
        unseen.push_back(n);
      else
        wrong[{node.sku, node.expectedSku}].push_back(n);
    }
    for (const auto& [skus, nodes] : wrong) {
      const bool byMajority = said(nodes.front()).empty();
      add(FindingKind::kSku,
          fmt::format("wrong SKU: {} {} {}, expected {}{}", shortNames(namesOf(nodes)),
                      nodes.size() == 1 ? "is of" : "are of", printable(skus.first, 80),
                      printable(skus.second, 80), byMajority ? ", " + majority_ : ""),
          kSayWhich, nodes, byMajority ? stateOfOdd(agree_, odd_) : NodeState::kRejected);
    }
    if (!unseen.empty())
      add(FindingKind::kSku, fmt::format("unknown SKU: no device found on {}", shortNames(namesOf(unseen))),
          "Check why its inventory is missing, and rerun the plan there", unseen, NodeState::kIncomplete);
  }

  /// An interrupted run may end before its inventory: that is no other SKU.
  [[nodiscard]] bool sawNoDevice(const FleetNode& node) const {
    return std::all_of(node.records.begin(), node.records.end(), [&](size_t r) {
      const NodeSummary& record = records_.nodes[r];
      return record.acceptance != Acceptance::kAccepted && record.profileName.empty() &&
             std::all_of(record.devices.begin(), record.devices.end(),
                         [](const DeviceIdentity& device) { return device.name.empty(); });
    });
  }

  [[nodiscard]] const NodeSummary& recordOf(size_t n) const {
    return records_.nodes[nodes_[n].records.front()];
  }

  /// "8 × NVIDIA H100 80GB HBM3"; empty without GPUs: processors and their memory drift, but are no SKU.
  [[nodiscard]] std::string modelsOf(size_t n) const {
    std::map<std::string, size_t> counts;
    for (const DeviceIdentity& device : recordOf(n).devices)
      if (device.kind == "gpu") ++counts[device.name];
    std::vector<std::string> parts;
    parts.reserve(counts.size());
    for (const auto& [name, count] : counts)
      parts.push_back(fmt::format("{} × {}", count, printable(name, 80)));
    return join(parts, " + ");
  }

  void compareModels(const std::string& sku, const std::vector<size_t>& nodes) {
    Shares shares, votes;
    for (const size_t n : nodes)
      if (const std::string models = modelsOf(n); !models.empty()) {
        shares[models].push_back(n);
        // Most may have lost a GPU, and be rejected for it, or waived: the others are not at fault.
        if (recordOf(n).acceptance != Acceptance::kRejected &&
            recordOf(n).accounting.of(Outcome::kWaived) == 0)
          votes[models].push_back(n);
      }
    if (shares.size() < 2) return;
    const std::string majority = majorityOf(shares), better = majorityOf(votes);
    // Whether those are right that most have, or those that passed, the fleet cannot tell.
    const bool open = majority.empty() || (!votes.empty() && better != majority);
    std::string others =
        majority.empty()
            ? fmt::format("but no number or model of GPUs has a majority among nodes of SKU {}", sku)
            : fmt::format("but {} of {} nodes of SKU {} have {}", shares[majority].size(), total(shares), sku,
                          majority);
    if (open && !majority.empty()) others += ", and those that passed do not agree";
    for (const auto& [models, odd] : shares) {
      if (models == majority) continue;
      add(FindingKind::kSku,
          fmt::format("{} {} {}, {}", shortNames(namesOf(odd)), odd.size() == 1 ? "has" : "have", models,
                      others),
          kLookAtGpus, odd,
          open ? NodeState::kIncomplete
               : stateOfOdd(shares[majority].size(), total(shares) - shares[majority].size()));
    }
  }

  /// Memory of a node's GPUs, bytes; 0 where it is not known of each.
  [[nodiscard]] double memoryOf(size_t n) const {
    const NodeSummary& record = recordOf(n);
    double sum = 0;
    size_t gpus = 0, known = 0;
    for (const DeviceIdentity& device : record.devices) gpus += device.kind == "gpu" ? 1 : 0;
    for (const Fact& fact : record.facts) {
      if (fact.device < 0 || record.devices[static_cast<size_t>(fact.device)].kind != "gpu") continue;
      if (records_.names->texts[fact.name] != kMemoryFact) continue;
      sum += std::strtod(records_.names->texts[fact.value].c_str(), nullptr);
      ++known;
    }
    return gpus > 0 && known == gpus ? sum / static_cast<double>(gpus) : 0;
  }

  void compareMemory(const std::vector<size_t>& nodes) {
    std::vector<double> memories;
    for (const size_t n : nodes)
      if (const double memory = memoryOf(n); memory > 0) memories.push_back(memory);
    if (memories.size() < 2) return;
    const double median = summarize(memories).median;
    const auto isOdd = [&](double memory) { return std::abs(memory - median) > kMemoryRoom * median; };
    const auto odd = static_cast<size_t>(std::count_if(memories.begin(), memories.end(), isOdd));
    for (const size_t n : nodes) {
      const double memory = memoryOf(n);
      if (memory <= 0 || !isOdd(memory)) continue;
      add(FindingKind::kSku,
          fmt::format("{}: a GPU has {} on average, but the median of nodes of SKU {} is {}", nodes_[n].name,
                      formatQuantity(memory, "B"), nodes_[n].sku, formatQuantity(median, "B")),
          kLookAtGpus, {n}, stateOfOdd(memories.size() - odd, odd));
    }
  }

  static constexpr const char* kSayWhich =
      "Replace the node, or declare its SKU: a line \"NODES sku=NAME\" in the --expect file, or --node-sku "
      "NODES=NAME.";
  static constexpr const char* kLookAtGpus = "Check for a missing or different GPU (nvidia-smi -L, lspci).";

  const FleetRecords& records_;
  const FleetOptions& options_;
  const FleetRun& run_;
  FleetNodes& nodes_;
  RecordChecks checks_;
  std::string planSku_;
  std::string majority_;  ///< how many nodes decided, for people
  size_t agree_ = 0;      ///< nodes of the SKU that most are of, and others of those that nobody gave one
  size_t odd_ = 0;
};

}  // namespace

RecordChecks checkSkus(const FleetRecords& records, const FleetOptions& options, const FleetRun& run,
                       FleetNodes& nodes) {
  return SkuCheck(records, options, run, nodes).check();
}

}  // namespace muster::fleet
