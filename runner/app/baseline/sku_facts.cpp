// SPDX-License-Identifier: Apache-2.0
// The votes of a fleet on the facts of a SKU that no profile knows.
#include "runner/app/baseline/sku_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/majority.h"
#include "runner/core/text.h"

namespace muster {
namespace {

/// Parameters that a figure depends on, which a profile made from nothing fixes as they were.
constexpr const char* kShaping[] = {"size",     "algorithm", "warmup", "min_time",
                                    "max_time", "duration",  "window", "bytes"};
constexpr const char* kNext = "give the profile to start from by --base FILE, or move the other records away";
constexpr const char* kNotStated = "none";
constexpr size_t kMostShown = 160;

/// "102 GB", as profiles have it.
std::string memoryText(double bytes) {
  return fmt::format("{:.4g} GB", bytes / 1e9);
}

const std::string& statedBy(const SkuFacts& facts, const std::string& name) {
  static const std::string none = kNotStated;
  const auto found = facts.stated.find(name);
  return found == facts.stated.end() ? none : found->second;
}

Error undecided(const std::string& name, const std::string& votes) {
  return {ErrorCode::kUsage,
          fmt::format("{}: no value has a majority: {}; {}", printable(name, kMostShown), votes, kNext), ""};
}

class SkuVote {
  /// What most nodes say of a fact.
  struct Agreed {
    std::string value;
    size_t nodes = 0;
  };

 public:
  SkuVote(const std::vector<SkuFacts>& facts, FleetToLearn& fleet) : facts_(facts), fleet_(fleet) {
    for (size_t i = 0; i < facts.size(); ++i)
      if (fleet.input.nodes[i].sick.empty() && facts[i].unreadable.empty()) voters_.push_back(i);
  }

  Result<double> decide() {
    for (size_t i = 0; i < facts_.size(); ++i)
      if (!facts_[i].unreadable.empty()) leaveOut(i, facts_[i].unreadable);
    if (voters_.empty())
      return Error{ErrorCode::kUsage,
                   fmt::format("no healthy node: {}: {}", fleet_.input.nodes.front().name,
                               fleet_.input.nodes.front().sick),
                   ""};
    MUSTER_CHECK_OK(voteOnFacts());
    MUSTER_TRY(const double memory, voteOnMemory());
    MUSTER_CHECK_OK(chooseExample());
    dropFiguresOfMisfits();
    return memory;
  }

 private:
  /// Each node's facts are looked at once: a record may make many up.
  Status voteOnFacts() {
    std::map<std::string, std::map<std::string, size_t>> votes;  // by fact
    for (const size_t i : voters_)
      for (const auto& [name, value] : facts_[i].stated) ++votes[name][value];
    for (auto& [name, values] : votes) {
      size_t silent = voters_.size();
      for (const auto& [value, count] : values) silent -= count;
      if (silent > 0) values[kNotStated] += silent;
      const std::string most = mostVoted(values);
      if (!isMajority(values.at(most), voters_.size())) return undecided(name, votesText(values));
      agreed_[name] = {most, values.at(most)};
    }
    for (size_t i = 0; i < facts_.size(); ++i)
      for (const auto& [name, own] : facts_[i].stated) compare(i, name, own);
    // What most do not state is nothing that the example has to state.
    std::erase_if(agreed_, [](const auto& fact) { return fact.second.value == kNotStated; });
    return {};
  }

  /// A node that did not run a test says nothing of its parameters, and its other figures are good.
  void compare(size_t node, const std::string& name, const std::string& own) {
    const auto agreed = agreed_.find(name);
    if (agreed == agreed_.end())
      return leaveOut(node, fmt::format("no healthy node has a {}", printable(name, kMostShown)));
    const auto& [value, count] = agreed->second;
    if (own == value) return;
    leaveOut(node,
             fmt::format("{} {}; {} of {} nodes have {}", printable(name, kMostShown),
                         printable(own, kMostShown), count, voters_.size(), printable(value, kMostShown)));
  }

  /// No two drivers leave the same memory, so nodes agree where they are near the one in the middle.
  Result<double> voteOnMemory() {
    std::vector<double> sizes;
    for (const size_t i : voters_) sizes.push_back(facts_[i].memory);
    std::sort(sizes.begin(), sizes.end());
    const double middle = sizes[sizes.size() / 2];
    const auto agrees = [&](double bytes) { return std::abs(bytes - middle) <= middle * kMemoryRoom; };
    const auto count = static_cast<size_t>(std::count_if(sizes.begin(), sizes.end(), agrees));
    if (!isMajority(count, sizes.size())) {
      std::map<std::string, size_t> votes;
      for (const double bytes : sizes) ++votes[memoryText(bytes)];
      return undecided("memory", votesText(votes));
    }
    for (size_t i = 0; i < facts_.size(); ++i)
      if (!agrees(facts_[i].memory))
        leaveOut(i, fmt::format("memory {}; {} of {} nodes have {}", memoryText(facts_[i].memory), count,
                                sizes.size(), memoryText(middle)));
    return middle;
  }

