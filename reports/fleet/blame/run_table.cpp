// SPDX-License-Identifier: Apache-2.0
// See run_table.h.
#include "reports/fleet/blame/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reports/fleet/blame/cluster_stages.h"
#include "reports/fleet/blame/later_meetings.h"
#include "reports/fleet/read/cause.h"
#include "reports/fleet/read/runs.h"
#include "runner/core/majority.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

/// What to do about records that cannot all be of one run.
constexpr const char* kRunTogether =
    "Run the plan on all nodes together once more, and check who could write the records.";
/// ... or of which one is gone.
constexpr const char* kAllOrNone =
    "Find that record. If it was moved away after a repair, and the node was tested with one that is not "
    "expected here, expect that one, too (--expect); else run the plan on all nodes together once more, and "
    "check "
    "who could write the records.";

std::set<std::string> namesOf(const FleetNodes& nodes) {
  std::set<std::string> names;
  for (const FleetNode& node : nodes) names.insert(node.name);
  return names;
}

}  // namespace

RunTable::RunTable(const FleetRecords& records, const FleetNodes& nodes, bool manyRuns)
    : records_(records),
      manyRuns_(manyRuns),
      clusterStages_(clusterStages(records, nodes)),
      roster_(*records.names) {
  const std::set<std::string> expected = namesOf(nodes);
  runs_ = runsOf(records, expected);
  for (const FleetNode& node : nodes)
    for (const auto* list : {&node.records, &node.repeated})
      for (const size_t i : *list)
        if (!runs_[i].empty()) nodesOfRuns_[runs_[i]].insert(node.name);
  if (!manyRuns) {
    std::vector<std::string> fleets;
    for (const NodeSummary& record : records.nodes) fleets.push_back(record.fleetId);
    fleetCounts_ = agreedCounts(nodes, fleets);
  }
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records) entries_.push_back({&records.nodes[i], false});
  // In another run it was another rank: those whom it met there speak of that one.
  for (const FleetNode& node : nodes)
    for (const size_t i : node.repeated)
      if (!runs_[i].empty() && std::none_of(node.records.begin(), node.records.end(),
                                            [&](size_t kept) { return runs_[kept] == runs_[i]; }))
        entries_.push_back({&records.nodes[i], true});
  for (const Entry& entry : entries_) {
    const std::string run = runOf(*entry.record);
    for (const StageSummary& stage : entry.record->stages)
      if (isOverNodes(stage)) {
        int& size = groupSizes_[{run, stage.name}][entry.record->node];
        size = std::max(size, stage.groupNodes);
      }
  }
  callRoll(nodes);
  for (const Entry& entry : entries_) add(*entry.record);
  std::vector<Clash> clashes = numberClashes(nodes);
  std::vector<Clash> ofRanks = rankClashes();
  std::move(ofRanks.begin(), ofRanks.end(), std::back_inserter(clashes));
  settle(std::move(clashes));
  findDeserters();
  findAbsentees(expected);
  findUnable(expected);
  findOdd();
  settlePairs();
  for (const auto& [run, numbers] : numbers_)
    for (const auto& [number, who] : numbers)
      if (who.size() == 1) soleNumbers_[run][*who.begin()].insert(number);
}

RunTable::~RunTable() = default;

size_t RunTable::indexOf(const NodeSummary& record) const {
  return static_cast<size_t>(&record - records_.nodes.data());
}

/// Where no groups are told, who says that its run had another number of nodes than most say stays in their
/// run: it would escape what they say of it.
std::string RunTable::runOf(const NodeSummary& record) const {
  const std::string& run = runs_.at(indexOf(record));
  if (!run.empty()) return run;
  const auto most = fleetCounts_.find(record.fleetId);
  return fmt::format("{}\n{}", record.fleetId,
                     most == fleetCounts_.end() || record.nodeCount <= 1 ? record.nodeCount : most->second);
}

