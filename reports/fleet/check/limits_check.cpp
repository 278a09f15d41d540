// SPDX-License-Identifier: Apache-2.0
// See sku_check.h: whether nodes that are compared were judged by the same limits.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/check/sku_check.h"
#include "runner/core/text.h"
#include "runner/record/record_check.h"

namespace muster::fleet {
namespace {

constexpr const char* kNext =
    "Retest the node with the plan, profile and Muster of the others, or set the required profile "
    "with --sku FILE.";
constexpr const char* kNone = "(none)";

std::string digestText(const std::string& sha256) {
  return sha256.empty() ? "no digest" : "sha256 " + sha256.substr(0, 12);
}

/// One thing that must be equal on all nodes of a SKU: who has which value.
struct Aspect {
  std::string name;                                ///< "profile"
  std::map<std::string, std::set<size_t>> shares;  ///< by a text for people
  std::string pinned;                              ///< the value that counts; empty: that of the most nodes
};

class LimitsCheck {
 public:
  LimitsCheck(const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes)
      : records_(records), options_(options), nodes_(nodes) {}

  RecordChecks check() {
    std::map<std::string, std::vector<size_t>> groups;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const FleetNode& node = nodes_[n];
      if (!node.records.empty() && (node.expectedSku.empty() || node.sku == node.expectedSku))
        groups[node.sku].push_back(n);
    }
    for (const auto& [sku, nodes] : groups) compare(sku, nodes);
    return std::move(checks_);
  }

 private:
  template <typename F>
  void eachRecord(const std::vector<size_t>& nodes, F take) const {
    for (const size_t n : nodes)
      for (const size_t i : nodes_[n].records) take(n, records_.nodes[i]);
  }

  [[nodiscard]] const std::string& text(uint32_t number) const { return records_.names->texts[number]; }

  void compare(const std::string& sku, const std::vector<size_t>& nodes) {
    blamed_.clear();
    Aspect profile{"profile", {}, ""};
    if (const auto pin = options_.pinnedProfiles.find(sku); pin != options_.pinnedProfiles.end())
      profile.pinned = profileText(sku, pin->second);
    Aspect build{"Muster build", {}, ""}, strict{"strictness", {}, ""};
    std::map<std::string, Aspect> parts;  // of Muster: its own files, plugins, operators' programs
    eachRecord(nodes, [&](size_t n, const NodeSummary& record) {
      profile.shares[profileText(record.profileName, record.profileSha256)].insert(n);
      build.shares[record.rejudged ? record.rejudged->buildId : record.buildId].insert(n);
      strict.shares[record.strict ? "--strict" : "without --strict"].insert(n);
      for (const std::string_view line : split(text(record.binaries), '\n')) {
        const size_t space = line.rfind(' ');
        if (space == std::string_view::npos) continue;
        const std::string file = printable(line.substr(0, space), 80);
        Aspect& binary = parts[file];
        binary.name = file;
        binary.shares[digestText(std::string(line.substr(space + 1)))].insert(n);
      }
      for (const StageSummary& stage : record.stages) {
        if (text(stage.library).empty()) continue;
        Aspect& plugin = parts["plugin " + text(stage.plugin)];
        plugin.name = "plugin " + text(stage.plugin);
        plugin.shares[libraryText(text(stage.library))].insert(n);
        if (text(stage.program).empty()) continue;
        Aspect& program = parts["program of " + text(stage.name)];
        program.name = fmt::format("program of stage {},", printable(text(stage.name), 80));
        program.shares[printable(text(stage.program), 300)].insert(n);
      }
    });
    judge(sku, profile);
    // A node that is stricter than most gives nothing away.
    if (strict.shares["--strict"].size() >= strict.shares["without --strict"].size()) judge(sku, strict);
    compareRequirements(sku, nodes);
    if (options_.manyRuns) return;
    judge(sku, build);
    for (const auto& [name, part] : parts) judge(sku, part);
  }

  static std::string profileText(const std::string& name, const std::string& sha256) {
    return name.empty() ? "no profile" : fmt::format("{} ({})", printable(name, 80), digestText(sha256));
  }

  static std::string libraryText(const std::string& library) {
    const size_t space = library.find(' ');
    return space == std::string::npos
               ? library
               : fmt::format("{} ({})", library.substr(0, space), digestText(library.substr(space + 1)));
  }

  /// The value that counts: the pinned one, else that of the most nodes; nothing where there is no majority.
  static const std::string* rightOf(const Aspect& aspect) {
    if (!aspect.pinned.empty()) return &aspect.pinned;
    const std::string* best = nullptr;
    size_t most = 0;
    for (const auto& [value, nodes] : aspect.shares) {
      if (nodes.size() == most) best = nullptr;
      if (nodes.size() <= most) continue;
      best = &value;
      most = nodes.size();
    }
    return best;
  }

