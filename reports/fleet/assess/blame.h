// SPDX-License-Identifier: Apache-2.0
// Whom each failure speaks against, once all records are known: the part that reports it, or another one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/fleet/assess/cluster_stages.h"
#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"
#include "reports/fleet/read/cause.h"

namespace muster::fleet {

/// Whom one failure speaks against.
struct Blame {
  std::vector<Suspect> parts;  ///< without evidence; empty: nobody
  bool own = true;             ///< the record's node answers for it: a part of it, or nobody else who could
  std::string why;             ///< of what another part caused: the runner's words, "rank 11"; else empty
  /// Of a group that failed as a whole its nodes, in the table.
  const std::set<std::string>* members = nullptr;
};

/// Ranks, nodes and published causes of all groups of a fleet. Points into the records.
class BlameTable {
 public:
  /// `clusterNodes`: whom a scheduler let take part in stages of scope cluster; empty: nobody said.
  /// `manyRuns`: runs of any number of nodes.
  BlameTable(const FleetRecords& records, const FleetNodes& nodes, std::set<std::string> clusterNodes = {},
             bool manyRuns = false);

  [[nodiscard]] Blame of(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// The node that a failure speaks against though its record has no say about it: only a stage of scope
  /// cluster speaks about other nodes, and only about those of its group. Empty: there is none.
  [[nodiscard]] std::string outsider(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// Nodes that cannot be what they say they were, with the sentence on them.
  [[nodiscard]] const std::vector<Clash>& clashes() const { return clashes_; }

 private:
  /// A rank of a group: whose it is.
  struct Place {
    const NodeSummary* record = nullptr;
    int16_t device = -1;
    bool met = false;  ///< it tells its group, or ran the stage: of another run it cannot be
  };
  struct Group {
    std::map<int32_t, std::vector<Place>> ranks;  ///< with all that claim it, of different nodes
    std::set<std::string> nodes;
    /// Of wrong results: by metric and by the rank whose data they are said to be, the nodes that say so.
    std::map<uint32_t, std::map<std::string, std::set<std::string>>> sources;
    std::map<uint32_t, std::set<std::string>> senders;  ///< by metric, the nodes of which that is believed
  };
  /// Which run of several nodes a record belongs to.
  [[nodiscard]] std::string runKey(const NodeSummary& record) const;
  /// Whether its ranks are all this node's.
  [[nodiscard]] bool isOfOneNode(const StageSummary& stage, const NodeSummary& record) const;
  [[nodiscard]] std::string groupKey(const StageSummary& stage, const NodeSummary& record) const;
  [[nodiscard]] const Group* groupOf(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// `repeated`: it does not count, so it leads no run that another one leads.
  void addRecord(const NodeSummary& record, bool repeated);
  /// Who claims the numbers or ranks of several nodes has none of these; of two that claim the same nobody
  /// knows.
  void settleClaims(std::vector<Clash> clashes);
  /// The pairs of nodes that claim one rank.
  [[nodiscard]] std::vector<Clash> rankClashes() const;
  /// Nodes that alone say that they met a group, beside one of several that lacks a node.
  void findLoners(const std::set<std::string>& metByStrangers);
  using GroupId = std::pair<std::string, uint32_t>;  ///< run and stage
  [[nodiscard]] std::set<std::string> outsidersOf(const std::vector<std::string>& names,
                                                  const GroupId& group) const;
  [[nodiscard]] std::set<std::string> outsidersIn(const std::string& text, const GroupId& group) const;
  void collectOutsiders(const NodeSummary& record);
  [[nodiscard]] bool mayNameOutsiders(size_t count, const GroupId& group) const;
  /// The nodes of a run in a stage.
  [[nodiscard]] int sizeOf(const std::pair<std::string, uint32_t>& group) const;
  /// The only claim to the rank, else that of `speaker`, which knows its own ranks; null: nobody can tell.
  [[nodiscard]] static const Place* placeOf(const Group& group, int rank, const std::string& speaker);
  void collectAbsent(const NodeSummary& record);
  void believeTheAbsent();
  void believeTheReceivers(Group& group) const;
  [[nodiscard]] Suspect deviceOf(const Place& place) const;
  /// Whether `record` has a say about `node` in what that stage reports.
  [[nodiscard]] bool mayName(const std::string& node, const DeviationSummary& deviation,
                             const NodeSummary& record) const;
  [[nodiscard]] bool mayName(const Suspect& part, const DeviationSummary& deviation,
                             const NodeSummary& record) const;
  /// Whether the node has a record of its own, and that lacks the failure.
  [[nodiscard]] bool denies(const std::string& node, const DeviationSummary& deviation,
                            const NodeSummary& record) const;
  /// What the leader of its group says of the failure, else what its own record says.
  [[nodiscard]] std::string sourceOf(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// The link that a test of pairs of nodes names by its other end; nothing where the record has no say about
  /// that end.
  [[nodiscard]] std::optional<Suspect> pairOf(const DeviationSummary& deviation,
                                              const NodeSummary& record) const;
  [[nodiscard]] Blame ofOwn(const DeviationSummary& deviation, const NodeSummary& record) const;
  [[nodiscard]] Suspect partOf(const Mention& mention, const DeviationSummary& deviation,
                               const NodeSummary& record) const;
  [[nodiscard]] std::string expectedName(const std::string& host) const;
  /// Whether `record` alone accuses that node, in a stage of which node 0 says something else or nothing.
  [[nodiscard]] bool isHearsay(const Mention& mention, const std::string& source,
                               const DeviationSummary& deviation, const NodeSummary& record) const;
  [[nodiscard]] Blame ofPeer(const DeviationSummary& deviation, const NodeSummary& record) const;
  [[nodiscard]] Blame ofRank(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// One of its group is at fault, and which cannot be told.
  [[nodiscard]] Blame ofGroup(const DeviationSummary& deviation, const NodeSummary& record) const;

  const FleetRecords& records_;
  std::set<std::string> expected_;
  std::set<std::string> clusterNodes_;
  bool manyRuns_;
  std::set<std::string> recorded_;  ///< nodes with a record, of whatever run
  std::set<uint32_t> clusterStages_;
  std::vector<std::string> recordRuns_;  ///< by index of the record; see runs.h
  std::map<std::string, int> nodeCounts_;
  std::map<std::string, Group> groups_;
  std::set<std::tuple<std::string, uint32_t, std::string>>
      content_;  ///< run, stage and node: who ran it to its end and found nothing wrong in it
  std::set<std::tuple<std::string, uint32_t, uint32_t, std::string>>
      confessed_;  ///< what they found wrong with themselves: run, stage, metric, node
  std::map<std::pair<std::string, uint32_t>, std::map<std::string, int>>
      members_;  ///< nodes whose records hold a stage of all nodes, by run and stage, with the size that each
                 ///< gives
  std::map<std::string, std::set<std::string>>
      outsiders_;  ///< by node, others with records that its own records name though they are of other groups
  /// The only node of that number; empty: there is none, or two claim it.
  [[nodiscard]] std::string nodeOf(const std::string& run, int number) const;
  std::map<std::string, std::map<int, std::set<std::string>>>
      runs_;  ///< by run and number, the nodes that say it was theirs
  std::vector<Clash> clashes_;
  std::set<std::pair<std::string, std::string>> met_;  ///< runs and nodes that formed a group in them
  std::set<std::string> told_;                         ///< runs whose groups' ids the records tell
  /// What node 0 of a run says of a stage, and the others of it.
  struct LeaderSaid {
    std::string text;
    int resumed = 0;         ///< its starts before the one that says it
    size_t absent = 0;       ///< of those that it waited for in vain, how many missed node 0
    std::string absentSay;   ///< what one of them says
    std::string confession;  ///< what one says of itself that node 0 lost with all others
    std::map<int, std::set<std::string>> accusers;  ///< who hold a node to have ended it, by its number
    bool startedLater = false;                      ///< node 0 was started again after one of them began
  };
  std::map<std::pair<std::string, uint32_t>, LeaderSaid> leaderSays_;  ///< by run and stage
};

/// Names each record that speaks against a node of which it has no say; its own node is not accepted then.
RecordChecks checkBlame(const FleetRecords& records, const BlameTable& blame, FleetNodes& nodes);

/// Nodes that fail only by what speaks against other parts become kAffected, with a reason that names these.
void clearTheAffected(const FleetRecords& records, const BlameTable& blame, FleetNodes& nodes);

/// Nodes whose own records are content, and that findings of others name: a part that failed rejects its
/// node, an end of a link is affected, and so is each node of a group that failed by nobody knows whom.
void markTheNamed(const FleetRecords& records, const std::vector<Suspect>& suspects, FleetNodes& nodes);

}  // namespace muster::fleet