const std::string& RunTable::groupId(const StageSummary& stage) const {
  return records_.names->texts[stage.groupId];
}

bool RunTable::isAlone(const NodeSummary& record) const {
  const auto run = nodesOfRuns_.find(runs_.at(indexOf(record)));
  return record.nodeCount <= 1 && (run == nodesOfRuns_.end() || run->second.size() == 1);
}

/// By the word of most: a record that alone calls it a stage of one node would escape what others say of it.
bool RunTable::isOverNodes(const StageSummary& stage) const {
  return clusterStages_.contains(stage.name) && stage.state != StageState::kElsewhere;
}

bool RunTable::isOfOneNode(const StageSummary& stage, const NodeSummary& record) const {
  if (!clusterStages_.contains(stage.name) || isAlone(record)) return true;
  const auto sizes = groupSizes_.find({runOf(record), stage.name});
  if (sizes == groupSizes_.end()) return stage.groupNodes == 1;
  size_t told = 0, ones = 0;
  for (const auto& [node, size] : sizes->second) {
    told += size > 0 ? 1 : 0;
    ones += size == 1 ? 1 : 0;
  }
  return isMajority(ones, told);
}

/// Not by the size of the group that the record gives: who tells another one was there all the same.
std::string RunTable::groupOf(const StageSummary& stage, const NodeSummary& record) const {
  const bool formed = stage.state == StageState::kRan || stage.worldSize > 0;
  return fmt::format("{}\n{}\n{}\n{}", records_.names->texts[stage.name], runOf(record), formed,
                     isOfOneNode(stage, record) ? record.path : "");
}

const std::set<std::string>& RunTable::nodesOfGroup(const std::string& group) const {
  static const std::set<std::string> kNobody;
  const auto at = groups_.find(group);
  return at == groups_.end() ? kNobody : at->second.nodes;
}

const RunTable::Place* RunTable::placeOf(const std::string& group, int rank,
                                         const std::string& speaker) const {
  const auto known = groups_.find(group);
  if (known == groups_.end()) return nullptr;
  const auto at = known->second.ranks.find(rank);
  if (at == known->second.ranks.end()) return nullptr;
  const std::vector<Place>& claims = at->second;
  if (claims.size() == 1) return &claims.front();
  const auto own = std::find_if(claims.begin(), claims.end(),
                                [&](const Place& claim) { return claim.record->node == speaker; });
  return own == claims.end() ? nullptr : &*own;
}

const std::set<std::string>& RunTable::nodesOf(const std::string& run, int number) const {
  static const std::set<std::string> kNobody;
  const auto numbers = numbers_.find(run);
  if (numbers == numbers_.end()) return kNobody;
  const auto at = numbers->second.find(number);
  return at == numbers->second.end() ? kNobody : at->second;
}

std::string RunTable::nodeOf(const std::string& run, int number) const {
  const std::set<std::string>& nodes = nodesOf(run, number);
  return nodes.size() == 1 ? *nodes.begin() : "";
}

bool RunTable::hasOtherNumber(const std::string& run, const std::string& node, int number) const {
  const auto numbers = soleNumbers_.find(run);
  if (numbers == soleNumbers_.end()) return false;
  const auto own = numbers->second.find(node);
  return own != numbers->second.end() && own->second.size() > (own->second.contains(number) ? 1U : 0U);
}

bool RunTable::leads(const NodeSummary& record) const {
  return record.nodeRank == 0 && nodeOf(runOf(record), 0) == record.node;
}

std::string RunTable::namedBy(const NodeSummary& record, const StageSummary& stage, int number) const {
  const auto at = std::find_if(stage.around.begin(), stage.around.end(),
                               [&](const NodeAround& around) { return around.number == number; });
  if (at == stage.around.end()) return "";
  const std::string& node = records_.names->texts[at->node];
  const bool excused =
      excused_.contains({{runOf(record), stage.name}, node}) ||
      later_->wasMetAfter(node, record.finished, runOf(record));  // a part of a plan has no meetings
  return excused ? "" : node;
}

