// SPDX-License-Identifier: Apache-2.0
// Attributes each failure to a part, using the records of all nodes.
#include "reports/fleet/blame/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "reports/fleet/blame/culprit.h"
#include "reports/fleet/blame/findings.h"
#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/read/cause.h"
#include "reports/fleet/read/waived_record.h"
#include "runner/core/majority.h"
#include "runner/core/text.h"
#include "runner/judge/judge.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostParts = 3;  ///< named in one reason

const StageSummary* stageOf(const DeviationSummary& deviation, const NodeSummary& record) {
  const auto found = std::find_if(record.stages.begin(), record.stages.end(),
                                  [&](const StageSummary& stage) { return stage.name == deviation.stage; });
  return found == record.stages.end() ? nullptr : &*found;
}

/// Whom the record holds to have ended the stage, or why it did not begin.
const std::string& saidOf(const StageSummary& stage) {
  return stage.state == StageState::kError ? stage.reason : stage.culprit;
}

bool accuses(const std::string& said, int node) {
  const std::vector<Mention> mentions = accusedBy(said);
  return std::any_of(mentions.begin(), mentions.end(),
                     [&](const Mention& mention) { return mention.node == node; });
}

/// And nobody else: what is believed of that node must not reach others.
bool accusesOnly(const std::string& said, int node) {
  const std::vector<Mention> mentions = accusedBy(said);
  return !mentions.empty() && std::all_of(mentions.begin(), mentions.end(),
                                          [&](const Mention& mention) { return mention.node == node; });
}

/// How many nodes node 0 waited for in vain, and of how many: "2 of 3 nodes did not arrive: …".
std::optional<std::pair<size_t, size_t>> absentNodes(const std::string& said) {
  static const std::regex kAbsent("([0-9]{1,7}) of ([0-9]{1,7}) nodes did not arrive: ");
  std::smatch counts;
  if (!std::regex_search(said, counts, kAbsent, std::regex_constants::match_continuous)) return std::nullopt;
  return std::pair(std::stoul(counts[1]), std::stoul(counts[2]));
}

Suspect nodeSuspect(const std::string& node) {
  Suspect suspect;
  suspect.kind = SuspectKind::kNode;
  suspect.node = node;
  return suspect;
}

Suspect railSuspect(const std::string& rail) {
  Suspect suspect;
  suspect.kind = SuspectKind::kRail;
  suspect.what = rail;
  suspect.located = true;
  return suspect;
}

/// "ring" of "ring.device_bandwidth".
std::string pluginOf(const DeviationSummary& d, const FleetNames& names) {
  const std::string& metric = names.texts[d.metric];
  return metric.substr(0, metric.find('.'));
}

/// A switch, or a rail of all nodes: no node's own part, and each node on it says so.
bool isOfTheFabric(const Suspect& suspect) {
  return suspect.kind == SuspectKind::kSwitch || (suspect.kind == SuspectKind::kRail && suspect.node.empty());
}

bool isAbout(const Suspect& suspect, const std::string& node) {
  const std::vector<std::string> nodes = nodesOf(suspect);
  // Of a link that fails either end may be the cause: the finding is the link's.
  return nodes.size() == 1 && nodes.front() == node;
}

}  // namespace

BlameTable::BlameTable(const FleetRecords& records, const RunTable& runs, const FleetNodes& nodes,
                       std::set<std::string> clusterNodes)
    : records_(records), runs_(runs), clusterNodes_(std::move(clusterNodes)) {
  for (const FleetNode& node : nodes) expected_.insert(node.name);
  for (const RunTable::Entry& entry : runs.entries()) addRecord(*entry.record, entry.repeated);
  for (const RunTable::Entry& entry : runs.entries()) {
    if (entry.repeated) continue;
    collectAbsent(*entry.record);
    collectOutsiders(*entry.record);
  }
  believeTheAbsent();
  for (const auto& [stage, rails] : railSays_)
    for (const auto& [rail, nodes] : rails)
      if (isMajority(nodes.size(), runs.membersOf(stage).size()))
        slowRails_[stage].emplace(rail, railSuspect(rail.first));
  for (auto& [group, data] : wrongData_) believeTheReceivers(group, data);
}

