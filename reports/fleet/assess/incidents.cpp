// SPDX-License-Identifier: Apache-2.0
// Merges flagged components, inconsistent records and open nodes by cause.
#include "reports/fleet/assess/incidents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/fleet/blame/culprit.h"
#include "reports/fleet/blame/findings.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr size_t kFewAlike = 8;  ///< nodes that are open for the same reason and listed one by one

/// An incident while it is put together.
struct Draft {
  Incident incident;
  FindingClass grade = FindingClass::kOutlier;
  const Suspect* suspect = nullptr;        ///< nullptr: of records, a node's state or a waiver
  const RecordFinding* finding = nullptr;  ///< nullptr: of the others
  std::set<std::string> nodes;
  bool gone = false;  ///< it stands beneath another one
};

Urgency urgencyOf(FindingClass grade) {
  return grade <= FindingClass::kMissing      ? Urgency::kA
         : grade <= FindingClass::kUnmeasured ? Urgency::kB
                                              : Urgency::kC;
}

bool blocks(const Suspect& suspect) {
  return suspect.failed || suspect.unmeasured;
}

Repair repairOf(const Suspect& suspect) {
  if (!suspect.failed) return suspect.unmeasured ? Repair::kRetest : Repair::kNone;
  switch (suspect.kind) {
    case SuspectKind::kGroup:
      return Repair::kFleet;
    case SuspectKind::kSwitch:
    case SuspectKind::kRail:
      return Repair::kNetwork;
    case SuspectKind::kNode:
      return Repair::kNode;
    case SuspectKind::kLink:
      return Repair::kLink;
    case SuspectKind::kDevice:
      return Repair::kGpu;
  }
  return Repair::kNone;
}

/// "fail: gemm, …" says twice what the urgency says.
std::string withoutOutcome(const std::string& line) {
  for (const char* outcome : {"fail: ", "error: ", "flaky: "})
    if (line.starts_with(outcome)) return line.substr(std::char_traits<char>::length(outcome));
  return line;
}

Draft draftOf(const Suspect& suspect) {
  Draft draft;
  draft.suspect = &suspect;
  // What only its peers name blocks nothing, however grave its metric is.
  draft.grade = suspect.grade;
  for (std::string& node : nodesOf(suspect)) draft.nodes.insert(std::move(node));
  Incident& incident = draft.incident;
  incident.kind = suspectKindName(suspect.kind);
  incident.repair = repairOf(suspect);
  incident.part = suspect.what;
  incident.serial = suspect.serial;
  incident.cause = suspect.evidence.empty() ? "" : withoutOutcome(suspect.evidence.front());
  incident.limitSource = suspect.limitSource;
  incident.action = suspect.next;
  for (size_t i = 1; i < suspect.evidence.size(); ++i)
    incident.beneath.push_back(withoutOutcome(suspect.evidence[i]));
  incident.beneath.insert(incident.beneath.end(), suspect.beneath.begin(), suspect.beneath.end());
  incident.beneathLeft = suspect.beneathLeft;
  return draft;
}

Draft draftOf(const RecordFinding& finding) {
  Draft draft;
  draft.finding = &finding;
  const bool wrongMachine = finding.kind == FindingKind::kIdentity || finding.kind == FindingKind::kSku;
  draft.grade = wrongMachine ? FindingClass::kMissing : FindingClass::kUnmeasured;
  draft.nodes = {finding.nodes.begin(), finding.nodes.end()};
  draft.incident.kind = "record";
  draft.incident.repair = finding.kind == FindingKind::kSku ? Repair::kNode : Repair::kRecords;
  draft.incident.cause = finding.text;
  draft.incident.action = finding.next;
  return draft;
}

std::map<std::string, const FleetNode*> nodesByName(const Fleet& fleet) {
  std::map<std::string, const FleetNode*> nodes;
  for (const FleetNode& node : fleet.nodes) nodes.emplace(node.name, &node);
  return nodes;
}

/// Entries, and which of them follow from which.
class Merging {
 public:
  explicit Merging(const Fleet& fleet) : fleet_(fleet), nodes_(nodesByName(fleet)) {
    for (const Suspect& suspect : fleet.suspects) drafts_.push_back(draftOf(suspect));
    for (const RecordFinding& finding : fleet.findings) drafts_.push_back(draftOf(finding));
    for (size_t i = 0; i < drafts_.size(); ++i)
      for (const std::string& node : drafts_[i].nodes) byNode_[node].push_back(i);
  }