bool RunTable::hasMet(const std::string& run, const std::string& node) const {
  return met_.contains({run, node});
}

const std::map<std::string, int>& RunTable::membersOf(const StageOfRun& stage) const {
  static const std::map<std::string, int> kNobody;
  const auto at = members_.find(stage);
  return at == members_.end() ? kNobody : at->second;
}

int RunTable::sizeOf(const StageOfRun& stage) const {
  const std::map<std::string, int>& members = membersOf(stage);
  std::map<int, size_t> votes;
  for (const auto& [node, size] : members) ++votes[size];
  for (const auto& [size, count] : votes)
    if (isMajority(count, members.size())) return size;
  return votes.empty() ? 0 : votes.begin()->first;
}

bool RunTable::tookPart(const NodeSummary& record) const {
  return !isAlone(record) && std::any_of(record.stages.begin(), record.stages.end(),
                                         [&](const StageSummary& stage) { return isOverNodes(stage); });
}

std::map<std::string, int> RunTable::agreedCounts(const FleetNodes& nodes,
                                                  const std::vector<std::string>& runs) const {
  std::map<std::string, std::map<int, size_t>> votes;
  std::map<std::string, size_t> all;
  for (const FleetNode& node : nodes) {
    std::map<std::string, std::set<int>> said;  // a node may have many records of a run
    for (const size_t i : node.records)
      if (const NodeSummary& record = records_.nodes[i]; record.nodeCount > 1 && tookPart(record))
        said[runs[i]].insert(record.nodeCount);
    for (const auto& [run, counts] : said) {
      for (const int count : counts) ++votes[run][count];
      ++all[run];
    }
  }
  std::map<std::string, int> agreed;
  for (const auto& [run, counts] : votes)
    for (const auto& [count, times] : counts)
      if (isMajority(times, all[run])) agreed[run] = count;
  return agreed;
}

void RunTable::callRoll(const FleetNodes& nodes) {
  // Of a run of a part of the plan only those have a record that counts who failed in it.
  for (const Entry& entry : entries_)
    for (const StageSummary& stage : entry.record->stages)
      if (entry.record->partial.empty() && !isOfOneNode(stage, *entry.record) && isOverNodes(stage) &&
          !groupId(stage).empty())
        roster_.hear({runOf(*entry.record), stage.name}, *entry.record, stage);
  roster_.settle();
  for (const FleetNode& node : nodes)
    for (const auto* list : {&node.records, &node.repeated})
      for (const size_t i : *list) {
        const NodeSummary& record = records_.nodes[i];
        if (const std::string most = roster_.contradicts(runOf(record), record.node, record.nodeRank);
            !most.empty() && tookPart(record))
          clashes_.push_back({{record.node},
                              fmt::format("{} says that it was node {} of the run, and most of the others {}",
                                          record.node, record.nodeRank, most)});
      }
}

bool RunTable::isImpostor(const NodeSummary& record) const {
  return !roster_.contradicts(runOf(record), record.node, record.nodeRank).empty();
}