void BlameTable::addRecord(const NodeSummary& record, bool repeated) {
  const std::string run = runs_.runOf(record);
  for (const StageSummary& stage : record.stages) {
    if (stage.scope == Scope::kDevice || stage.state == StageState::kElsewhere ||
        runs_.isOfOneNode(stage, record))
      continue;
    const StageOfRun key(run, stage.name);
    if (stage.state == StageState::kRan &&
        std::none_of(record.deviations.begin(), record.deviations.end(),
                     [&](const DeviationSummary& d) { return d.stage == stage.name; }))
      content_.emplace(key, record.node);
    if (runs_.leads(record) && !(repeated && leaderSays_.contains(key))) {
      LeaderSaid& leader = leaderSays_[key];
      leader.text = saidOf(stage);
      leader.resumed = record.resumed;
    }
  }
  for (const DeviationSummary& d : record.deviations) {
    const Suspect culprit = culpritOf(d, record);
    if (isAbout(culprit, record.node)) confessed_.emplace(run, d.stage, d.metric, record.node);
    if (culprit.kind == SuspectKind::kRail && culprit.node.empty() && d.outcome == Outcome::kFail)
      railSays_[{run, d.stage}][{culprit.what, pluginOf(d, *records_.names)}].insert(record.node);
  }
  for (const DeviationSummary& d : record.deviations)
    if (d.cause == Cause::kPeer && !repeated)
      for (const Mention& mention : accusedBy(d.source))
        accusers_[{run, d.stage}][mention.node].insert(record.node);
  for (const DeviationSummary& d : record.deviations)
    if (d.cause == Cause::kRank && !d.source.empty() && stageOf(d, record) != nullptr)
      wrongData_[groupOf(d, record)].sources[d.metric][d.source].insert(record.node);
}

/// Counts those that were there, though node 0 says that they did not arrive; and keeps what one says of
/// itself that node 0 lost with all others.
void BlameTable::collectAbsent(const NodeSummary& record) {
  for (const StageSummary& stage : record.stages) {
    const auto at = leaderSays_.find({runs_.runOf(record), stage.name});
    if (at == leaderSays_.end()) continue;
    LeaderSaid& leader = at->second;
    const bool skipped = stage.state == StageState::kSkipped;
    const std::string& said = skipped ? stage.reason : saidOf(stage);
    const bool lostAll = leader.text.find(" lost every other node: ") != std::string::npos;
    if (lostAll && record.nodeRank != 0 && accusesOnly(said, record.nodeRank)) leader.confession = said;
    if (!absentNodes(leader.text)) continue;
    const bool finished = stage.state == StageState::kRan && said.empty() && record.resumed < leader.resumed;
    if (!(finished || accusesOnly(said, 0)) || !accuses(leader.text, record.nodeRank)) continue;
    leader.absentSay = finished ? "node 0 was restarted after others had finished this stage" : said;
    leader.absent.insert(record.node);
    if (record.resumed < leader.resumed) leader.earlier.insert(record.node);
  }
}

/// Node 0 is not believed where it died in the stage and was started again, when the runs of the others had
/// ended, nor where it met nobody: then its own link is at fault, and not those of all others.
void BlameTable::believeTheAbsent() {
  for (auto& [stage, leader] : leaderSays_) {
    if (!leader.confession.empty()) leader.text = leader.confession;
    const auto absent = absentNodes(leader.text);
    const bool metNobody = absent && absent->first + 1 == absent->second;
    // One of many could say so to hide that it was absent.
    const bool startedLater =
        !leader.earlier.empty() && 2 * leader.earlier.size() + 1 > runs_.membersOf(stage).size();
    if (startedLater || (leader.absent.size() > 1 && metNobody)) leader.text = leader.absentSay;
  }
}

/// Of these names those of nodes that have records, but none of the group's run.
std::set<std::string> BlameTable::outsidersOf(const std::vector<std::string>& names,
                                              const StageOfRun& group) const {
  std::set<std::string> found;
  const auto& members = runs_.membersOf(group);
  if (members.empty()) return found;
  for (const std::string& name : names)
    if (std::string node = expectedName(name); runs_.hasRecord(node) && !members.contains(node))
      found.insert(std::move(node));
  return found;
}

std::set<std::string> BlameTable::outsidersIn(const std::string& text, const StageOfRun& group) const {
  std::vector<std::string> names;
  for (const Mention& mention : accusedBy(text)) names.push_back(mention.host);
  return outsidersOf(names, group);
}

/// Collects the nodes outside of its group of which a record speaks.
void BlameTable::collectOutsiders(const NodeSummary& record) {
  std::set<std::string>& found = outsiders_[record.node];
  for (const DeviationSummary& d : record.deviations) {
    const StageOfRun group(runs_.runOf(record), d.stage);
    if (d.cause == Cause::kOwn) found.merge(outsidersOf(labelledNodes(d), group));
    if (d.cause == Cause::kPeer) found.merge(outsidersIn(d.source, group));
  }
  for (const StageSummary& stage : record.stages)
    found.merge(outsidersIn(saidOf(stage), StageOfRun(runs_.runOf(record), stage.name)));
}