  void mergeCommonCauses() {
    for (size_t i = 0; i < drafts_.size(); ++i)
      if (const Suspect* cause = drafts_[i].suspect; cause != nullptr && !blocks(*cause) && !cause->byPeers)
        putMembersBeneath(i, *cause);
  }

  /// What all ranks of a group miss together follows from the part of the network that the group located.
  void mergeGroups() {
    std::set<std::string> groupStages;
    for (const GroupStage& group : fleet_.groups) groupStages.insert(group.stage);
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const Suspect* group = drafts_[i].suspect;
      if (group == nullptr || group->kind != SuspectKind::kGroup || !blocks(*group)) continue;
      const auto cause = std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& draft) {
        const Suspect* s = draft.suspect;
        return s != nullptr && s->kind != SuspectKind::kDevice && explains(*s, *group, groupStages);
      });
      const bool shared = std::any_of(group->stages.begin(), group->stages.end(),
                                      [&](const auto& stage) { return groupStages.contains(stage); });
      if (shared && cause != drafts_.end()) put(i, static_cast<size_t>(cause - drafts_.begin()));
    }
  }

  /// With --reject-outliers an outlier blocks acceptance.
  void gradeRejectedOutliers() {
    if (!fleet_.rejectOutliers) return;
    for (Draft& draft : drafts_) {
      if (draft.suspect == nullptr || !draft.suspect->byPeers || blocks(*draft.suspect)) continue;
      if (std::none_of(draft.nodes.begin(), draft.nodes.end(),
                       [&](const auto& name) { return isRejected(name); }))
        continue;
      draft.grade = std::min(draft.grade, FindingClass::kLimit);
      draft.incident.repair = draft.suspect->kind == SuspectKind::kDevice ? Repair::kGpu : Repair::kNode;
    }
  }

  void mergeNodes() {
    for (const auto& [node, list] : byNode_) mergeNode(list);
  }

  void addOpenNodes();
  void addWaivers();
  std::vector<Draft> take() && { return std::move(drafts_); }

 private:
  static std::string lineOf(const Draft& draft) {
    const std::string who = draft.suspect == nullptr ? "" : draft.suspect->name() + ": ";
    return who + draft.incident.cause;
  }

  /// Puts draft `i` beneath `into`.
  void put(size_t i, size_t into) {
    if (i == into || drafts_[i].gone || drafts_[into].gone) return;
    Draft& from = drafts_[i];
    Draft& to = drafts_[into];
    from.gone = true;
    addLine(to.incident, lineOf(from));
    for (const std::string& line : from.incident.beneath) addLine(to.incident, line);
    to.incident.beneathLeft += from.incident.beneathLeft;
    to.grade = std::min(to.grade, from.grade);
    to.nodes.insert(from.nodes.begin(), from.nodes.end());
    if (to.incident.limitSource.empty()) to.incident.limitSource = from.incident.limitSource;
    if (to.incident.repair == Repair::kNone && from.incident.repair != Repair::kNone)
      to.incident.repair = to.suspect != nullptr && to.suspect->kind <= SuspectKind::kRail
                               ? Repair::kNetwork
                               : from.incident.repair;
  }

  static void addLine(Incident& incident, const std::string& line) {
    if (incident.beneath.size() < kMostNamed)
      incident.beneath.push_back(line);
    else
      ++incident.beneathLeft;
  }

  /// Speed findings of the members of a switch or of a rail.
  void putMembersBeneath(size_t into, const Suspect& cause) {
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const Suspect* s = drafts_[i].suspect;
      if (s == nullptr || s == &cause || s->grade < FindingClass::kLimit) continue;
      const bool below =
          cause.kind == SuspectKind::kSwitch && nodesOf(*s).size() == 1 && rackOf(s->node) == cause.what;
      const bool onRail =
          cause.kind == SuspectKind::kRail && nodesOf(*s).size() == 1 && s->what == cause.what;
      if (below || onRail) put(i, into);
    }
  }

  [[nodiscard]] bool isRejected(const std::string& name) const {
    const auto at = nodes_.find(name);
    return at != nodes_.end() && at->second->state == NodeState::kRejected;
  }

  [[nodiscard]] std::string rackOf(const std::string& name) const {
    const auto at = nodes_.find(name);
    return at == nodes_.end() ? "" : at->second->rack;
  }

  /// Of one node: its faulty part, and what follows from it.
  void mergeNode(const std::vector<size_t>& list) {
    const auto only = [&](size_t i) { return !drafts_[i].gone && drafts_[i].nodes.size() == 1; };
    const auto find = [&](auto is) {
      const auto at =
          std::find_if(list.begin(), list.end(), [&](size_t i) { return only(i) && is(drafts_[i]); });
      return at == list.end() ? drafts_.size() : *at;
    };
    const auto putAll = [&](size_t into, auto is) {
      if (into == drafts_.size()) return;
      for (const size_t i : list)
        if (i != into && only(i) && is(drafts_[i])) put(i, into);
    };
    const auto isOfNode = [](const Draft& e) {
      return e.suspect != nullptr && e.suspect->kind == SuspectKind::kNode;
    };
    // A device that fell off its bus also makes the node miss a device.
    const size_t lost = find([](const Draft& e) {
      return e.suspect != nullptr && e.suspect->kind == SuspectKind::kDevice &&
             e.grade <= FindingClass::kMissing && isLost(*e.suspect);
    });
    putAll(lost, [&](const Draft& e) {
      return (isOfNode(e) && e.grade == FindingClass::kMissing) ||
             (e.suspect != nullptr && e.grade == FindingClass::kUnmeasured && !e.suspect->failed);
    });
    const auto isWrongMachine = [](const Draft& e) {
      return e.finding != nullptr && e.finding->kind == FindingKind::kSku;
    };
    // A missing device is also a wrong number of devices.
    putAll(find([&](const Draft& e) { return e.suspect != nullptr && e.grade <= FindingClass::kMissing; }),
           isWrongMachine);
    // Without a known SKU there are no limits, so nothing of it is judged.
    putAll(find(isWrongMachine), [](const Draft& e) {
      return e.grade == FindingClass::kUnmeasured && (e.suspect == nullptr || !e.suspect->failed);
    });
    // A faulty part makes its node stand out, too.
    putAll(find([](const Draft& e) { return e.suspect != nullptr && blocks(*e.suspect); }),
           [](const Draft& e) { return e.suspect != nullptr && !blocks(*e.suspect) && e.suspect->byPeers; });
  }

  static bool isLost(const Suspect& suspect) {
    return std::any_of(suspect.evidence.begin(), suspect.evidence.end(), [](const std::string& line) {
      return line.find("device_lost") != std::string::npos || line.find("xid") != std::string::npos;
    });
  }

  const Fleet& fleet_;
  std::map<std::string, const FleetNode*> nodes_;
  std::vector<Draft> drafts_;
  std::map<std::string, std::vector<size_t>> byNode_;
};