void RunTable::add(const NodeSummary& record) {
  recorded_.insert(record.node);
  const std::string run = runOf(record);
  const bool told = !runs_.at(indexOf(record)).empty();
  const bool impostor = isImpostor(record);
  for (const StageSummary& stage : record.stages) {
    if (stage.scope == Scope::kDevice || stage.state == StageState::kElsewhere) continue;
    Group& group = groups_[groupOf(stage, record)];
    group.nodes.insert(record.node);
    const bool met = told || (!manyRuns_ && stage.state == StageState::kRan);
    const StageOfRun stageOfRun(run, stage.name);
    bool isTold = false;
    for (const auto& [rank, device] : stage.ranks) {
      if (const std::string owner = roster_.ownerOf(stageOfRun, rank);
          !owner.empty() && owner != record.node) {
        if (!std::exchange(isTold, true))
          clashes_.push_back(
              {{record.node},
               fmt::format("{} says that rank {} of stage {} was its own, and most of the others that it was "
                           "one of {}",
                           record.node, rank, printable(records_.names->texts[stage.name], 200), owner)});
        continue;
      }
      std::vector<Place>& claims = group.ranks[rank];
      const bool known = std::any_of(claims.begin(), claims.end(),
                                     [&](const Place& claim) { return claim.record->node == record.node; });
      if (!known) claims.push_back({&record, device, met});
    }
    if (isOfOneNode(stage, record)) continue;
    if (stage.groupNodes > 1) met_.emplace(run, record.node);
    if (impostor) continue;
    // Of a group that is larger than the run nobody was.
    if (stage.state != StageState::kSkipped)
      members_[{run, stage.name}][record.node] = std::max(record.nodeCount, stage.groupNodes);
    numbers_[run][record.nodeRank].insert(record.node);
  }
}

/// A record that ran with others and tells no group may be of any run.
std::vector<Clash> RunTable::numberClashes(const FleetNodes& nodes) {
  // The nodes that claim a number, by fleet id and by run; "": of any run.
  std::map<std::pair<std::string, int>, std::map<std::string, std::set<std::string>>> claims;
  for (const FleetNode& node : nodes) {
    std::vector<size_t> told = node.records;
    for (const size_t i : node.repeated)
      if (!runs_[i].empty()) told.push_back(i);
    for (const size_t i : told) {
      const NodeSummary& record = records_.nodes[i];
      if (!tookPart(record) || (manyRuns_ && runs_[i].empty()) || isImpostor(record)) continue;
      const bool ran = std::any_of(record.stages.begin(), record.stages.end(), [](const StageSummary& stage) {
        return stage.state == StageState::kRan && stage.groupNodes > 1;
      });
      const bool isWell = record.acceptance == Acceptance::kAccepted;  // it cannot have met nobody
      claims[{record.fleetId, record.nodeRank}][!runs_[i].empty() || ran || isWell ? runs_[i] : "met nobody"]
          .insert(node.name);
    }
  }
  std::vector<Clash> clashes;
  std::set<std::string> told;
  for (auto& [number, byRun] : claims) {
    const std::set<std::string> ofAnyRun = std::exchange(byRun[""], {});
    if (byRun.size() > 1) byRun.erase("");
    for (auto& [run, who] : byRun) {
      who.insert(ofAnyRun.begin(), ofAnyRun.end());
      // Who of them it was the others say.
      const std::string known = roster_.nodeOf(run, number.second);
      if (who.size() > 1 && who.contains(known)) {
        who.erase(known);
        for (const std::string& node : who)
          if (told.insert(node).second)
            clashes_.push_back(
                {{node},
                 fmt::format("{} says that it was node {} of the run, and most of the others that it "
                             "was {}",
                             node, number.second, known)});
      } else if (who.size() > 1) {
        clashes.push_back({who, fmt::format("each say that they were node {} of the run", number.second)});
      }
    }
  }
  return clashes;
}

std::vector<Clash> RunTable::rankClashes() const {
  std::set<std::pair<std::set<std::string>, std::string>> found;
  for (const auto& [key, group] : groups_)
    for (const auto& [rank, claims] : group.ranks)
      for (const Place& one : claims)
        for (const Place& other : claims)
          if (one.met && other.met && one.record->node < other.record->node &&
              one.record->nodeRank != other.record->nodeRank && !isImpostor(*one.record) &&
              !isImpostor(*other.record))
            found.insert({{one.record->node, other.record->node}, key.substr(0, key.find('\n'))});
  std::vector<Clash> clashes;
  for (const auto& [who, stage] : found)
    clashes.push_back(
        {who, fmt::format("each say that ranks of stage {} were their own", printable(stage, 200))});
  return clashes;
}