/// Whether a group may name so many nodes that have records of other groups, and deny it: as many as it
/// lacks, and one where nobody else was in it.
bool BlameTable::mayNameOutsiders(size_t count, const StageOfRun& group) const {
  const size_t met = runs_.membersOf(group).size();
  return count == 0 || (met + count <= static_cast<size_t>(runs_.sizeOf(group)) && (met > 1 || count == 1));
}

/// A node's data were wrong if it says so itself, or two others that name no other node. Who alone names
/// another, or names several, may have damaged what it received or passed on.
void BlameTable::believeTheReceivers(const std::string& group, WrongData& data) const {
  for (const auto& [metric, sources] : data.sources) {
    std::map<std::string, std::set<std::string>> named;  // by who says so, the nodes
    for (const auto& [source, speakers] : sources)
      for (const std::string& speaker : speakers)
        if (const RunTable::Place* place = runs_.placeOf(group, std::atoi(source.c_str()), speaker))
          named[speaker].insert(place->record->node);
    std::map<std::string, size_t> voices;
    for (const auto& [speaker, nodes] : named)
      for (const std::string& node : nodes)
        if (speaker == node || nodes.size() == 1) voices[node] += speaker == node ? 2 : 1;
    for (const auto& [node, count] : voices)
      if (count > 1) data.senders[metric].insert(node);
  }
}

Blame BlameTable::of(const DeviationSummary& d, const NodeSummary& record) const {
  switch (d.cause) {
    case Cause::kStopped:
      return {};
    case Cause::kNeed:
      return {{}, false, ""};
    case Cause::kPeer:
      return ofPeer(d, record);
    case Cause::kRank:
      return ofRank(d, record);
    case Cause::kGroup:
      return ofGroup(d, record);
    case Cause::kOwn:
      break;
  }
  return ofOwn(d, record);
}

std::optional<Suspect> BlameTable::pairOf(const DeviationSummary& d, const NodeSummary& record) const {
  const StageSummary* stage = stageOf(d, record);
  const int peer = peerNode(d);
  if (stage == nullptr || runs_.isOfOneNode(*stage, record)) return std::nullopt;
  if (peer < 0 || peer >= record.nodeCount || peer == record.nodeRank) return std::nullopt;
  const std::string run = runs_.runOf(record);
  std::string other = runs_.nodeOf(run, peer);
  // Nobody claims the number: who had it when they met.
  if (other.empty() && runs_.nodesOf(run, peer).empty()) other = runs_.namedBy(record, *stage, peer);
  if (!expected_.contains(other)) other.clear();
  // The other end left no record, or not one that says which node it is: it may be at fault all the same.
  const bool known = !other.empty() && other != record.node && mayName(other, d, record);
  Suspect link;
  link.kind = SuspectKind::kLink;
  link.what = linkName(record.node, known ? other : fmt::format("node {}", peer));
  link.ofPair = link.located = true;
  // None of those that each say they were the other end is known to be well.
  if (!known)
    for (const std::string& node : runs_.nodesOf(run, peer))
      if (node != record.node && mayName(node, d, record)) link.partners.insert(node);
  return link;
}

Blame BlameTable::ofOwn(const DeviationSummary& d, const NodeSummary& record) const {
  if (!outsider(d, record).empty()) {
    if (const StageSummary* stage = stageOf(d, record); stage == nullptr || runs_.isOfOneNode(*stage, record))
      return {{ownPart(d, record)}, true, ""};
    // It is incomplete for that (checkBlame), and not rejected: who is missing others can claim to be.
    return {{}, false, ""};
  }
  // Either end may be at fault, so the one that reports it is not rejected for it.
  if (std::optional<Suspect> link = pairOf(d, record)) return {{std::move(*link)}, false, ""};
  Suspect suspect = culpritOf(d, record);
  if (suspect.kind == SuspectKind::kGroup) return ofGroup(d, record);
  if (const StageSummary* stage = stageOf(d, record); stage == nullptr || runs_.isOfOneNode(*stage, record)) {
    // Whatever it names is a part of this node: "node rank3" of a ring within it.
    if (suspect.kind == SuspectKind::kNode && suspect.node != record.node) {
      suspect.kind = SuspectKind::kDevice;
      suspect.what = suspect.node;
    }
    suspect.node = record.node;
    return {{std::move(suspect)}, true, ""};
  }
  const bool own = isAbout(suspect, record.node);
  // Node 0 reports for all; another member has a say in what is its own, and in its links
  // (plugins/ring/report.h).
  const std::vector<std::string> named = nodesOf(suspect);
  const bool endOf = std::find(named.begin(), named.end(), record.node) != named.end();
  // Who is node 0 nobody knows where two say that they were: they are incomplete, and nobody is rejected for
  // it.
  if (const std::set<std::string>& first = runs_.nodesOf(runs_.runOf(record), 0);
      !endOf && first.size() > 1 && first.contains(record.node))
    return {{}, false, ""};
  if (own && !suspect.located)
    if (const Suspect* rail = limitingRail(d, record)) return {{*rail}, false, ""};
  // A switch, and a rail of which most say so, are no node's own parts.
  const bool isRail = suspect.kind == SuspectKind::kRail && suspect.node.empty();
  if (isRail ? !isSlow(suspect.what, d, record)
             : !endOf && !runs_.leads(record) && suspect.kind != SuspectKind::kSwitch)
    return {{ownPart(d, record)}, true, ""};
  suspect.contested = !endOf && named.size() == 1 && denies(named.front(), d, record);
  return {{std::move(suspect)}, own, ""};
}

