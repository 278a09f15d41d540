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

#include "reports/fleet/blame/run_table.h"
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

/// Published causes of all groups of a fleet. Points into the records and the runs.
class BlameTable {
 public:
  /// `clusterNodes`: whom a scheduler let take part in stages of scope cluster; empty: nobody said.
  BlameTable(const FleetRecords& records, const RunTable& runs, const FleetNodes& nodes,
             std::set<std::string> clusterNodes);

  [[nodiscard]] Blame of(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// The node that a failure speaks against though its record has no say about it: only a stage of scope
  /// cluster speaks about other nodes, and only about those of its group. Empty: there is none.
  [[nodiscard]] std::string outsider(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// The slow rail of all nodes that made the node miss a limit of the test that located it; null: none did.
  [[nodiscard]] const Suspect* limitingRail(const DeviationSummary& deviation,
                                            const NodeSummary& record) const;

 private:
  /// Of wrong results in a group.
  struct WrongData {
    std::map<uint32_t, std::map<std::string, std::set<std::string>>>
        sources;  ///< by metric and by the rank whose data they are said to be, the nodes that say so
    std::map<uint32_t, std::set<std::string>> senders;  ///< by metric, the nodes of which that is believed
  };
  [[nodiscard]] std::string groupOf(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// `repeated`: it does not count, so it leads no run that another one leads.
  void addRecord(const NodeSummary& record, bool repeated);
  [[nodiscard]] std::set<std::string> outsidersOf(const std::vector<std::string>& names,
                                                  const StageOfRun& group) const;
  [[nodiscard]] std::set<std::string> outsidersIn(const std::string& text, const StageOfRun& group) const;
  void collectOutsiders(const NodeSummary& record);
  [[nodiscard]] bool mayNameOutsiders(size_t count, const StageOfRun& group) const;
  void collectAbsent(const NodeSummary& record);
  void believeTheAbsent();
  void believeTheReceivers(const std::string& group, WrongData& data) const;
  [[nodiscard]] Suspect deviceOf(const RunTable::Place& place) const;
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
  /// Whether most nodes say that the rail is slow, between all nodes.
  [[nodiscard]] bool isSlow(const std::string& rail, const DeviationSummary& deviation,
                            const NodeSummary& record) const;
  [[nodiscard]] Blame ofOwn(const DeviationSummary& deviation, const NodeSummary& record) const;
  [[nodiscard]] Suspect partOf(const Mention& mention, const DeviationSummary& deviation,
                               const NodeSummary& record) const;
  [[nodiscard]] std::string expectedName(const std::string& host) const;
  /// Whether `record` alone accuses that node, in a stage of which node 0 says something else or nothing;
  /// where there is no node 0, one that has a record.
  [[nodiscard]] bool isHearsay(const Mention& mention, const std::string& source,
                               const DeviationSummary& deviation, const NodeSummary& record) const;
  [[nodiscard]] Blame ofPeer(const DeviationSummary& deviation, const NodeSummary& record) const;
  [[nodiscard]] Blame ofRank(const DeviationSummary& deviation, const NodeSummary& record) const;
  /// One of its group is at fault, and which cannot be told.
  [[nodiscard]] Blame ofGroup(const DeviationSummary& deviation, const NodeSummary& record) const;

  const FleetRecords& records_;
  const RunTable& runs_;
  std::set<std::string> expected_;
  std::set<std::string> clusterNodes_;
  std::map<std::string, WrongData> wrongData_;  ///< by group
  std::set<std::pair<StageOfRun, std::string>>
      content_;  ///< stage and node: who ran it to its end and found nothing wrong in it
  std::set<std::tuple<std::string, uint32_t, uint32_t, std::string>>
      confessed_;  ///< what they found wrong with themselves: run, stage, metric, node
  std::map<std::string, std::set<std::string>>
      outsiders_;  ///< by node, others with records that its own records name though they are of other groups
  /// What node 0 of a run says of a stage, and the others of it.
  struct LeaderSaid {
    std::string text;
    int resumed = 0;                  ///< its starts before the one that says it
    std::set<std::string> absent{};   ///< of those that it waited for in vain, who missed node 0
    std::string absentSay;            ///< what one of them says
    std::string confession;           ///< what one says of itself that node 0 lost with all others
    std::set<std::string> earlier{};  ///< of these, who began before node 0 was started again
  };
  std::map<StageOfRun, LeaderSaid> leaderSays_;
  /// "rail 3", and the plugin whose test says so: "ring".
  using SlowRail = std::pair<std::string, std::string>;
  std::map<StageOfRun, std::map<SlowRail, std::set<std::string>>>
      railSays_;  ///< who says that a rail of all nodes is slow
  std::map<StageOfRun, std::map<SlowRail, Suspect>> slowRails_;  ///< of which most nodes say so
  std::map<StageOfRun, std::map<int, std::set<std::string>>>
      accusers_;  ///< who hold a node to have ended a stage, by its number
};

/// Names each record that speaks against a node of which it has no say; its own node is not accepted then.
RecordChecks checkBlame(const FleetRecords& records, const BlameTable& blame, FleetNodes& nodes);

/// Nodes that fail only by what speaks against other parts become kAffected, with a reason that names these.
void clearTheAffected(const FleetRecords& records, const BlameTable& blame, FleetNodes& nodes);

/// Nodes whose own records are content, and that findings of others name: a part that failed rejects its
/// node, an end of a link is affected, and so is each node of a group that failed by nobody knows whom.
void markTheNamed(const FleetRecords& records, const std::vector<Suspect>& suspects, FleetNodes& nodes);

}  // namespace muster::fleet