  void leaveOut(size_t node, const std::string& why) {
    LearnNode& left = fleet_.input.nodes[node];
    if (left.misfit) return;
    left.misfit = true;
    left.sick = why;
  }

  Status chooseExample() {
    const auto saysAll = [&](size_t i) {
      return !fleet_.input.nodes[i].misfit &&
             std::all_of(agreed_.begin(), agreed_.end(), [&](const auto& fact) {
               return statedBy(facts_[i], fact.first) == fact.second.value;
             });
    };
    const auto found = std::find_if(voters_.begin(), voters_.end(), saysAll);
    if (found == voters_.end())
      return Error{ErrorCode::kUsage,
                   fmt::format("no node agrees with most in all that a new profile takes over; {}", kNext),
                   ""};
    fleet_.example = *found;
    return {};
  }

  void dropFiguresOfMisfits() {
    const std::vector<LearnNode>& nodes = fleet_.input.nodes;
    std::vector<LearnGroup>& groups = fleet_.input.groups;
    for (LearnGroup& group : groups)
      std::erase_if(group.figures,
                    [&](const LearnFigure& f) { return nodes[static_cast<size_t>(f.node)].misfit; });
    std::erase_if(groups, [](const LearnGroup& group) { return group.figures.empty(); });
  }

  const std::vector<SkuFacts>& facts_;
  FleetToLearn& fleet_;
  std::vector<size_t> voters_;            ///< healthy nodes
  std::map<std::string, Agreed> agreed_;  ///< by fact
};

}  // namespace

std::map<std::string, Json> sharedParams(const Record& record) {
  std::map<std::string, Json> params;
  for (const StageRecord& stage : record.stages) {
    if (stage.plugin == "env") continue;
    Json& fixed = params[stage.plugin + "." + stage.test];
    for (const char* name : kShaping) {
      for (const CaseRecord& item : stage.cases) {
        const auto value = item.params.find(name);
        if (value == item.params.end()) continue;
        if (!fixed.contains(name)) fixed[name] = *value;
        if (fixed[name] != *value) fixed[name] = nullptr;  // differs between cases: the labels tell it
      }
    }
  }
  for (auto& [test, fixed] : params)
    for (auto it = fixed.begin(); it != fixed.end();) it = it->is_null() ? fixed.erase(it) : std::next(it);
  std::erase_if(params, [](const auto& entry) { return entry.second.empty(); });
  return params;
}

std::map<std::string, double> devicePeaks(const Record& record) {
  std::map<std::string, double> peaks = record.peaks;
  // What follows from the network's own two is derived anew for each run.
  std::erase_if(peaks, [](const auto& peak) { return peak.first.starts_with("network_bandwidth."); });
  return peaks;
}

void SkuFacts::add(SkuFacts other) {
  stated.merge(other.stated);
  memory = std::max(memory, other.memory);
  if (unreadable.empty()) unreadable = std::move(other.unreadable);
}

SkuFacts skuFacts(const Record& record) {
  SkuFacts facts;
  const Json devices = record.inventory.value("devices", Json::array());
  if (devices.is_array() && !devices.empty() && devices[0].is_object()) {
    JsonReader device(devices[0], "inventory.devices[0]");
    std::string kind = "gpu", pciId;
    device.optional("kind", kind);
    device.optional("memory_bytes", facts.memory);
    device.optional("pci_id", pciId);
    if (!device.ok()) facts.unreadable = device.status().error().text();
    facts.stated["kind of device"] = kind;
    facts.stated["PCI id"] = pciId;
  }
  for (const auto& [name, peak] : devicePeaks(record)) facts.stated["peak " + name] = dumpJson(peak);
  facts.stated["source of the peaks"] = record.peaksFrom;
  for (const auto& [test, params] : sharedParams(record))
    for (const auto& [name, value] : params.items()) facts.stated[name + " of " + test] = dumpJson(value);
  return facts;
}

Result<double> agreeOnSku(const std::vector<SkuFacts>& facts, FleetToLearn& fleet) {
  return SkuVote(facts, fleet).decide();
}

}  // namespace muster