bool BlameTable::isSlow(const std::string& rail, const DeviationSummary& d, const NodeSummary& record) const {
  const auto rails = slowRails_.find({runs_.runOf(record), d.stage});
  return rails != slowRails_.end() && rails->second.contains({rail, pluginOf(d, *records_.names)});
}

const Suspect* BlameTable::limitingRail(const DeviationSummary& d, const NodeSummary& record) const {
  const auto rails = slowRails_.find({runs_.runOf(record), d.stage});
  if (rails == slowRails_.end() || d.cause != Cause::kOwn || d.outcome != Outcome::kFail ||
      gradeOf(d, *records_.names) != FindingClass::kLimit || culpritOf(d, record).located)
    return nullptr;
  const std::string ofRail = labelOf(d, "rail"), plugin = pluginOf(d, *records_.names);
  for (const auto& [rail, suspect] : rails->second)
    if (rail.second == plugin && (ofRail.empty() || ofRail == "all" || "rail " + ofRail == rail.first))
      return &suspect;
  return nullptr;
}

/// Every node reports what concerns itself, so that node 0's word of it does not stand alone, also where the
/// other one had no part in the stage.
bool BlameTable::denies(const std::string& node, const DeviationSummary& d, const NodeSummary& record) const {
  return runs_.hasRecord(node) && !confessed_.contains({runs_.runOf(record), d.stage, d.metric, node});
}

bool BlameTable::mayName(const std::string& node, const DeviationSummary& d,
                         const NodeSummary& record) const {
  if (node == record.node) return true;
  const StageSummary* stage = stageOf(d, record);
  if (stage == nullptr || runs_.isOfOneNode(*stage, record)) return false;
  if (!clusterNodes_.empty() && !clusterNodes_.contains(node)) return false;
  const auto& members = runs_.membersOf({runs_.runOf(record), stage->name});
  // All skipped it, as where one cannot take part: that changes nothing for it.
  if (members.empty()) return d.outcome == Outcome::kSkipped;
  if (members.contains(node)) return true;
  // Who left no record at all is reached by everybody: that changes nothing for it.
  if (!runs_.hasRecord(node)) return true;
  const auto named = outsiders_.find(record.node);
  const size_t count = named == outsiders_.end() ? 0 : named->second.size();
  return mayNameOutsiders(std::max<size_t>(count, 1), {runs_.runOf(record), stage->name});
}

bool BlameTable::mayName(const Suspect& part, const DeviationSummary& d, const NodeSummary& record) const {
  const StageSummary* stage = stageOf(d, record);
  if (stage == nullptr || runs_.isOfOneNode(*stage, record)) return part.node == record.node;
  return part.node.empty() || mayName(part.node, d, record);
}

std::string BlameTable::outsider(const DeviationSummary& d, const NodeSummary& record) const {
  if (d.cause == Cause::kPeer) {
    for (const Mention& mention : accusedBy(sourceOf(d, record)))
      if (const Suspect part = partOf(mention, d, record); !mayName(part, d, record))
        return part.node.empty() ? part.name() : part.node;
  } else if (d.cause == Cause::kOwn) {
    for (const std::string& name : labelledNodes(d))
      if (std::string node = expectedName(name); !node.empty() && !mayName(node, d, record)) return node;
  }
  return "";
}

Blame BlameTable::ofGroup(const DeviationSummary& d, const NodeSummary& record) const {
  const StageSummary* stage = stageOf(d, record);
  if (stage == nullptr || runs_.isOfOneNode(*stage, record)) return {{nodeSuspect(record.node)}, true, ""};
  Suspect suspect;
  suspect.kind = SuspectKind::kGroup;
  const std::string& metric = records_.names->texts[d.metric];
  suspect.what = printable(records_.names->texts[d.stage]) + (metric.empty() ? "" : ", " + printable(metric));
  suspect.wrongData = d.cause == Cause::kRank;
  Blame blame{{std::move(suspect)}, false, ""};
  if (d.cause != Cause::kOwn) blame.members = &runs_.nodesOfGroup(groupOf(d, record));
  return blame;
}