void RunTable::settle(std::vector<Clash> clashes) {
  std::map<std::string, std::set<std::string>> others;  // by node, those that claim what it claims
  for (const Clash& clash : clashes)
    for (const std::string& node : clash.nodes)
      for (const std::string& other : clash.nodes) {
        std::set<std::string>& known = others[node];
        if (known.size() == kMostNamed) break;
        if (node != other) known.insert(other);
      }
  const auto claimsSeveral = [&](const std::string& node) {
    const auto at = others.find(node);
    return at != others.end() && at->second.size() > 1;
  };
  for (const auto& [node, whose] : others)
    if (whose.size() > 1)
      clashes_.push_back({{node},
                          fmt::format("{} says that numbers or ranks of {} in the run were its own", node,
                                      shortNames({whose.begin(), whose.end()}))});
  for (Clash& clash : clashes) {
    std::erase_if(clash.nodes, claimsSeveral);
    if (clash.nodes.size() < 2) continue;
    clash.text = shortNames({clash.nodes.begin(), clash.nodes.end()}) + " " + clash.text;
    clashes_.push_back(std::move(clash));
  }
  for (auto& [key, group] : groups_)
    for (auto& [rank, claims] : group.ranks)
      if (claims.size() > 1)
        std::erase_if(claims, [&](const Place& claim) {
          return claimsSeveral(claim.record->node) || isImpostor(*claim.record);
        });
  for (auto& [run, numbers] : numbers_)
    for (auto& [number, who] : numbers)
      if (who.size() > 1) std::erase_if(who, claimsSeveral);
}

std::set<std::string> RunTable::clashingAlone() const {
  std::set<std::string> nodes;
  for (const Clash& clash : clashes_)
    if (clash.nodes.size() == 1) nodes.insert(*clash.nodes.begin());
  return nodes;
}

void RunTable::findDeserters() {
  later_ = std::make_unique<LaterMeetings>(*this, roster_, *records_.names);
  std::set<std::string> named = clashingAlone();
  const auto isAbsent = [&](const std::string& node, const StageOfRun& stage,
                            const Roster::Meeting& meeting) {
    if (!later_->isAccepted(node) || membersOf(stage).contains(node)) return false;
    const bool excused = later_->hasOne(node, stage, meeting);
    if (excused) excused_.emplace(stage, node);
    return !excused && !named.contains(node);
  };
  const auto tell = [&](std::set<std::string> about, const StageOfRun& stage, const std::string& who,
                        const std::set<std::string>& met) {
    std::vector<Clash>& clashes = about.size() == 2 ? pairs_ : clashes_;
    clashes.push_back({std::move(about),
                       fmt::format("no record of {} tells of stage {}, in which {} met {}",
                                   shortNames({met.begin(), met.end()}),
                                   printable(records_.names->texts[stage.second], 200), who,
                                   met.size() > 1 ? "them" : "it"),
                       kAllOrNone});
  };
  for (const auto& [stage, meeting] : roster_.meetings())
    for (const auto& [number, node] : meeting.nodes)
      if (isAbsent(node, stage, meeting)) {
        named.insert(node);
        tell({node}, stage, shortNames({meeting.speakers.begin(), meeting.speakers.end()}), {node});
      }
  // Where one alone speaks, either it or the only one that it misses may be lying; of several, it.
  for (const auto& [stage, meeting] : roster_.meetings()) {
    const std::string& who = *meeting.speakers.begin();
    if (meeting.speakers.size() > 1 || named.contains(who)) continue;
    std::set<std::string> absent;
    for (const std::string& node : meeting.named)
      if (node != who && isAbsent(node, stage, meeting)) absent.insert(node);
    if (absent.empty()) continue;
    named.insert(who);
    std::set<std::string> about{who};
    if (absent.size() == 1) about.insert(*absent.begin());
    tell(std::move(about), stage, who, absent);
  }
}