/// How a node that no other incident names is open.
Draft openDraft(const FleetNode& node) {
  Draft draft;
  const bool absent = node.state == NodeState::kMissing || node.state == NodeState::kDown ||
                      node.state == NodeState::kDrained || node.state == NodeState::kQuarantined ||
                      node.state == NodeState::kStale;
  draft.grade = absent                               ? FindingClass::kMissing
                : node.state == NodeState::kRejected ? FindingClass::kLimit
                                                     : FindingClass::kUnmeasured;
  draft.incident.kind = "node";
  draft.incident.repair = absent ? Repair::kAbsentNode : Repair::kRetest;
  draft.incident.cause = fmt::format("{}: {}", nameOf(node.state), printable(node.reason, 300));
  draft.incident.action = node.state == NodeState::kDown || node.state == NodeState::kDrained
                              ? "Repair the node and return it to service, then test it"
                          : absent ? "Test the node"
                                   : "Test the node again";
  return draft;
}

void Merging::addOpenNodes() {
  std::set<std::string> named;
  for (const Draft& draft : drafts_)
    if (!draft.gone && urgencyOf(draft.grade) != Urgency::kC)
      named.insert(draft.nodes.begin(), draft.nodes.end());
  const bool anyCause = std::any_of(drafts_.begin(), drafts_.end(), [](const Draft& draft) {
    return !draft.gone && urgencyOf(draft.grade) != Urgency::kC;
  });
  std::map<std::pair<NodeState, std::string>, std::vector<const FleetNode*>> open;
  for (const FleetNode& node : fleet_.nodes)
    if (node.state != NodeState::kAccepted && !named.contains(node.name) &&
        !(anyCause && node.state == NodeState::kAffected))
      open[{node.state, node.reason}].push_back(&node);
  for (const auto& [why, nodes] : open) {
    if (nodes.size() <= kFewAlike) {
      for (const FleetNode* node : nodes)
        drafts_.push_back(openDraft(*node)), drafts_.back().nodes.insert(node->name);
      continue;
    }
    Draft draft = openDraft(*nodes.front());
    for (const FleetNode* node : nodes) draft.nodes.insert(node->name);
    drafts_.push_back(std::move(draft));
  }
}