Suspect BlameTable::deviceOf(const RunTable::Place& place) const {
  if (place.device < 0 || static_cast<size_t>(place.device) >= place.record->devices.size())
    return nodeSuspect(place.record->node);
  Suspect suspect;
  suspect.kind = SuspectKind::kDevice;
  suspect.node = place.record->node;
  suspect.what = place.record->devices[static_cast<size_t>(place.device)].id;
  suspect.serial = serialOf(place.record, suspect.what);
  return suspect;
}

/// Empty where its record lacks the stage.
std::string BlameTable::groupOf(const DeviationSummary& d, const NodeSummary& record) const {
  const StageSummary* stage = stageOf(d, record);
  return stage == nullptr ? "" : runs_.groupOf(*stage, record);
}

Blame BlameTable::ofRank(const DeviationSummary& d, const NodeSummary& record) const {
  const std::string group = groupOf(d, record);
  const auto data = wrongData_.find(group);
  std::string source = d.source;
  if (data == wrongData_.end()) return ofGroup(d, record);
  // Who cannot tell the rank believes those of its group who can.
  const auto& sources = data->second.sources;
  if (const auto known = sources.find(d.metric); source.empty() && known != sources.end())
    source = std::max_element(known->second.begin(), known->second.end(), [](const auto& a, const auto& b) {
               return a.second.size() < b.second.size();
             })->first;
  if (source.empty()) return ofGroup(d, record);
  const RunTable::Place* place = runs_.placeOf(group, std::atoi(source.c_str()), record.node);
  if (place == nullptr) return ofGroup(d, record);
  const std::string& sender = place->record->node;
  const auto& believed = data->second.senders;
  const auto senders = believed.find(d.metric);
  const bool ownWord = sender == record.node && !d.source.empty();
  if (!ownWord && (senders == believed.end() || !senders->second.contains(sender))) return ofGroup(d, record);
  return {{deviceOf(*place)}, sender == record.node, "rank " + source};
}

Suspect BlameTable::partOf(const Mention& mention, const DeviationSummary& d,
                           const NodeSummary& record) const {
  if (mention.rank >= 0)
    if (const RunTable::Place* place = runs_.placeOf(groupOf(d, record), mention.rank, record.node))
      return deviceOf(*place);
  Suspect suspect = nodeSuspect("");
  const std::string run = runs_.runOf(record);
  suspect.node = mention.node < 0 ? record.node : runs_.nodeOf(run, mention.node);
  const std::string host = expectedName(mention.host);
  // The number of one that met nobody is a guess.
  if (suspect.node.empty() || (!host.empty() && !runs_.hasRecord(host) && !runs_.hasMet(run, suspect.node)))
    suspect.node = host;
  // Hosts call themselves what they like, also by the name of another rank of the run.
  const bool taken = mention.node >= 0 && runs_.hasOtherNumber(run, suspect.node, mention.node);
  if (taken) suspect.node.clear();
  if (suspect.node.empty())
    suspect.what = mention.host.empty() || taken ? std::to_string(mention.node) : mention.host;
  if (mention.rank >= 0 && !mention.device.empty() && !suspect.node.empty()) {
    suspect.kind = SuspectKind::kDevice;
    suspect.what = mention.device;
  }
  return suspect;
}

/// Hosts may call themselves by their full names.
std::string BlameTable::expectedName(const std::string& host) const {
  if (expected_.contains(host)) return host;
  const std::string shortName = host.substr(0, host.find('.'));
  return expected_.contains(shortName) ? shortName : "";
}

std::string BlameTable::sourceOf(const DeviationSummary& d, const NodeSummary& record) const {
  const StageSummary* stage = stageOf(d, record);
  if (stage == nullptr || runs_.isOfOneNode(*stage, record)) return d.source;
  // Who accuses itself is believed, whatever node 0 made of it.
  if (record.nodeRank != 0 && accuses(d.source, record.nodeRank)) return d.source;
  // Node 0 hears all of them: what it found counts, not what one node could see of it. Two that claim to be
  // it are none.
  const bool single = !runs_.nodeOf(runs_.runOf(record), 0).empty();
  const StageOfRun group(runs_.runOf(record), d.stage);
  const auto said = leaderSays_.find(group);
  if (!single || said == leaderSays_.end() || accusedBy(said->second.text).empty()) return d.source;
  // Nor is it heard where it names more nodes of other groups than it may.
  const auto named = outsiders_.find(runs_.nodeOf(group.first, 0));
  const size_t count = std::max(named == outsiders_.end() ? 0 : named->second.size(),
                                outsidersIn(said->second.text, group).size());
  return mayNameOutsiders(count, group) ? said->second.text : d.source;
}

