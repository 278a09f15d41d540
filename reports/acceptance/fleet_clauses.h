// SPDX-License-Identifier: Apache-2.0
// Clauses beside the check results of many nodes: each node must show evidence, its own or that of its group.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "reports/acceptance/clause_matrix.h"

namespace muster {

/// What the nodes of a fleet show of one clause.
struct FleetClause {
  Clause clause;
  size_t nodes = 0;                  ///< with evidence
  std::vector<std::string> without;  ///< nodes that lack evidence
  std::vector<std::string> missed;   ///< nodes that have it and missed a limit that nobody waived
  size_t results = 0;
  size_t met = 0;
  std::optional<Verdict> worst;  ///< the worst of all nodes
  std::string worstNode;
};

/// Collects the results of a fleet's nodes, one after the other.
class FleetClauses {
 public:
  FleetClauses() = default;
  explicit FleetClauses(const Requirements& requirements);

  /// `records` are all runs of one node that count: what one does not show, another may. `repeated` are those
  /// of the same stages that do not: they show nothing, but what they missed stays missed.
  void add(const std::string& node, const std::vector<Record>& records,
           const std::vector<Record>& repeated = {});
  /// A node whose record cannot be read for the clauses, and why: it meets none.
  void addUnreadable(const std::string& node, const std::string& why);
  /// After the last node. What a group of nodes measured together stands in the record of one of them and is
  /// evidence for all.
  void finish();

  [[nodiscard]] const std::vector<FleetClause>& clauses() const { return clauses_; }
  /// Stages that are evidence for no clause on any node.
  [[nodiscard]] std::vector<std::string> stagesWithout() const;
  /// "clause 4.2 has no evidence on 2 nodes: n1, n2", "clause 4.3 is not met on ...", a line each.
  [[nodiscard]] std::vector<std::string> gaps() const;
  /// The nodes that do not meet every clause, each with a line that names the clauses.
  [[nodiscard]] std::map<std::string, std::string> openNodes() const;

 private:
  using GroupKey = std::tuple<std::string, std::string, std::string>;  ///< run of the fleet, stage, size
  /// What the nodes of one group measured together in a cluster-scope stage.
  struct Group {
    /// Its nodes by rank, and how many records say so. That of node 0 holds what all measured; two with one
    /// rank are of several groups, or one of them is none of it.
    std::map<int, size_t> members;
    /// For each clause, by metric or stage: whether a limit was missed.
    std::vector<std::map<std::string, bool>> missed{};
  };
  struct Member {
    const Group* group;
    int rank;  ///< of the node in its run
  };
  /// What one node shows of a clause itself.
  struct OwnEvidence {
    size_t clause;
    std::string node;
    std::set<std::string> missing;  ///< metrics or stages
    bool missed;                    ///< a limit
    std::vector<Member> groups;
    bool idle;  ///< it had no part in any stage of the clause: others show the evidence
  };

  std::vector<Member> addGroups(const Record& record);
  void addTogether(const StageRecord& stage, Group& group) const;
  void settle(OwnEvidence& own);
  /// `own` names the clause, the node and its groups, `idle` the stages in which the node had no part.
  void addClause(FleetClause& clause, OwnEvidence own, const std::set<std::string>& idle,
                 const std::vector<ClauseMatrix>& matrices, const std::vector<ClauseMatrix>& before);

  Requirements requirements_;
  std::vector<FleetClause> clauses_;
  std::map<GroupKey, Group> groups_;
  std::vector<OwnEvidence> own_;
  std::map<std::string, std::string> unreadable_;  ///< why, by node
  std::set<std::string> stages_, used_;            ///< without and with evidence for a clause, on any node
};

}  // namespace muster