void RunTable::findAbsentees(const std::set<std::string>& expected) {
  std::map<std::string, std::set<std::string>> inRun;  // by run, whose records or names are known there
  for (const Entry& entry : entries_)
    if (!isAlone(*entry.record)) inRun[runOf(*entry.record)].insert(entry.record->node);
  for (const auto& [stage, meeting] : roster_.meetings())
    for (const auto& [number, node] : meeting.nodes) inRun[stage.first].insert(node);
  std::map<StageOfRun, std::set<std::string>> entered;
  std::set<StageOfRun> formed;
  std::map<uint32_t, std::set<std::string>> alone;  // by stage, who says that nobody else was in its run
  for (const Entry& entry : entries_) {
    const NodeSummary& record = *entry.record;
    const std::string run = runOf(record);
    for (const StageSummary& stage : record.stages) {
      if (!isOverNodes(stage)) continue;
      if (stage.state == StageState::kRan && stage.groupNodes > 1) formed.emplace(run, stage.name);
      if (stage.state == StageState::kError && !isAlone(record))
        entered[{run, stage.name}].insert(record.node);
      if (!entry.repeated && record.acceptance == Acceptance::kAccepted && inRun[run].size() < 2)
        alone[stage.name].insert(record.node);
    }
  }
  std::set<std::string> named = clashingAlone();
  for (const auto& [group, voices] : entered) {
    const auto& [run, stage] = group;
    std::set<std::string> known = inRun[run];
    for (const std::string& node : expected)
      if (!hasRecord(node)) known.insert(node);
    if (formed.contains(group) || static_cast<size_t>(std::max(0, sizeOf(group))) <= known.size()) continue;
    // One record says nothing of several nodes.
    if (voices.size() == 1 && alone[stage].size() > 1) continue;
    for (const std::string& node : alone[stage])
      if (!voices.contains(node) && named.insert(node).second)
        clashes_.push_back(
            {{node},
             fmt::format("{} says that nobody else was in its run, and that of {} lacked a node in stage {}",
                         node, shortNames({voices.begin(), voices.end()}),
                         printable(records_.names->texts[stage], 200))});
  }
}