  void judge(const std::string& sku, const Aspect& aspect) {
    size_t valued = 0;
    for (const auto& [value, nodes] : aspect.shares) valued += nodes.empty() ? 0 : 1;
    const std::string* right = rightOf(aspect);
    if (valued < 2 && (aspect.pinned.empty() || aspect.shares.contains(aspect.pinned))) return;
    for (const auto& [value, nodes] : aspect.shares) {
      if (nodes.empty() || (right != nullptr && value == *right)) continue;
      std::string basis;
      if (right == nullptr)
        basis = fmt::format("no {} has a majority among nodes of SKU {}", aspect.name, printable(sku, 80));
      else if (!aspect.pinned.empty())
        basis = "using " + *right;
      else
        basis = fmt::format("{} nodes of SKU {} used {}", aspect.shares.at(*right).size(), printable(sku, 80),
                            *right);
      add(nodes, fmt::format("{} {}", aspect.name, value), basis);
    }
  }

  void add(const std::set<size_t>& nodes, const std::string& what, const std::string& basis) {
    RecordFinding finding;
    finding.kind = FindingKind::kLimits;
    std::vector<std::string> names;
    for (const size_t n : nodes) names.push_back(nodes_[n].name);
    finding.text = fmt::format("other limits: {}: {}; {}", shortNames(names), what, basis);
    finding.next = kNext;
    checks_.findings.push_back(
        settled(std::move(finding), {nodes.begin(), nodes.end()}, NodeState::kIncomplete, records_, nodes_));
    blamed_.insert(nodes.begin(), nodes.end());
  }

  /// The requirements of one stage on one record: what each is about, and its limits.
  using Requirements = std::map<std::string, std::string>;

  [[nodiscard]] Requirements requirementsOf(const StageSummary& stage) const {
    Requirements all;
    for (const LimitSummary& one : stage.limits) {
      std::string& limits = all[text(one.about)];
      limits += (limits.empty() ? "" : "; ") + text(one.limit);
    }
    return all;
  }

  /// What was run by one profile and plan has the same requirements; where not, a record was edited.
  void compareRequirements(const std::string& sku, const std::vector<size_t>& nodes) {
    struct List {
      const StageSummary* example = nullptr;
      std::set<size_t> nodes;
    };
    // What it requires; and whether it may lack what others require, which then says nothing.
    using Key = std::pair<std::vector<std::pair<uint32_t, uint32_t>>, bool>;
    std::map<std::string, std::map<Key, List>> stages;
    const std::set<size_t> known = blamed_;  // their profile tells already
    eachRecord(nodes, [&](size_t n, const NodeSummary& record) {
      if (known.contains(n)) return;
      for (const StageSummary& stage : record.stages) {
        if (stage.state != StageState::kRan || isOwnStage(text(stage.name))) continue;
        std::vector<std::pair<uint32_t, uint32_t>> required;
        for (const LimitSummary& one : stage.limits) required.emplace_back(one.about, one.limit);
        std::sort(required.begin(), required.end());
        // `muster judge --sku` leaves out what a record has no metric for, and a run what an error kept it
        // from measuring, which counts as that error.
        const bool mayLack = record.rejudged || stage.accounting.of(Outcome::kError) > 0;
        List& list = stages[text(stage.name)][{std::move(required), mayLack}];
        list.example = &stage;
        list.nodes.insert(n);
      }
    });
    for (const auto& [stage, lists] : stages) {
      if (lists.size() < 2) continue;
      std::map<std::string, Aspect> aspects;
      struct Share {
        Requirements requirements;
        bool mayLack = false;
        const std::set<size_t>& nodes;
      };
      std::vector<Share> all;
      for (const auto& [key, list] : lists)
        all.push_back({requirementsOf(*list.example), key.second, list.nodes});
      for (const Share& share : all)
        for (const auto& [about, limit] : share.requirements)
          aspects[about].name = fmt::format("requirement of stage {} ({})", stage, printable(about, 160));
      for (auto& [about, aspect] : aspects)
        for (const Share& share : all) {
          const auto at = share.requirements.find(about);
          if (at == share.requirements.end() && share.mayLack) continue;
          aspect.shares[at == share.requirements.end() ? kNone : at->second].insert(share.nodes.begin(),
                                                                                    share.nodes.end());
        }
      for (const auto& [about, aspect] : aspects) judge(sku, aspect);
    }
  }

  const FleetRecords& records_;
  const FleetOptions& options_;
  FleetNodes& nodes_;
  RecordChecks checks_;
  std::set<size_t> blamed_;
};

}  // namespace

RecordChecks checkLimits(const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes) {
  return LimitsCheck(records, options, nodes).check();
}

}  // namespace muster::fleet