bool BlameTable::isHearsay(const Mention& mention, const std::string& source, const DeviationSummary& d,
                           const NodeSummary& record) const {
  const StageOfRun stage(runs_.runOf(record), d.stage);
  if (mention.node < 0 || runs_.nodesOf(stage.first, mention.node).contains(record.node)) return false;
  const auto leader = leaderSays_.find(stage);
  if (leader != leaderSays_.end() && leader->second.text == source) return false;
  if (leader == leaderSays_.end() && runs_.nodesOf(stage.first, mention.node).empty()) return false;
  const auto of = accusers_.find(stage);
  if (of == accusers_.end()) return true;
  const auto accusers = of->second.find(mention.node);
  return accusers == of->second.end() || accusers->second.size() < 2;
}

Blame BlameTable::ofPeer(const DeviationSummary& d, const NodeSummary& record) const {
  const std::string source = sourceOf(d, record);
  std::vector<Mention> accused = accusedBy(source);
  std::erase_if(accused, [&](const Mention& mention) {
    return !mention.interrupted && isHearsay(mention, source, d, record);
  });
  if (accused.empty()) {
    Blame blame = ofGroup(d, record);
    blame.why = source;
    return blame;
  }
  Blame blame{{}, false, source};
  std::set<std::string> named;  // a text may name a part many times, but it speaks against it once
  for (const Mention& mention : accused) {
    Suspect part = partOf(mention, d, record);
    if (!mayName(part, d, record)) part = ownPart(d, record);
    part.contested = content_.contains({{runs_.runOf(record), d.stage}, part.node});
    blame.own = blame.own || isAbout(part, record.node);
    if (!mention.interrupted && named.insert(part.name()).second) blame.parts.push_back(std::move(part));
  }
  return blame;
}

namespace {

std::string cannotBeTold(const std::string& who, const std::string& line) {
  return fmt::format(
      "whether it is faulty itself cannot be told: affected by {} ({}); find what failed there, then retest "
      "this node",
      who, line);
}

std::string atEitherEnd(const std::string& link, const std::string& line) {
  return fmt::format(
      "affected by {} ({}): the fault may be at either end, unless a finding names one; repair that, then "
      "retest this node",
      link, line);
}

/// Of a link that failed; its fault may be a port of the node.
std::string atOneEnd(const std::string& link, const std::string& line = "") {
  return fmt::format("one end of {}{}: check the cable and the ports at both ends, then retest this node",
                     link, line.empty() ? " that failed" : " (" + line + ")");
}

/// The node's record as if what speaks against others had passed.
class OwnVerdict {
 public:
  OwnVerdict(const FleetRecords& records, const BlameTable& blame, const FleetNode& node)
      : records_(records), node_(node.name) {
    for (const size_t i : node.records) look(records.nodes[i], blame);
  }

  [[nodiscard]] bool hasOthers() const { return others_ > 0; }
  /// The worst of its records: 0 accepted, 1 incomplete, 2 rejected.
  [[nodiscard]] int badness() const { return badness_; }
  [[nodiscard]] const std::string& ownReason() const { return ownReason_; }
  /// Whether the fleet knows more of its cause than its record.
  [[nodiscard]] bool toldAnew() const { return toldAnew_; }

  [[nodiscard]] std::string othersReason() const {
    if (names_.empty()) return "what it reports of others counts for nobody";
    std::string who = join(names_, ", ");
    if (seen_.size() > names_.size()) who += fmt::format(" and {} more", seen_.size() - names_.size());
    if (!located_) return ofPair_ ? atEitherEnd(who, line_) : cannotBeTold(who, line_);
    if (!elsewhere_ && (ownLinks_ || !ofFabric_)) return atOneEnd(who, line_);
    return fmt::format("not faulty itself: affected by {} ({}); repair that, then retest this node", who,
                       line_);
  }

 private:
  void look(const NodeSummary& record, const BlameTable& blame) {
    Accounting sum = record.accounting;
    // A flake that its plan allows is no reason, also beside one that its plan does not.
    takeOut(Outcome::kFlaky, record.allowedFlaky, sum);
    const DeviationSummary* worst = nullptr;
    // A stage that was skipped for a failed prerequisite is excused by the prerequisite's own failure.
    const bool excused =
        std::any_of(record.deviations.begin(), record.deviations.end(),
                    [](const DeviationSummary& d) { return d.blocks && d.cause != Cause::kNeed; });
    for (const DeviationSummary& d : record.deviations) {
      if (!d.blocks) continue;
      const Blame found = blame.of(d, record);
      if (found.own || (d.cause == Cause::kNeed && !excused)) {
        if (worst == nullptr) worst = &d;
        continue;
      }
      ++others_;
      takeOut(d.outcome, d.times, sum);
      if (d.outcome == Outcome::kSkipped) sum.requiredSkips -= d.times;
      name(found, d);
    }
    const Decision decision = decideAnew(record, sum);
    const int bad = decision.acceptance == Acceptance::kAccepted   ? 0
                    : decision.acceptance == Acceptance::kRejected ? 2
                                                                   : 1;
    if (bad <= badness_) return;
    badness_ = bad;
    ownReason_ = join(decision.reasons, "; ");
    if (worst != nullptr) ownReason_ += "; " + lineOf(*worst, blame.of(*worst, record));
    toldAnew_ = worst != nullptr && worst->cause != Cause::kOwn;
  }