void Merging::addWaivers() {
  for (const FleetWaiver& waiver : fleet_.waivers) {
    if (waiver.state != WaiverState::kUnmatched) continue;
    Draft draft;
    draft.grade = FindingClass::kUnmeasured;
    draft.incident.kind = "waiver";
    draft.incident.repair = Repair::kRecords;
    draft.incident.part = waiver.waiver.text();
    draft.incident.serial = waiver.waiver.serial;
    draft.incident.cause = waiver.detail;
    draft.incident.action =
        fmt::format("Correct or remove the waiver ({})", printable(waiver.waiver.at, 200));
    drafts_.push_back(std::move(draft));
  }
}

/// "A05, slot 7" for one node, else the racks: "A05, A06".
std::string placeOf(const std::set<std::string>& names,
                    const std::map<std::string, const FleetNode*>& nodes) {
  std::set<std::string> racks;
  for (const std::string& name : names) {
    const auto node = nodes.find(name);
    if (node == nodes.end() || node->second->rack.empty()) continue;
    if (names.size() == 1) return fmt::format("{}, slot {}", node->second->rack, node->second->slot);
    racks.insert(node->second->rack);
  }
  return printable(join(std::vector(racks.begin(), racks.end()), ", "), 200);
}

/// Runs the plan again on the incident's nodes, as a part of the same fleet run. Empty where no node is
/// named.
std::string retestCommand(const Fleet& fleet, const Incident& incident) {
  if (incident.nodes.empty() || !incident.blocks() || fleet.planName.empty()) return "";
  std::string command = "muster run " + shellQuote(printable(fleet.planName, 100) + ".toml");
  for (const std::string& one : fleet.overrides) command += " --set " + shellQuote(printable(one, 200));
  if (!fleet.fleetId.empty()) command += " --fleet-id " + shellQuote(printable(fleet.fleetId, 100));
  command += "  # on " + printable(join(incident.nodes, ", "), 200);
  if (incident.nodeCount > incident.nodes.size())
    command += fmt::format(" and {} more", incident.nodeCount - incident.nodes.size());
  return command;
}

}  // namespace

std::vector<Incident> findIncidents(const Fleet& fleet) {
  Merging merging(fleet);
  merging.mergeCommonCauses();
  merging.mergeGroups();
  merging.mergeNodes();
  merging.gradeRejectedOutliers();
  merging.addOpenNodes();
  merging.addWaivers();
  std::vector<Draft> drafts = std::move(merging).take();
  std::erase_if(drafts, [](const Draft& draft) { return draft.gone; });
  std::stable_sort(drafts.begin(), drafts.end(),
                   [](const Draft& a, const Draft& b) { return a.grade < b.grade; });
  const auto nodes = nodesByName(fleet);
  std::vector<Incident> incidents;
  for (Draft& draft : drafts) {
    Incident& incident = draft.incident;
    incident.urgency = urgencyOf(draft.grade);
    incident.order = static_cast<int>(draft.grade);
    incident.nodeCount = draft.nodes.size();
    for (const std::string& node : draft.nodes)
      if (incident.nodes.size() < kMostNamed) incident.nodes.push_back(node);
    incident.place = placeOf(draft.nodes, nodes);
    incident.command = retestCommand(fleet, incident);
    incidents.push_back(std::move(incident));
  }
  return incidents;
}

}  // namespace muster::fleet