void RunTable::findUnable(const std::set<std::string>& expected) {
  struct Said {
    std::string run;  ///< of one of them: those that met nobody are of runs that one can only guess at
    std::set<std::string> voices;
    int count = 0,
        number = -1;  ///< of nodes in their run, and which of them it was, as the last of them says
    std::string reason;
    double first = 0;  ///< when the first of their records ended
  };
  std::map<std::pair<StageOfRun, std::string>, Said> all;  // by fleet id, stage, and whom they name
  for (const Entry& entry : entries_) {
    const NodeSummary& record = *entry.record;
    if (entry.repeated) continue;
    for (const StageSummary& stage : record.stages) {
      if (stage.state != StageState::kSkipped || !isOverNodes(stage) || !wasUnable(stage.reason)) continue;
      for (const Mention& mention : accusedBy(stage.reason)) {
        if (mention.host == record.node) continue;
        Said& said = all[{{record.fleetId, stage.name}, mention.host}];
        said.run = runOf(record);
        said.first = said.voices.empty() ? record.finished : std::min(said.first, record.finished);
        said.voices.insert(record.node);
        said.count = record.nodeCount;
        said.number = mention.node;
        said.reason = stage.reason;
      }
    }
  }
  // Its failure is known, and a waiver of the fleet covers it.
  const auto isWaived = [&](const std::string& node) {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.record->node == node &&
             std::any_of(entry.record->waivers.begin(), entry.record->waivers.end(),
                         [&](const WaiverCount& one) {
                           return one.waiver < records_.names->givenWaivers.size() && one.covered > 0;
                         });
    });
  };
  const bool oneIsMissing = std::any_of(expected.begin(), expected.end(),
                                        [&](const std::string& node) { return !hasRecord(node); });
  const auto isVouchedFor = [&](const NodeSummary& record) {
    return roster_.knows(runOf(record), record.node);
  };
  // A node may call itself as it likes, also as one of another run, in which others met that one: then it is
  // who has the number that they tell.
  const auto whoWas = [&](const std::string& fleetId, const std::string& node,
                          const Said& said) -> std::string {
    bool isElsewhere = false;
    std::map<int, std::set<std::string>> claims;  // by number, of those who may have been in the run
    for (const Entry& entry : entries_) {
      const NodeSummary& record = *entry.record;
      const bool isOfIt = runOf(record) == said.run;
      if (record.node == node)
        isElsewhere = isElsewhere || (!isOfIt && isVouchedFor(record));
      else if (!entry.repeated && record.fleetId == fleetId && record.nodeCount == said.count &&
               (isOfIt || !isVouchedFor(record)))
        claims[record.nodeRank].insert(record.node);
    }
    if (!isElsewhere && (hasRecord(node) || expected.contains(node))) return node;
    if (std::any_of(claims.begin(), claims.end(), [](const auto& claim) { return claim.second.size() > 1; }))
      return "";  // of several runs
    if (const auto claim = claims.find(said.number); claim != claims.end()) return *claim->second.begin();
    return oneIsMissing ? "" : node;
  };
  // It was resumed when the others had gone on without it, and says the same of that stage.
  const auto saysSo = [&](const std::string& node, uint32_t stageName, const Said& said) {
    if (!wasStoppedBefore(said.reason)) return false;
    for (const Entry& entry : entries_)
      for (const StageSummary& stage : entry.record->stages)
        if (entry.record->node == node && stage.name == stageName && stage.state == StageState::kSkipped &&
            stage.reason == said.reason)
          return true;
    return false;
  };
  std::set<std::string> named = clashingAlone();
  for (const auto& [about, said] : all) {
    const StageOfRun& stage = about.first;
    const std::string node = whoWas(stage.first, about.second, said);
    std::set<std::string> voices = said.voices;
    voices.erase(node);
    if (voices.size() < 2 || !later_->isAccepted(node) || later_->wasMetAfter(node, said.first, said.run) ||
        isWaived(node) || saysSo(node, stage.second, said) || !named.insert(node).second)
      continue;
    clashes_.push_back(
        {{node},
         fmt::format("{} is accepted by its own record, and {} say in stage {}: {}", node,
                     shortNames({voices.begin(), voices.end()}),
                     printable(records_.names->texts[stage.second], 200), printable(said.reason, 300))});
  }
}

namespace {

/// What one asks of several nodes, and what each answers.
struct Question {
  std::string about;                                       ///< "stage ring of all nodes"
  std::map<std::string, std::set<std::string>> answers{};  ///< who gives them
};

/// Who answers otherwise than most; where most do not agree, all.
std::vector<Clash> oddAnswers(const Question& question) {
  std::set<std::string> all;
  for (const auto& [answer, who] : question.answers) all.insert(who.begin(), who.end());
  const auto most = std::find_if(question.answers.begin(), question.answers.end(), [&](const auto& answer) {
    return isMajority(answer.second.size(), all.size());
  });
  std::vector<Clash> odd;
  std::vector<std::string> said;
  for (const auto& [answer, who] : question.answers) {
    const std::string names = shortNames({who.begin(), who.end()});
    said.push_back(fmt::format("{} by {}", answer, names));
    if (most != question.answers.end() && answer != most->first)
      odd.push_back({who, fmt::format("{} is {} in the record of {}, and {} in most others", question.about,
                                      answer, names, most->first)});
  }
  if (odd.empty() && said.size() > 1)
    odd.push_back({all, fmt::format("nodes do not agree on {}: {}", question.about, join(said, ", "))});
  return odd;
}

}  // namespace