  static void takeOut(Outcome outcome, uint64_t times, Accounting& sum) {
    sum.counts[static_cast<size_t>(outcome)] -= times;
    sum.counts[static_cast<size_t>(Outcome::kPass)] += times;
  }

  static std::string whyText(const DeviationSummary& d, const Blame& found) {
    return (d.cause == Cause::kRank ? "wrong results come from " : "") + printable(found.why, 200);
  }

  /// What the node answers for, and by which of its parts where others could tell.
  [[nodiscard]] std::string lineOf(const DeviationSummary& d, const Blame& found) const {
    if (d.cause == Cause::kOwn || found.parts.empty() || found.why.empty())
      return deviationLine(d, *records_.names);
    return fmt::format("{}: {}: {} ({})", outcomeName(d.outcome), printable(records_.names->texts[d.stage]),
                       found.parts.front().name(), whyText(d, found));
  }

  void name(const Blame& found, const DeviationSummary& d) {
    if (line_.empty() && d.cause != Cause::kNeed)
      line_ = found.why.empty() ? deviationLine(d, *records_.names) : whyText(d, found);
    // Of a pair either end may be the cause, and of a group each member.
    const bool ofPair = !found.parts.empty() && found.parts.front().ofPair;
    ofPair_ = ofPair_ || ofPair;
    const bool located = found.parts.empty() || (found.parts.front().kind != SuspectKind::kGroup && !ofPair);
    located_ = located_ || located;
    const bool ofFabric = !found.parts.empty() && isOfTheFabric(found.parts.front());
    ofFabric_ = ofFabric_ || ofFabric;
    ownLinks_ = ownLinks_ || (located && isAllLinksOfNode(found.parts));
    elsewhere_ = elsewhere_ || (located && !ofFabric && !isAllLinksOfNode(found.parts));
    for (const Suspect& part : found.parts)
      if (std::string name = part.name(); seen_.insert(name).second && names_.size() < kMostParts)
        names_.push_back(std::move(name));
    if (found.parts.empty() && d.cause == Cause::kPeer && names_.empty() &&
        seen_.insert("another node's end").second)
      names_.emplace_back("another node's end");
  }

  [[nodiscard]] bool isAllLinksOfNode(const std::vector<Suspect>& parts) const {
    return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const Suspect& part) {
      const std::vector<std::string> ends = nodesOf(part);
      return part.kind == SuspectKind::kLink && std::find(ends.begin(), ends.end(), node_) != ends.end();
    });
  }

  const FleetRecords& records_;
  const std::string& node_;
  size_t others_ = 0;
  int badness_ = 0;
  std::string ownReason_;
  bool toldAnew_ = false;
  std::string line_;
  std::vector<std::string> names_;  ///< the first kMostParts
  std::set<std::string> seen_;      ///< all
  bool located_ = false;            ///< one of them is a part of another node, or a link
  bool elsewhere_ = false;          ///< one of those is no link of this node
  bool ofPair_ = false;             ///< one is a link of this node, by a test of pairs
  bool ownLinks_ = false;           ///< ... by one that locates links
  bool ofFabric_ = false;           ///< one is a switch or a rail of all nodes
};

}  // namespace

RecordChecks checkBlame(const FleetRecords& records, const BlameTable& blame, FleetNodes& nodes) {
  RecordChecks checks;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const size_t i : nodes[n].records) {
      const NodeSummary& record = records.nodes[i];
      std::set<std::string> named;
      std::string stage;
      for (const DeviationSummary& d : record.deviations) {
        if (!d.blocks) continue;
        std::string node = blame.outsider(d, record);
        if (node.empty()) continue;
        if (named.empty()) stage = records.names->texts[d.stage];
        named.insert(std::move(node));
      }
      if (named.empty()) continue;
      RecordFinding finding;
      finding.kind = FindingKind::kBinding;
      finding.records = {record.path};
      finding.text = fmt::format(
          "the record of {} ({}) reports a fault of {} in stage {}, which it cannot know: only a stage of "
          "scope cluster reports on other nodes, and only on those of its group",
          record.node, printable(record.path), printable(shortNames({named.begin(), named.end()}), 200),
          printable(stage));
      finding.next =
          "The report counts for nobody, and its node is incomplete. Retest that node, and check who could "
          "write the record.";
      checks.findings.push_back(settled(std::move(finding), {n}, NodeState::kIncomplete, records, nodes));
    }
  return checks;
}

