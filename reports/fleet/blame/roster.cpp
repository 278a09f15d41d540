// SPDX-License-Identifier: Apache-2.0
// See roster.h.
#include "reports/fleet/blame/roster.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/majority.h"

namespace muster::fleet {
namespace {

/// By number, what most say of it.
template <typename Word>
std::map<int, uint64_t> mostSaid(std::vector<Word>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::map<int, uint64_t> most;
  for (size_t begin = 0, end = 0; begin < words.size(); begin = end) {
    const int number = std::get<0>(words[begin]);
    std::map<uint64_t, size_t> voices;
    std::set<uint32_t> all;
    for (; end < words.size() && std::get<0>(words[end]) == number; ++end) {
      ++voices[std::get<1>(words[end])];
      all.insert(std::get<2>(words[end]));
    }
    for (const auto& [what, count] : voices)
      if (count > 1 && isMajority(count, all.size())) most[number] = what;
  }
  return most;
}

}  // namespace

uint32_t Roster::idOf(const std::string& node) {
  const auto [at, fresh] = ids_.try_emplace(node, static_cast<uint32_t>(names_.size()));
  if (fresh) names_.push_back(node);
  return at->second;
}

void Roster::hear(const StageOfRun& stage, const NodeSummary& record, const StageSummary& said) {
  const uint32_t speaker = idOf(record.node);
  Words& words = words_[stage];
  words.nodes.emplace_back(record.nodeRank, speaker, speaker);
  for (const NodeAround& around : said.around) {
    words.nodes.emplace_back(around.number, idOf(fleetNames_.texts[around.node]), speaker);
    words.ranks.emplace_back(
        around.number, static_cast<uint64_t>(around.firstRank) << 32 | static_cast<uint32_t>(around.ranks),
        speaker);
  }
}

void Roster::settle() {
  for (auto& [stage, words] : words_) {
    Meeting& meeting = meetings_[stage];
    for (const auto& [number, node, speaker] : words.nodes) {
      meeting.speakers.insert(names_[speaker]);
      meeting.named.insert(names_[node]);
      if (node != speaker) known_[stage.first].insert(names_[node]);
    }
    for (const auto& [number, node] : mostSaid(words.nodes)) {
      meeting.nodes[number] = names_[node];
      nodes_[stage.first][number].insert(names_[node]);
      numbers_[stage.first][names_[node]].insert(number);
    }
    for (const auto& [number, ranks] : mostSaid(words.ranks)) {
      const auto first = static_cast<int>(ranks >> 32);
      const auto count = static_cast<int64_t>(ranks & UINT32_MAX);
      if (const auto node = meeting.nodes.find(number); node != meeting.nodes.end() && count > 0)
        meeting.ranks[first] = {first + count, node->second};
    }
  }
  words_.clear();
}

std::string Roster::nodeOf(const std::string& run, int number) const {
  const auto nodes = nodes_.find(run);
  if (nodes == nodes_.end()) return "";
  const auto at = nodes->second.find(number);
  return at == nodes->second.end() || at->second.size() != 1 ? "" : *at->second.begin();
}

std::string Roster::contradicts(const std::string& run, const std::string& node, int number) const {
  const auto nodes = nodes_.find(run);
  if (nodes == nodes_.end()) return "";
  if (const auto others = nodes->second.find(number);
      others != nodes->second.end() && !others->second.contains(node))
    return "that it was " + *others->second.begin();
  const auto& numbers = numbers_.at(run);
  const auto own = numbers.find(node);
  if (own == numbers.end() || own->second.contains(number)) return "";
  return fmt::format("that {} was node {}", node, *own->second.begin());
}

bool Roster::knows(const std::string& run, const std::string& node) const {
  const auto known = known_.find(run);
  return known != known_.end() && known->second.contains(node);
}

std::string Roster::ownerOf(const StageOfRun& stage, int rank) const {
  const auto meeting = meetings_.find(stage);
  if (meeting == meetings_.end()) return "";
  const auto after = meeting->second.ranks.upper_bound(rank);
  if (after == meeting->second.ranks.begin()) return "";
  const auto& [end, node] = std::prev(after)->second;
  return rank < end ? node : "";
}

}  // namespace muster::fleet