/// They would escape what the others say of them, or the others would seem to speak of somebody else.
void RunTable::findOdd() {
  std::map<std::pair<std::string, uint32_t>, Question> questions;
  const auto ask = [&](const std::string& what, const std::string& among, const NodeSummary& record,
                       const StageSummary& stage, const std::string& answer) {
    Question& question = questions[{what + "\n" + among, stage.name}];
    question.about = fmt::format("{} of stage {}", what, printable(records_.names->texts[stage.name], 200));
    question.answers[answer].insert(record.node);
  };
  for (const Entry& entry : entries_) {
    const NodeSummary& record = *entry.record;
    for (const StageSummary& stage : record.stages) {
      if (!entry.repeated) ask("the scope", "", record, stage, std::string(nameOf(stage.scope)));
      if (!isOverNodes(stage) || isAlone(record)) continue;
      const std::string& id = groupId(stage);
      if (stage.state == StageState::kRan)
        ask("the group", "", record, stage, id.empty() ? "not told" : "told");
      if (stage.groupNodes > 0 && (stage.state == StageState::kRan || stage.state == StageState::kIdle))
        ask("the number of nodes in the group", runOf(record), record, stage,
            std::to_string(stage.groupNodes));
      if (stage.state == StageState::kRan && !id.empty())
        ask("the number of ranks in the group", id, record, stage, std::to_string(stage.worldSize));
    }
  }
  for (const auto& [key, question] : questions)
    for (Clash& clash : oddAnswers(question))
      (clash.nodes.size() == 2 ? pairs_ : clashes_).push_back(std::move(clash));
}

void RunTable::settlePairs() {
  std::map<std::string, std::set<std::string>> others;
  for (const Clash& pair : pairs_) {
    others[*pair.nodes.begin()].insert(*pair.nodes.rbegin());
    others[*pair.nodes.rbegin()].insert(*pair.nodes.begin());
  }
  const auto contradictsSeveral = [&](const std::string& node) { return others.at(node).size() > 1; };
  for (Clash& pair : pairs_) {
    if (std::any_of(pair.nodes.begin(), pair.nodes.end(), contradictsSeveral))
      std::erase_if(pair.nodes, [&](const std::string& node) { return !contradictsSeveral(node); });
    clashes_.push_back(std::move(pair));
  }
}

RecordChecks RunTable::check(FleetNodes& nodes) const {
  RecordChecks checks;
  const auto add = [&](RecordFinding finding, const std::vector<size_t>& about) {
    finding.kind = FindingKind::kBinding;
    if (finding.next.empty()) finding.next = kRunTogether;
    checks.findings.push_back(settled(std::move(finding), about, NodeState::kIncomplete, records_, nodes));
  };
  std::vector<std::string> runs = runs_;
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i].empty()) runs[i] = records_.nodes[i].fleetId;
  const std::map<std::string, int> counts =
      manyRuns_ ? std::map<std::string, int>() : agreedCounts(nodes, runs);
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const size_t i : nodes[n].records) {
      const NodeSummary& record = records_.nodes[i];
      const auto most = counts.find(runs[i]);
      if (most == counts.end() || most->second == record.nodeCount || !tookPart(record)) continue;
      RecordFinding finding;
      finding.text =
          fmt::format("the record of {} ({}) says that its run had {} nodes, and those of most say {}",
                      nodes[n].name, printable(record.path), record.nodeCount, most->second);
      add(std::move(finding), {n});
    }
  for (const Clash& clash : clashes_) {
    std::vector<size_t> about;
    for (size_t n = 0; n < nodes.size(); ++n)
      if (clash.nodes.contains(nodes[n].name)) about.push_back(n);
    RecordFinding finding;
    finding.text = clash.text;
    finding.next = clash.next;
    add(std::move(finding), about);
  }
  return checks;
}

}  // namespace muster::fleet