void clearTheAffected(const FleetRecords& records, const BlameTable& blame, FleetNodes& nodes) {
  for (FleetNode& node : nodes) {
    node.failed = node.state == NodeState::kRejected;
    if (node.records.empty() || (!node.failed && node.state != NodeState::kIncomplete)) continue;
    const OwnVerdict own(records, blame, node);
    if (!own.hasOthers() || own.badness() == 2) {
      if (own.toldAnew() && node.gap.empty()) node.reason = own.ownReason();
      continue;
    }
    if (own.badness() == 0 && node.gap.empty()) {
      node.state = NodeState::kAffected;
      node.reason = own.othersReason();
      continue;
    }
    node.state = NodeState::kIncomplete;
    node.reason = node.gap.empty() ? own.ownReason() : node.gap;
  }
}

namespace {

std::set<std::string> stagesOfSeveralNodes(const FleetRecords& records) {
  std::set<uint32_t> found;
  for (const NodeSummary& record : records.nodes)
    for (const StageSummary& stage : record.stages)
      if (stage.scope == Scope::kCluster) found.insert(stage.name);
  std::set<std::string> names;
  for (const uint32_t stage : found) names.insert(records.names->texts[stage]);
  return names;
}

/// Whether a part of one of the group's nodes failed, by which the group did.
bool isExplained(const Suspect& group, const std::vector<Suspect>& suspects,
                 const std::set<std::string>& stages) {
  return std::any_of(suspects.begin(), suspects.end(), [&](const Suspect& part) {
    const std::vector<std::string> nodes = nodesOf(part);
    return explains(part, group, stages) &&
           std::any_of(nodes.begin(), nodes.end(),
                       [&](const std::string& node) { return group.members.contains(node); });
  });
}

/// Of a group that failed, and nobody can tell by which part, no node is known to be well.
void markTheMembers(const FleetRecords& records, const std::vector<Suspect>& suspects, FleetNodes& nodes) {
  const std::set<std::string> stages = stagesOfSeveralNodes(records);
  for (const Suspect& group : suspects) {
    if (!group.failed || group.members.empty() || isExplained(group, suspects, stages)) continue;
    for (FleetNode& node : nodes) {
      if (node.state != NodeState::kAccepted || !group.members.contains(node.name)) continue;
      node.state = NodeState::kAffected;
      node.reason = cannotBeTold(group.name(), group.evidence.empty() ? "" : group.evidence.front());
    }
  }
}

}  // namespace

void markTheNamed(const FleetRecords& records, const std::vector<Suspect>& suspects, FleetNodes& nodes) {
  std::map<std::string, FleetNode*> places;
  for (FleetNode& node : nodes) places.emplace(node.name, &node);
  for (const Suspect& suspect : suspects) {
    if (!suspect.failed && !suspect.unmeasured) continue;
    const std::vector<std::string> names = nodesOf(suspect);
    const bool link = names.size() > 1 || suspect.endOfLinks;
    const std::string evidence = suspect.evidence.empty() ? "" : suspect.evidence.front();
    for (const std::string& name : suspect.partners)
      if (const auto at = places.find(name);
          at != places.end() && at->second->state == NodeState::kAccepted) {
        at->second->state = NodeState::kAffected;
        at->second->reason =
            suspect.kind == SuspectKind::kLink ? atEitherEnd(suspect.name(), evidence)
            : suspect.endOfLinks
                ? atOneEnd("a link of " + suspect.name())
                : fmt::format(
                      "not faulty itself: it has a link to {}, which fails; repair that, then retest this "
                      "node",
                      suspect.name());
      }
    for (const std::string& name : names) {
      const auto at = places.find(name);
      if (at == places.end()) continue;
      FleetNode& node = *at->second;
      const bool content = node.state == NodeState::kAccepted;
      if (link && content) {
        node.state = NodeState::kAffected;
        node.reason = suspect.ofPair       ? atEitherEnd(suspect.name(), evidence)
                      : suspect.endOfLinks ? atOneEnd("several links", evidence)
                                           : atOneEnd(suspect.name(), evidence);
      } else if (!link && (content || node.state == NodeState::kAffected)) {
        node.state = suspect.failed ? NodeState::kRejected : NodeState::kIncomplete;
        node.reason = fmt::format("reported by other nodes: {}: {}", suspect.name(), evidence);
      }
    }
  }
  markTheMembers(records, suspects, nodes);
}

}  // namespace muster::fleet
