// SPDX-License-Identifier: Apache-2.0
// Who was which node, and which ranks, in each run of several nodes: what the records claim, and who of those
// that contradict each other is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/fleet/blame/roster.h"
#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

class LaterMeetings;

/// Nodes that claim what only one of them can have been, or one that claims what others were.
struct Clash {
  std::set<std::string> nodes;
  std::string text;
  std::string next{};  ///< what to do; empty: as about all records that cannot be of one run
};

/// Points into the records, which it describes as they are when it is made.
class RunTable {
 public:
  /// A rank of a group: whose it is.
  struct Place {
    const NodeSummary* record = nullptr;
    int16_t device = -1;
    bool met = false;  ///< it tells its group, or ran the stage: of another run it cannot be
  };
  /// A record that tells of a run: each that counts, and of those that were repeated the ones of other runs,
  /// where the node was another rank.
  struct Entry {
    const NodeSummary* record = nullptr;
    bool repeated = false;
  };

  /// `manyRuns`: runs of any number of nodes.
  RunTable(const FleetRecords& records, const FleetNodes& nodes, bool manyRuns);
  ~RunTable();
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Which run of several nodes a record belongs to.
  [[nodiscard]] std::string runOf(const NodeSummary& record) const;
  /// Whether the ranks of the stage are all this node's: by what most records say of the stage, and not by
  /// this one alone.
  [[nodiscard]] bool isOfOneNode(const StageSummary& stage, const NodeSummary& record) const;
  /// Those who were together in a stage.
  [[nodiscard]] std::string groupOf(const StageSummary& stage, const NodeSummary& record) const;
  [[nodiscard]] const std::set<std::string>& nodesOfGroup(const std::string& group) const;
  /// The only claim to the rank, else that of `speaker`, which knows its own ranks; null: nobody can tell.
  [[nodiscard]] const Place* placeOf(const std::string& group, int rank, const std::string& speaker) const;

  /// The nodes that say that the number was theirs.
  [[nodiscard]] const std::set<std::string>& nodesOf(const std::string& run, int number) const;
  /// The only one of these; empty: there is none, or two claim it.
  [[nodiscard]] std::string nodeOf(const std::string& run, int number) const;
  /// Whether the node alone has a number other than that.
  [[nodiscard]] bool hasOtherNumber(const std::string& run, const std::string& node, int number) const;
  /// Whether the record is that of node 0, which nobody else claims to be.
  [[nodiscard]] bool leads(const NodeSummary& record) const;
  /// Whether it formed a group in the run.
  [[nodiscard]] bool hasMet(const std::string& run, const std::string& node) const;
  /// Who had the number as this record took it down; empty: it did not, or that node met others later.
  [[nodiscard]] std::string namedBy(const NodeSummary& record, const StageSummary& stage, int number) const;
  /// Whether it has a record that counts, of whatever run.
  [[nodiscard]] bool hasRecord(const std::string& node) const { return recorded_.contains(node); }

  /// The nodes whose records hold the stage, with the size of the run that each gives.
  [[nodiscard]] const std::map<std::string, int>& membersOf(const StageOfRun& stage) const;
  /// What most of them say of its size; where they do not agree, the smallest.
  [[nodiscard]] int sizeOf(const StageOfRun& stage) const;

  /// Names the nodes that cannot be what they say they were, those that tell of a stage or its group
  /// otherwise than most, and (but for many runs) those that give another number of nodes than most of their
  /// run; they are incomplete.
  RecordChecks check(FleetNodes& nodes) const;

 private:
  struct Group {
    std::map<int32_t, std::vector<Place>> ranks;  ///< with all that claim it, of different nodes
    std::set<std::string> nodes;
  };

  [[nodiscard]] size_t indexOf(const NodeSummary& record) const;
  [[nodiscard]] const std::string& groupId(const StageSummary& stage) const;
  /// Whether nobody else was in its run.
  [[nodiscard]] bool isAlone(const NodeSummary& record) const;
  [[nodiscard]] bool isOverNodes(const StageSummary& stage) const;
  [[nodiscard]] bool tookPart(const NodeSummary& record) const;
  /// The number of nodes that most nodes of a run give, by what `runs` has at the index of a record. Nothing
  /// where they do not agree.
  [[nodiscard]] std::map<std::string, int> agreedCounts(const FleetNodes& nodes,
                                                        const std::vector<std::string>& runs) const;
  void add(const NodeSummary& record);
  /// Whether most say that it had another number, or another node its number.
  [[nodiscard]] bool isImpostor(const NodeSummary& record) const;
  /// Who met whom, as all records of a run say. Who says that it was another one is incomplete.
  void callRoll(const FleetNodes& nodes);
  /// Nodes of which a clash says that they alone are not what they say.
  [[nodiscard]] std::set<std::string> clashingAlone() const;
  /// Accepted nodes that others met in a stage, and whose records do not tell of it: they would escape what
  /// was found there.
  void findDeserters();
  /// Those that claim one number of a run: what the others say of them would not reach them.
  [[nodiscard]] std::vector<Clash> numberClashes(const FleetNodes& nodes);
  /// The pairs of nodes that claim one rank.
  [[nodiscard]] std::vector<Clash> rankClashes() const;
  /// Who claims the numbers or ranks of several nodes has none of these; of two that claim the same nobody
  /// knows.
  void settle(std::vector<Clash> clashes);
  /// Accepted nodes that were in no run with others, beside a group that did not form since nodes did not
  /// come of which nobody knows the names: more than left no record.
  void findAbsentees(const std::set<std::string>& expected);
  /// Accepted nodes of which two others say that their own run had failed or ended before a stage of all.
  void findUnable(const std::set<std::string>& expected);
  /// What all records of a plan, or all of one group, must say alike.
  void findOdd();
  /// Of two that contradict each other either may be lying; who contradicts several, one by one, is it.
  void settlePairs();

  const FleetRecords& records_;
  bool manyRuns_;
  std::set<uint32_t> clusterStages_;
  Roster roster_;
  std::vector<std::string> runs_;                                ///< by index of the record; see runs.h
  std::map<std::string, int> fleetCounts_;                       ///< agreed numbers of nodes by fleet id
  std::map<std::string, std::set<std::string>> nodesOfRuns_;     ///< of those whose groups are told
  std::map<StageOfRun, std::map<std::string, int>> groupSizes_;  ///< as each node tells it; 0: it does not
  std::vector<Entry> entries_;
  std::set<std::string> recorded_;
  std::map<std::string, Group> groups_;
  std::map<StageOfRun, std::map<std::string, int>> members_;
  std::map<std::string, std::map<int, std::set<std::string>>> numbers_;  ///< by run and number, who claims it
  std::map<std::string, std::map<std::string, std::set<int>>> soleNumbers_;  ///< by run and node, no other's
  std::set<std::pair<std::string, std::string>> met_;  ///< runs and nodes that formed a group in them
  std::vector<Clash> clashes_;
  std::vector<Clash> pairs_;  ///< of two nodes each
  std::unique_ptr<const LaterMeetings> later_;
  std::set<std::pair<StageOfRun, std::string>> excused_;  ///< who met others after that stage
};

}  // namespace muster::fleet
